package target

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ordeal/agent/mcp"
)

// language guesses what a server is written in, for a hint where to fix things:
// from its command line, then from what its web server and its error output
// say. Empty is unknown; a wrong guess would be worse.
func language(command []string, info mcp.Info, stderr string) string {
	for _, word := range command[:min(len(command), 6)] {
		base := strings.ToLower(filepath.Base(word))
		switch {
		case base == "npx" || base == "npm" || base == "node" || base == "bun" || base == "bunx" || base == "deno" || base == "tsx" || base == "pnpm":
			return "typescript"
		case base == "uv" || base == "uvx" || base == "pipx" || base == "poetry" || strings.HasPrefix(base, "python"):
			return "python"
		case base == "go":
			return "go"
		}
		switch filepath.Ext(base) {
		case ".py":
			return "python"
		case ".js", ".mjs", ".cjs", ".ts":
			return "typescript"
		case ".go":
			return "go"
		}
	}
	if l := interpreter(command); l != "" {
		return l
	}
	signs := []struct{ sign, language string }{
		{"uvicorn", "python"}, {"hypercorn", "python"}, {"gunicorn", "python"}, {"fastmcp", "python"}, {"aiohttp", "python"},
		{"traceback (most recent call last)", "python"},
		{"express", "typescript"}, {"node:internal", "typescript"}, {"at object.<anonymous>", "typescript"}, {"next.js", "typescript"},
		{"goroutine 1 [", "go"}, {"mcp-go", "go"}, {"golang", "go"},
	}
	text := strings.ToLower(info.Software + "\n" + info.Name + "\n" + stderr)
	for _, s := range signs {
		if strings.Contains(text, s.sign) {
			return s.language
		}
	}
	return ""
}

// interpreter reads the first line of a script.
func interpreter(command []string) string {
	if len(command) == 0 {
		return ""
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	first, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n') // a binary has no short first line
	line := string(first)
	switch {
	case !strings.HasPrefix(line, "#!"):
		return ""
	case strings.Contains(line, "python"):
		return "python"
	case strings.Contains(line, "node"), strings.Contains(line, "deno"), strings.Contains(line, "bun"):
		return "typescript"
	}
	return ""
}
