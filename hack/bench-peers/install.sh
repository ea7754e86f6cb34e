#!/bin/sh
# Installs the peers that ordeal is measured against into the folder given: binaries
# in bin/, Node programs in npm/, a Python environment in venv/. What is there at its
# pinned version stays. Needs go, node >= 20 with npm, python3 >= 3.10 with venv, and
# wrk from Debian's apt or on the PATH; no root. BENCH_PYTHON names another interpreter.
#
# k6 is not installed: its licence (AGPL) is for each user to accept. One on the PATH,
# or named by K6, is measured with the others.
set -eu
cd "$(dirname "$0")"
mkdir -p "$1/bin"
to=$(cd "$1" && pwd)
python=${BENCH_PYTHON:-python3}

# try runs a command up to three times: registries have bad moments.
try() {
	for wait in 2 10 0; do
		"$@" && return
		[ "$wait" = 0 ] || { echo "bench-peers: '$1' did not succeed, once more in $wait s" >&2; sleep "$wait"; }
	done
	echo "bench-peers: gave up: $*" >&2
	return 1
}

# once NAME VERSION COMMAND… runs the command unless it has run for this version.
once() {
	[ "$(cat "$to/.$1" 2>/dev/null)" = "$2" ] && return
	echo "bench-peers: installing $1 $2" >&2
	name=$1 version=$2
	shift 2
	"$@" >&2
	echo "$version" >"$to/.$name"
}

go_peer() { GOBIN=$to/bin try go install "$1"; }

# apt_peers unpacks packages beside the system, by package lists of its own: the
# system's belong to root.
apt_peers() {
	state=$to/apt
	mkdir -p "$state/lists/partial" "$state/archives/partial"
	apt="-o Dir::State::lists=$state/lists -o Dir::Cache=$state -o Debug::NoLocking=1 -o APT::Sandbox::User=$(id -un)"
	# shellcheck disable=SC2086 # options are words
	try apt-get $apt -qq update
	# shellcheck disable=SC2086
	(cd "$state/archives" && rm -f ./*.deb && try apt-get $apt -qq download "$@")
	for deb in "$state"/archives/*.deb; do dpkg-deb -x "$deb" "$to/debian"; done
	rm -rf "$state"
}

npm_peers() { mkdir -p "$to/npm" && (cd "$to/npm" && try npm install --no-save --no-audit --no-fund --no-progress --loglevel=error "$@"); }

python_peers() {
	rm -rf "$to/venv"
	"$python" -m venv "$to/venv"
	try "$to/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

if command -v apt-get >/dev/null; then
	once wrk debian apt_peers wrk libluajit-5.1-2 libluajit-5.1-common
elif ! command -v wrk >/dev/null; then
	echo "bench-peers: no apt-get: install wrk 4.1 or newer so that it is on the PATH" >&2
	exit 1
fi
once vegeta 12.13.0 go_peer github.com/tsenart/vegeta/v12@v12.13.0
once fortio 1.68.2 go_peer fortio.org/fortio@v1.68.2
once hey 0.1.5 go_peer github.com/rakyll/hey@v0.1.5
once npm autocannon-9.0.0 npm_peers autocannon@9.0.0
once ratemyagent 1.9.0 python_peers ratemyagent==1.9.0
