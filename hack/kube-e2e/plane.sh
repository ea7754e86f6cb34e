# shellcheck shell=bash
# The control plane of one run, on loopback: etcd, API server, controllers and
# scheduler from the binary of ./plane, and kwok in place of the kubelets. To source.
# Needs $plane, $kwok (commands), $run (an empty directory) and $port (the first of
# five free ports). plane_up starts it, plane_down ends what was started, last first.

: "${run:?}" "${plane:?}" "${kwok:?}" "${port:?}"
pids=()
token=$(openssl rand -hex 16)

# start NAME COMMAND… runs it in the background with its log in $run/NAME.log.
start() {
	local name=$1
	shift
	"$@" >"$run/$name.log" 2>&1 &
	pids+=($!)
}

# await SECONDS WHAT COMMAND… repeats it until it succeeds or a process has died.
await() {
	local deadline=$((SECONDS + $1)) what=$2 pid
	shift 2
	until "$@" >/dev/null 2>&1; do
		for pid in "${pids[@]}"; do
			kill -0 "$pid" 2>/dev/null || { echo "kube-e2e: a process ended while waiting for $what" >&2; return 1; }
		done
		((SECONDS < deadline)) || { echo "kube-e2e: no $what in time" >&2; return 1; }
		sleep 0.1
	done
}

kubectl() { "$plane" kubectl --kubeconfig "$run/kubeconfig" "$@"; }

kubeconfig() {
	cat <<-YAML
		apiVersion: v1
		kind: Config
		clusters: [{name: e2e, cluster: {server: "https://127.0.0.1:$port", certificate-authority: $run/certs/apiserver.crt}}]
		users: [{name: admin, user: {token: $token}}]
		contexts: [{name: e2e, context: {cluster: e2e, user: admin}}]
		current-context: e2e
	YAML
}

plane_up() {
	local etcd=http://127.0.0.1:$((port + 1)) peer=http://127.0.0.1:$((port + 2))
	local account_key=$run/account.key
	openssl genrsa -out "$account_key" 2048 2>/dev/null || return
	printf '%s,admin,admin,"system:masters"\n' "$token" >"$run/tokens.csv"
	kubeconfig >"$run/kubeconfig"

	start etcd "$plane" etcd --data-dir "$run/etcd" --unsafe-no-fsync --log-level warn \
		--listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
		--listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
	# The address that pods would reach it by is a documentation address: there are
	# no pods, and 127.0.0.1 is refused as one.
	start apiserver "$plane" apiserver --etcd-servers "$etcd" --bind-address 127.0.0.1 --secure-port "$port" \
		--advertise-address 192.0.2.1 --endpoint-reconciler-type none --cert-dir "$run/certs" \
		--service-cluster-ip-range 10.96.0.0/24 --authorization-mode Node,RBAC --token-auth-file "$run/tokens.csv" \
		--service-account-issuer https://kubernetes.default.svc \
		--service-account-key-file "$account_key" --service-account-signing-key-file "$account_key"
	await 60 "API server" kubectl get --raw /readyz || return

	start controller-manager "$plane" controller-manager --kubeconfig "$run/kubeconfig" --leader-elect=false \
		--bind-address 127.0.0.1 --secure-port $((port + 3)) --cert-dir "$run/certs-controllers" \
		--service-account-private-key-file "$account_key" --controllers '*,-nodeipam'
	start scheduler "$plane" scheduler --kubeconfig "$run/kubeconfig" --leader-elect=false \
		--bind-address 127.0.0.1 --secure-port $((port + 4)) --cert-dir "$run/certs-scheduler"
	start kwok "$kwok" --kubeconfig "$run/kubeconfig" --manage-all-nodes --node-lease-duration-seconds 40 \
		--config "$run/stages.yaml"
	await 30 "default service account" kubectl -n default get serviceaccount default
}

plane_down() {
	local i
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill "${pids[i]}" 2>/dev/null
		wait "${pids[i]}" 2>/dev/null
	done
	pids=()
}
