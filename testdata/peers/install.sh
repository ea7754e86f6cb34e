#!/bin/sh
# Installs the peers of ordeal's tests: node_modules and venv beside this file.
# Needs node >= 20 with npm, and python3 >= 3.10 with venv; PEERS_PYTHON names
# another interpreter. Does nothing when the pinned versions are in place.
set -eu
cd "$(dirname "$0")"
python=${PEERS_PYTHON:-python3}

# try runs a command up to three times: registries have bad moments.
try() {
	for wait in 2 10 0; do
		"$@" && return
		[ "$wait" = 0 ] || { echo "peers: '$1' did not succeed, once more in $wait s" >&2; sleep "$wait"; }
	done
	echo "peers: gave up: $*" >&2
	return 1
}

# stale STAMP FILE... holds unless the stamp bears the checksum of the files.
stale() {
	stamp=$1
	shift
	[ "$(cat "$stamp" 2>/dev/null)" != "$(cat "$@" | cksum)" ]
}

node_peers() {
	stale node_modules/.peers package.json package-lock.json || return 0
	try npm ci --no-progress --loglevel=error
	cat package.json package-lock.json | cksum >node_modules/.peers
}

python_peers() {
	stale venv/.peers requirements.txt constraints.txt || return 0
	rm -rf venv
	"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
		{ echo "peers: $python is older than 3.10: set PEERS_PYTHON" >&2; return 1; }
	"$python" -m venv venv
	try venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
	cat requirements.txt constraints.txt | cksum >venv/.peers
}

node_peers
python_peers
