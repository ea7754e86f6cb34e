#!/bin/sh
# Installs the peers where they are missing, builds ordeal and the programs beside this
# file, and compares: see main.go for the flags. ORDEAL_TOOLS is where things go
# (bin/tools of the repository, which git ignores).
set -eu
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
tools=${ORDEAL_TOOLS:-$root/bin/tools}/bench-peers

./install.sh "$tools"
go build -o "$tools/bin/" . ./server ./sdkclient
(cd "$root" && go build -o "$tools/bin/ordeal" ./cmd/ordeal)
exec "$tools/bin/bench-peers" -tools "$tools" -ordeal "$tools/bin/ordeal" -out "$root/bin/bench-peers.jsonl" "$@"
