#!/usr/bin/env bash
# Installs the chart into a real Kubernetes control plane on this machine's loopback:
# API server, controllers, scheduler and etcd built from their Go modules, kwok in place
# of kubelets, so no container ever runs. It proves what only a server can tell: strict
# server-side validation, Pod Security "restricted" on every pod, scheduling over zones,
# rollouts that become ready, Jobs that complete, upgrades. It does not prove that the
# images work.
#
# The first build takes up to 12 minutes on two cores, a later one seconds; the run half
# a minute. ORDEAL_KUBE_PORT is the first of five free ports (16440: below those that the
# system hands out by itself).
set -uo pipefail
cd "$(dirname "$0")" || exit 2
root=$(cd ../.. && pwd)
tools=${ORDEAL_TOOLS:-$root/bin/tools}
port=${ORDEAL_KUBE_PORT:-16440}
plane=$tools/kube-plane/plane
kwok=$tools/kwok-v0.8.0/kwok
helm=$tools/helm-v3.22.0/helm
chart=$root/deploy/helm/ordeal
operator=github.com/prometheus-operator/prometheus-operator@v0.85.0

# version_flags say which version the server is: without them it is v0.0.0, which the
# chart's kubeVersion refuses.
version_flags() {
	local package=k8s.io/component-base/version version major minor
	version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
	IFS=.v read -r _ major minor _ <<<"$version"
	echo "-X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
}

build() {
	go build -ldflags "-s -w $(version_flags)" -o "$plane" ./plane || return
	[ -x "$kwok" ] || GOBIN=$(dirname "$kwok") go install sigs.k8s.io/kwok/cmd/kwok@v0.8.0 || return
	[ -x "$helm" ] || GOBIN=$(dirname "$helm") go install helm.sh/helm/v3/cmd/helm@v3.22.0
}

build || exit 2
run=$(mktemp -d)
# shellcheck source=plane.sh
. ./plane.sh
# shellcheck source=cluster.sh
. ./cluster.sh
trap 'plane_down; rm -rf "$run"' EXIT

