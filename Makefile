# The two commands that matter: `go run ./cmd/ordeal scan mock:degraded` and
# `make test`. Everything else is for whoever changes the code.

.PHONY: build test peers vet lint fuzz bench golden deploy kube-e2e faults bench-peers

build:
	go build -o bin/ ./cmd/...

# Real servers and SDKs that the tests talk to, from npm and PyPI.
peers:
	./testdata/peers/install.sh

# One package at a time: many of them measure time.
test: peers
	go test -race -p 1 -timeout 30m ./... ./testdata/fleettest

vet:
	go vet ./... ./testdata/fleettest/...

lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go tool staticcheck ./...

FUZZTIME ?= 20s
fuzz:
	./testdata/fuzz.sh $(FUZZTIME)

bench:
	go test -run '^$$' -bench . -benchmem ./...

# Every fault of a fleet at its full length and number: half an hour.
faults:
	ORDEAL_FAULTS=full go test ./cmd/ordeal -run TestFault -timeout 90m -v

# Beside other load generators: a quarter of an hour. BENCH_PEERS has flags for it.
bench-peers:
	./hack/bench-peers/run.sh $(BENCH_PEERS)

# Manifests, dashboards and alerts; a real control plane, ten minutes to build.
deploy:
	./testdata/deploy/check.sh
	cd deploy/prometheus/check && go test ./...
kube-e2e:
	./hack/kube-e2e/run.sh

golden:
	go test ./controller/report -update
