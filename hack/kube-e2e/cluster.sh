# shellcheck shell=bash
# What a cluster has before anybody installs something: nodes in three zones, a
# volume for every claim, the Prometheus operator's CRDs. To source after plane.sh.

# module_dir MODULE@VERSION prints where its source lies.
module_dir() { go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }

# stages are kwok's own: a node is ready at once, so is a pod; a Job's pod completes.
stages() {
	local dir file
	dir=$(module_dir "$1")/kustomize/stage || return
	for file in "$dir"/node/fast/node-initialize.yaml "$dir"/pod/fast/pod-{ready,complete,delete}.yaml; do
		cat "$file" || return
		echo "---"
	done
}

nodes() {
	local zone n
	for zone in eu-1 eu-2 us-1; do
		for n in 1 2; do
			cat <<-YAML
				---
				apiVersion: v1
				kind: Node
				metadata:
				  name: $zone-$n
				  labels: {kubernetes.io/hostname: $zone-$n, kubernetes.io/arch: amd64, kubernetes.io/os: linux, topology.kubernetes.io/zone: $zone}
			YAML
		done
	done
}

volumes() {
	local n
	for n in 1 2; do
		cat <<-YAML
			---
			apiVersion: v1
			kind: PersistentVolume
			metadata: {name: volume-$n}
			spec:
			  capacity: {storage: 5Gi}
			  accessModes: [ReadWriteOnce]
			  hostPath: {path: /nowhere/$n}
		YAML
	done
}

monitor_crds() {
	local dir plural
	dir=$(module_dir "$1")/example/prometheus-operator-crd || return
	for plural in podmonitors servicemonitors; do
		kubectl apply --server-side -f "$dir/monitoring.coreos.com_$plural.yaml" || return
	done
	kubectl wait --for=condition=Established --timeout=30s crd/podmonitors.monitoring.coreos.com crd/servicemonitors.monitoring.coreos.com
}

# fleet_namespace NAME is one that admits restricted pods only, with the Secrets that
# the documentation tells a user to make.
fleet_namespace() {
	kubectl create namespace "$1" &&
		kubectl label namespace "$1" pod-security.kubernetes.io/{enforce,warn,audit}=restricted &&
		kubectl -n "$1" create secret generic ordeal-nats \
			--from-literal=agent-password="p$(openssl rand -hex 16)" --from-literal=controller-password="p$(openssl rand -hex 16)"
}
