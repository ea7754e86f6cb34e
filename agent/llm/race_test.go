//go:build race

package llm

// manyStreams at once are as many as a client under the race detector keeps up with.
const manyStreams = 50
