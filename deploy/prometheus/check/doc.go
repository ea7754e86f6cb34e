// Package check holds the expressions in deploy/ against the official PromQL
// parser; it is nothing but its test:
//
//	cd deploy/prometheus/check && go test
//
// That the series exist is checked in metrics/prom, with the other tests.
package check
