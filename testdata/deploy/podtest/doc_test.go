// Package podtest does what the pods of the rendered chart would do, on loopback and
// without a container: the NATS server with the configuration of the chart's
// ConfigMap, in this process, and the agents and the controller with the arguments of
// their containers. It tries out who may do what on the server, then has a fleet scan
// a mock and leave. Only addresses, paths and passwords differ from the pods'.
//
// MANIFESTS names the file of rendered manifests, COMMANDS the folder with ordeal and
// ordeal-agent, which only TestFleet needs:
//
//	helm template … >/tmp/m.yaml && MANIFESTS=/tmp/m.yaml COMMANDS=/tmp/bin go test ./testdata/deploy/podtest
package podtest
