//go:build !race

package llm

const manyStreams = 1000
