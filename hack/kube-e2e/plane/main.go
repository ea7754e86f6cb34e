// Command plane is a Kubernetes control plane and its client in one binary,
// built from published Go modules alone: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kubectl, each as a sub-command
// with the flags of the original.
//
// One binary, because the five share nearly all of their packages: together
// they cost little more to build and link than the largest of them.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the components' own clients
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const usage = "usage: plane etcd|apiserver|controller-manager|scheduler|kubectl FLAGS"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	os.Args = os.Args[1:] // each of them reads its own flags from os.Args[1:]
	os.Exit(run(os.Args[0]))
}

func run(name string) int {
	switch name {
	case "etcd":
		etcdmain.Main(os.Args) // exits by itself
		return 0
	case "apiserver":
		return cli.Run(apiserver.NewAPIServerCommand())
	case "controller-manager":
		return cli.Run(controllers.NewControllerManagerCommand())
	case "scheduler":
		return cli.Run(scheduler.NewSchedulerCommand())
	case "kubectl":
		return cli.Run(kubectl.NewDefaultKubectlCommand())
	default:
		fmt.Fprintf(os.Stderr, "plane: no command %q\n%s\n", name, usage)
		return 2
	}
}
