# The two commands that matter: `go run ./cmd/ordeal scan mock:degraded` and
# `make test`. Everything else is for whoever changes the code.

.PHONY: build test peers vet lint fuzz bench golden

build:
	go build -o bin/ ./cmd/...

# Real servers and SDKs that the tests talk to, from npm and PyPI.
peers:
	./testdata/peers/install.sh

test: peers
	go test -race ./...

vet:
	go vet ./...

lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go tool staticcheck ./...

FUZZTIME ?= 20s
fuzz:
	./testdata/fuzz.sh $(FUZZTIME)

bench:
	go test -run '^$$' -bench . -benchmem ./...

golden:
	go test ./controller/report -update
