#!/usr/bin/env bash
# Run every fuzz target of the module for the given time each (default 20s).
set -euo pipefail
time=${1:-20s}
for dir in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n1 dirname | sort -u); do
	for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/func //'); do
		echo "fuzz ./$dir $target"
		go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" | grep -v '^fuzz: elapsed'
	done
done