passed=0
# expect WHAT COMMAND… ends the run when it fails, with its output and the logs' ends.
expect() {
	local what=$1 began=$SECONDS
	shift
	if ! "$@" >"$run/out" 2>&1; then
		echo "FAIL $what"
		cat "$run/out"
		kubectl get pods,jobs,events -A 2>/dev/null | tail -40
		tail -n 5 "$run"/*.log | cut -c 1-300
		echo "kube-e2e: $passed passed, 1 failed"
		exit 1
	fi
	passed=$((passed + 1))
	printf 'ok   %-58s %2d s\n' "$what" $((SECONDS - began))
}

# equal GOT WANT
equal() { [ "$1" = "$2" ] || { echo "got  $1"; echo "want $2"; return 1; }; }

render() { "$helm" template ordeal "$chart" --namespace "$1" --kube-version 1.37.2 --values "values/$2.yaml" "${@:3}"; }

# apply NAMESPACE VALUES: strict, by the server, and without a warning: Pod Security warns
# about workloads, where it would refuse their pods.
apply() {
	render "$@" >"$run/manifests.yaml" || return
	kubectl apply --server-side --validate=strict -f "$run/manifests.yaml" >"$run/applied" 2>&1 || { cat "$run/applied"; return 1; }
	! grep -i warning "$run/applied"
}

# misspelled NAMESPACE VALUES: the server refuses what it does not know.
misspelled() {
	render "$@" | sed 's/maxUnavailable:/maxUnavailible:/' >"$run/broken.yaml"
	! kubectl apply --server-side --validate=strict --dry-run=server -f "$run/broken.yaml" >"$run/refused" 2>&1 &&
		grep -q 'spec.maxUnavailible: field not declared' "$run/refused"
}

# unrestricted NAMESPACE: a pod that asks for less security does not get in.
unrestricted() {
	! kubectl -n "$1" run careless --image=example.com/careless:1 >"$run/refused" 2>&1 &&
		grep -q 'violates PodSecurity "restricted' "$run/refused"
}

rolled_out() {
	local namespace=$1 workload
	shift
	for workload in "$@"; do
		kubectl -n "$namespace" rollout status "$workload" --timeout=60s || return
	done
}

jobs_complete() { kubectl -n "$1" wait --for=condition=Complete --timeout=60s job --all; }

# job_names NAMESPACE
job_names() { kubectl -n "$1" get jobs -o jsonpath='{.items[*].metadata.name}'; }

# agents_per_zone NAMESPACE prints "2 eu-1 2 eu-2 …" by the nodes they were put on.
agents_per_zone() {
	kubectl -n "$1" get pods -l app.kubernetes.io/component=agent -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' |
		sed 's/-[12]$//' | sort | uniq -c | xargs
}

# zones_known NAMESPACE: every agent's pod bears the zone of its node.
zones_known() {
	local name node zone
	while read -r name node zone; do
		equal "$name ${node%-[12]}" "$name $zone" || return
	done < <(kubectl -n "$1" get pods -l app.kubernetes.io/component=agent \
		-o jsonpath='{range .items[*]}{.metadata.name} {.spec.nodeName} {.metadata.labels.topology\.kubernetes\.io/zone}{"\n"}{end}')
}

# budget NAMESPACE prints the expected and the expendable pods of the agents' budget.
budget() { kubectl -n "$1" get pdb ordeal-agent -o jsonpath='{.status.expectedPods} {.status.disruptionsAllowed}'; }

budget_is() { equal "$(budget "$1")" "$2"; }

claim_bound() { equal "$(kubectl -n "$1" get pvc data-ordeal-nats-0 -o jsonpath='{.status.phase}')" Bound; }

# reachable NAMESPACE: the Service that agents connect to has the server behind it.
reachable() {
	equal "$(kubectl -n "$1" get endpointslices -l kubernetes.io/service-name=ordeal-nats -o jsonpath='{.items[*].endpoints[*].targetRef.name}')" ordeal-nats-0
}

no_event() { equal "$(kubectl get events -A --field-selector "reason=$1" -o jsonpath='{.items[*].message}')" ""; }

none_pending() { equal "$(kubectl get pods -A --field-selector 'status.phase!=Running,status.phase!=Succeeded' -o name)" ""; }

helm_do() { KUBECONFIG=$run/kubeconfig "$helm" --namespace first "$@"; }

# install_first is what docs/kubernetes.md has a new user type.
install_first() { helm_do install ordeal "$chart" --wait --wait-for-jobs --timeout 2m; }

# upgrade_first ARGUMENTS… prints how the Jobs were called before and after.
upgrade_first() {
	local before
	before=$(job_names first)
	helm_do upgrade ordeal "$chart" --reuse-values --wait --wait-for-jobs --timeout 2m "$@" >&2 || return
	echo "$before $(job_names first)"
}

same_job() { local names; names=$(upgrade_first --set agents.replicas=4) && equal "${names% *}" "${names#* }"; }

other_job() { local names; names=$(upgrade_first --set-string controller.run=2) && ! equal "${names% *}" "${names#* }"; }

pods_gone() { equal "$(kubectl -n first get pods -o name)" ""; }

# server_version prints v1.37.2.
server_version() { kubectl get --raw /version | sed -n 's/.*"gitVersion": "\(.*\)".*/\1/p'; }

stages sigs.k8s.io/kwok@v0.8.0 >"$run/stages.yaml" || exit 2
expect "control plane" plane_up
echo "     Kubernetes $(server_version), 6 nodes in 3 zones"
(nodes; volumes) >"$run/cluster.yaml"
expect "nodes and volumes" kubectl apply --server-side -f "$run/cluster.yaml"
expect "nodes are ready" kubectl wait --for=condition=Ready --timeout=60s node --all
expect "CRDs of the Prometheus operator" monitor_crds "$operator"

for namespace in spread zones; do
	expect "$namespace: namespace that enforces restricted" fleet_namespace "$namespace"
	expect "$namespace: server refuses a misspelled field" misspelled "$namespace" "$namespace"
	expect "$namespace: server refuses an unrestricted pod" unrestricted "$namespace"
	expect "$namespace: apply, strict and without warnings" apply "$namespace" "$namespace"
	expect "$namespace: NATS is ready" rolled_out "$namespace" statefulset/ordeal-nats
	expect "$namespace: its volume is bound" claim_bound "$namespace"
	expect "$namespace: its Service reaches it" await 20 endpoint reachable "$namespace"
done

expect "spread: agents are ready" rolled_out spread deployment/ordeal-agent
expect "spread: two in each zone" equal "$(agents_per_zone spread)" "2 eu-1 2 eu-2 2 us-1"
expect "spread: each pod knows its zone" zones_known spread
expect "spread: one of six may be evicted" await 20 budget budget_is spread "6 1"
expect "spread: the scan's Job completes" jobs_complete spread
expect "spread: PodMonitor is there" kubectl -n spread get podmonitor ordeal
expect "spread: applied again, nothing is refused" apply spread spread
expect "spread: rollout restart" kubectl -n spread rollout restart deployment/ordeal-agent
expect "spread: agents are ready again" rolled_out spread deployment/ordeal-agent

expect "zones: agents are ready" rolled_out zones deployment/ordeal-agent-eu-1 deployment/ordeal-agent-us-1
expect "zones: each where its entry says" equal "$(agents_per_zone zones)" "2 eu-1 1 us-1"
expect "zones: one budget over both" await 20 budget budget_is zones "3 1"
expect "zones: a Job from the CronJob" kubectl -n zones create job --from=cronjob/ordeal-scan scan-now
expect "zones: it completes" jobs_complete zones
expect "zones: ServiceMonitor is there" kubectl -n zones get servicemonitor ordeal

kubectl apply --server-side -f - >/dev/null <<<'{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"volume-3"},"spec":{"capacity":{"storage":"5Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/nowhere/3"}}}'
expect "first: namespace and Secret" fleet_namespace first
expect "first: helm install, until the scan is done" install_first
expect "first: scaled by an upgrade, no second scan" same_job
expect "first: controller.run=2 scans once more" other_job
expect "first: helm uninstall" helm_do uninstall ordeal --wait
expect "first: no pod is left" await 30 end pods_gone

expect "no pod is held back" none_pending
expect "no FailedCreate event" no_event FailedCreate
kubectl get statefulsets,deployments,jobs,cronjobs,poddisruptionbudgets -A
echo "kube-e2e: $passed passed, 0 failed"
