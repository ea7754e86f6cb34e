package mcp

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"ordeal/agent/http1"
)

// frame is a tools/call of one session and tool, written up to what changes from
// call to call: the id and the arguments. It never changes.
type frame struct {
	tool      string
	version   *string                   // it was made under
	catalogue *map[string][]paramHeader // likewise
	head      []byte                    // of the request, without the length; empty for one that cannot be laid out
	name      []byte                    // from behind the id up to the arguments
	tail      []byte                    // behind the arguments
	guard     bool                      // arguments that bring a _meta of their own are not for it
}

const frameOpen = `{"jsonrpc":"2.0","id":`

// newFrame writes the body as appendRequest and toolParams do.
func (c *Client) newFrame(tool string) *frame {
	f := &frame{tool: tool, version: c.version.Load(), catalogue: c.tools.Load()}
	f.name = append(f.name, `,"method":"tools/call","params":{"name":`...)
	f.name = append(appendString(f.name, tool), `,"arguments":`...)
	f.tail = []byte(`}}`)
	if c.era().modern() {
		f.guard = true
		f.tail = []byte(`,"_meta":{` + c.meta + `}}}`)
	}
	return f
}

// current reports whether nothing has changed that a frame depends on.
func (f *frame) current(c *Client) bool {
	return f.version == c.version.Load() && f.catalogue == c.tools.Load()
}

// appendBody writes the body of a call.
func (f *frame) appendBody(buf []byte, id int64, args []byte) []byte {
	buf = append(buf, frameOpen...)
	buf = strconv.AppendInt(buf, id, 10)
	buf = append(buf, f.name...)
	if len(args) == 0 {
		args = noArgs
	}
	buf = append(buf, args...)
	return append(buf, f.tail...)
}

var noArgs = []byte("{}")

// bodyLen is what appendBody will write.
func (f *frame) bodyLen(id int64, args []byte) int {
	n := len(frameOpen) + len(f.name) + len(args) + len(f.tail)
	if len(args) == 0 {
		n += len(noArgs)
	}
	for ; id > 0; id /= 10 {
		n++
	}
	return n
}

// fits reports whether a call with these arguments goes out as the frame has it.
func (f *frame) fits(args []byte) bool {
	return !f.guard || !bytes.Contains(args, []byte(`"_meta"`))
}

// frames of one session, by tool. The last one used is found first.
type frames struct {
	last atomic.Pointer[frame]
	mu   sync.Mutex
	all  map[string]*frame
}

// maxFrames bounds what one session keeps.
const maxFrames = 256

// of returns the frame of a tool, making it with write when there is none.
func (f *frames) of(c *Client, tool string, write func(*frame)) *frame {
	if last := f.last.Load(); last != nil && last.tool == tool && last.current(c) {
		return last
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	made := f.all[tool]
	if made == nil || !made.current(c) {
		made = c.newFrame(tool)
		write(made)
		if f.all == nil || len(f.all) >= maxFrames {
			f.all = map[string]*frame{}
		}
		f.all[tool] = made
	}
	f.last.Store(made)
	return made
}

// frame of a tool over HTTP. Its head is empty where the headers depend on the
// arguments, or cannot be sent.
func (l *httpLink) frame(h *handle, tool string) *frame {
	return h.frames.of(l.c, tool, func(f *frame) {
		if l.c.paramHeaders(tool) != nil {
			return
		}
		headers := l.headers(&call{method: "tools/call", name: tool, session: h})
		f.head, _ = http1.AppendHead(nil, http.MethodPost, l.url, l.url.Host, headers) // the thorough way says why not
	})
}
