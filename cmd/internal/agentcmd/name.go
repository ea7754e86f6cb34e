package agentcmd

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"ordeal/agent/wire"
)

// hostPart bounds the host's share of a name, which has a process number behind
// it.
const hostPart = 100

// defaultName is the host's name, with what no agent name may hold replaced,
// and the process.
func defaultName() string {
	host, _ := os.Hostname() // without one the agent is called agent
	return agentName(host, os.Getpid())
}

func agentName(host string, pid int) string {
	fit := strings.Map(func(r rune) rune {
		if wire.CheckName("", string(r)) != nil {
			return '-'
		}
		return r
	}, host)
	return fmt.Sprintf("%s-%d", cmp.Or(fit[:min(len(fit), hostPart)], "agent"), pid)
}
