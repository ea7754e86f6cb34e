#!/usr/bin/env bash
# Checks the chart in deploy/helm/ordeal without a cluster and without the network:
# helm lint and kubeconform (schemas in schemas/, see mkschema) for every file in
# values/, the rules that no schema has (rules/), what the NATS server makes of its
# configuration and agents and controller of their arguments (podtest/), that the
# files in refused/ are refused, and that the checks notice what is broken on purpose.
#
# helm and kubeconform are built from their modules into bin/tools on first use
# (minutes on a new machine); after that it takes seconds.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
chart=deploy/helm/ordeal
here=testdata/deploy
tools=${ORDEAL_TOOLS:-$PWD/bin/tools}
oldest=1.30.0 # Chart.yaml's kubeVersion
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# tool MODULE@VERSION prints the path of its command, built if it is not there.
tool() {
	local name dir
	name=$(basename "${1%@*}")
	dir=$tools/$name-${1##*@}
	[ -x "$dir/$name" ] || GOBIN=$dir go install "$1" >&2 || return 1
	echo "$dir/$name"
}

helm=$(tool helm.sh/helm/v3/cmd/helm@v3.22.0) || exit 2
kubeconform=$(tool github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0) || exit 2
go build -o "$out/" ./$here/rules && go test -c -o "$out/podtest" ./$here/podtest || exit 2

passed=0 failed=0
# check WHAT COMMAND… counts it, and shows the output of one that fails.
check() {
	local what=$1
	shift
	if "$@" >"$out/log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $what"
		sed 's/^/     /' "$out/log"
	fi
}

render() { "$helm" template ordeal $chart --namespace load --kube-version $oldest --values "$1"; }

conforms() {
	"$kubeconform" -strict -summary -schema-location "$here/schemas/{{.ResourceKind}}{{.KindSuffix}}.json" "$1"
}

# keeps_rules MANIFESTS KINDS: they hold, and exactly these objects are there.
keeps_rules() {
	local census
	census=$("$out/rules" <"$1") || return
	[ "$census" = "$2" ] || { echo "renders $census"; echo "want    $2"; return 1; }
}

serves() { (cd "$here/podtest" && MANIFESTS=$1 "$out/podtest" -test.skip '^TestFleet$'); }

scans() { (cd "$here/podtest" && MANIFESTS=$1 COMMANDS=$out "$out/podtest" -test.run '^TestFleet$'); }

# has_flags CONTAINER MANIFESTS COMMAND…: its help names every flag that the container is given.
has_flags() {
	local container=$1 manifests=$2 flag flags missing=0
	shift 2
	flags=$("$out/rules" -flags "$container" <"$manifests") || return
	"$@" --help >"$out/help" 2>&1 || return
	for flag in $flags; do
		grep -q -- "^ .*$flag\b" "$out/help" || { echo "$(basename "$1") has no $flag"; missing=1; }
	done
	return $missing
}

# refused VALUES ERROR: helm does not render them, and says why.
refused() {
	render "$1" >"$out/refused" 2>&1 && { echo "rendered"; return 1; }
	grep -qF -- "$2" "$out/refused" || { cat "$out/refused"; echo "want: $2"; return 1; }
}

# notices CHECK SED MESSAGE: the check refuses manifests that sed broke, for that reason.
notices() {
	sed -E "$2" "$out/default.yaml" >"$out/broken.yaml"
	cmp -s "$out/default.yaml" "$out/broken.yaml" && { echo "nothing was broken"; return 1; }
	"$1" "$out/broken.yaml" "$default_kinds" >"$out/noticed" 2>&1 && { echo "not noticed"; return 1; }
	grep -qF -- "$3" "$out/noticed" || { cat "$out/noticed"; echo "want: $3"; return 1; }
}

header() { sed -n "s/^# $1: //p" "$2"; }

for values in "$here"/values/*.yaml; do
	name=$(basename "$values" .yaml)
	check "$name: helm lint" "$helm" lint --strict --quiet --kube-version $oldest --values "$values" $chart
	render "$values" >"$out/$name.yaml" 2>"$out/log" || { failed=$((failed + 1)); echo "FAIL $name: helm template"; cat "$out/log"; continue; }
	check "$name: kubeconform" conforms "$out/$name.yaml"
	check "$name: rules" keeps_rules "$out/$name.yaml" "$(header kinds "$values")"
	grep -q 'nats.conf: |' "$out/$name.yaml" && check "$name: nats.conf" serves "$out/$name.yaml"
done
check "go build of the commands" go build -o "$out/" ./cmd/ordeal ./cmd/ordeal-agent
for values in "$here"/values/*.yaml; do
	name=$(basename "$values" .yaml)
	check "$name: flags of the agents" has_flags agent "$out/$name.yaml" "$out/ordeal-agent"
	check "$name: flags of scan" has_flags controller "$out/$name.yaml" "$out/ordeal" scan
	check "$name: flags of ci" has_flags controller "$out/$name.yaml" "$out/ordeal" ci
done
for name in default tls-mock; do
	check "$name: a fleet scans and leaves" scans "$out/$name.yaml"
done

for values in "$here"/refused/*.yaml; do
	check "$(basename "$values" .yaml) is refused" refused "$values" "$(header error "$values")"
done

default_kinds=$(header kinds $here/values/default.yaml)
check "kubeconform notices an unknown field" notices conforms 's/^  replicas: 3/  replica: 3/' "additional properties 'replica' not allowed"
check "kubeconform notices a wrong type" notices conforms 's/^  replicas: 3/  replicas: three/' "/spec/replicas"
check "kubeconform notices a duplicate key" notices conforms 's/^  replicas: 3/  replicas: 3\n  replicas: 4/' "already set in map"
check "kubeconform notices an unknown kind" notices conforms 's/^kind: Job$/kind: Jobb/' "could not find schema for Jobb"
check "rules notice a writable root" notices keeps_rules 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: false/' "readOnlyRootFilesystem is not true"
check "rules notice kept capabilities" notices keeps_rules 's/drop: \[ALL\]/drop: []/' "does not drop ALL capabilities"
check "rules notice privilege escalation" notices keeps_rules '/allowPrivilegeEscalation/d' "allowPrivilegeEscalation is not false"
check "rules notice a missing seccomp profile" notices keeps_rules 's/type: RuntimeDefault/type: Unconfined/' "seccompProfile is not RuntimeDefault"
check "rules notice a root user" notices keeps_rules 's/runAsUser: 65532/runAsUser: 0/' "runs as user 0"
check "rules notice a host path" notices keeps_rules 's/^( *)emptyDir:/\1hostPath: {path: \/}\n\1emptyDir:/' "kind hostPath"
check "rules notice a missing limit" notices keeps_rules 's/memory: 512Mi/hugepages-2Mi: 0/' "no resources.limits.memory"
check "rules notice a short time to leave" notices keeps_rules 's/(terminationGracePeriodSeconds:) 60/\1 10/' "10 s to leave"
check "rules notice a preStop shorter than a unit" notices keeps_rules 's/seconds: 10$/seconds: 5/' "preStop is no sleep longer than a unit"
check "rules notice a password in an argument" notices keeps_rules 's/--user=agent:.*/--user=agent:hunter2/' "looks like a login in the clear"
check "rules notice a password in the environment" notices keeps_rules '/- name: NATS_SECRET/,/key:/{s/valueFrom:/value: hunter2/;/secretKeyRef|  name: ordeal-nats|key:/d}' "NATS_SECRET has a value"
check "rules notice a password in nats.conf" notices keeps_rules 's/password: .NATS_AGENT_PASSWORD/password: hunter2/' "looks like a password in the clear"
check "rules notice a bearer token" notices keeps_rules 's/target: mock:degraded/header: {Authorization: Bearer hunter2}/' "looks like a bearer token in the clear"
check "rules notice a selector of nothing" notices keeps_rules '/kind: NetworkPolicy/,/policyTypes/s/component: controller/component: contoller/' "podSelector selects nothing"
check "rules notice another object than expected" notices keeps_rules 's/^kind: PodDisruptionBudget$/kind: PodDisruptionBudgets/' "want    ConfigMap"
check "podtest notices a permission too much" notices serves 's/^( *)"ordeal.v1.lease.[*].[*]"$/&\n\1"ordeal.v1.ctl.*"/' "allowed true, want false"
check "podtest notices a permission too little" notices serves '/^ *"ordeal.v1.lease.[*].[*]"$/d' "allowed false, want true"
check "podtest notices a small payload" notices serves 's/max_payload: 8MB/max_payload: 1MB/' "max_payload 1048576"

echo "deploy: $passed passed, $failed failed"
[ $failed = 0 ]
