package controller

import "ordeal/agent/wire"

// Unmeasurable says that nothing could be measured, and why.
type Unmeasurable struct{ wire.Failure }

func (e *Unmeasurable) Error() string {
	text := e.Message
	if e.Remedy != "" {
		text += "\n  " + e.Remedy
	}
	if e.Stderr != "" {
		text += "\n  the server's last words on stderr:\n" + indent(e.Stderr)
	}
	return text
}

func indent(text string) string {
	out := ""
	for line := range lines(text) {
		out += "    " + line + "\n"
	}
	return out
}
