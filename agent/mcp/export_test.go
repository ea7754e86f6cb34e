package mcp

// GroupAlive lets tests check that no process of a server is left.
var GroupAlive = groupAlive
