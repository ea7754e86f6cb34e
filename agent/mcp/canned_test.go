package mcp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ordeal/agent/wire"
)

// canned is one answer to a tools/call, byte for byte; $ID stands for the id of
// the request.
type canned struct {
	name, raw string
	ends      bool // the connection ends with it
}

const (
	jsonType   = "Content-Type: application/json\r\n"
	eventsType = "Content-Type: text/event-stream\r\n"
	goodReply  = `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"hi"}]}}`
)

func reply200(result string) string { return `{"jsonrpc":"2.0","id":$ID,"result":` + result + `}` }

func said(text string) string {
	return reply200(`{"content":[{"type":"text","text":` + text + `}]}`)
}

// bodies are answers by their body; each is sent in every framing.
var bodies = []struct{ name, status, header, body string }{
	{"good", "", jsonType, goodReply},
	{"good, spaced", "", jsonType, " {\r\n\t\"id\" : $ID ,\n\"jsonrpc\" :\"2.0\" , \"result\":{ \"content\" : [ ] } } \n"},
	{"good, structured", "", jsonType, reply200(`{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":[1.5e-3,-0,null,true,{"b":"\u00e9"}]},"isError":false,"_meta":{"x":1}}`)},
	{"good, two blocks", "", jsonType, reply200(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"QQ==","mimeType":"image/png"},{"annotations":{},"text":"b","type":"text"}]}`)},
	{"good, non-ASCII", "", jsonType, said(`"żółć 漢字 \ud83d\ude42 \\ \" \/"`)},
	{"good, complete", "", jsonType, reply200(`{"resultType":"complete","content":[]}`)},
	{"good, charset", "", "content-TYPE: Application/JSON ; charset=utf-8\r\n", goodReply},
	{"good, 20 KB", "", jsonType, said(`"` + strings.Repeat("0123456789abcdef", 1250) + `"`)},
	{"server timing", "", jsonType + "Server-Timing: db;dur=1.5, total;dur=12.25\r\n", goodReply},
	{"quota announced", "", jsonType + "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 5\r\n", goodReply},
	{"quota announced, draft", "", jsonType + "ratelimit: \"burst\";r=3;t=30\r\nratelimit-policy: \"burst\";q=9;w=60\r\n", goodReply},
	{"other header with limit", "", jsonType + "X-Limits: none\r\n", goodReply},
	{"events", "", eventsType, "event: message\ndata: " + goodReply + "\n\n"},
	{"events, CRLF", "", eventsType, "event: message\r\nid: 1\r\ndata:" + goodReply + "\r\n\r\n"},
	{"events, CR", "", eventsType, "data: " + goodReply + "\r\r"},
	{"events, CR inside the line", "", eventsType, "data: " + strings.Replace(goodReply, ",", ",\r", 1) + "\n\n"},
	{"events, comments and priming", "", eventsType, ": hi\nretry: 50\n\nid: p-0\ndata:\n\n:\ndata: " + goodReply + "\n\n"},
	{"events, BOM", "", eventsType, "\xef\xbb\xbfdata: " + goodReply + "\n\n"},
	{"events, notification first", "", eventsType, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\ndata: " + goodReply + "\n\n"},
	{"events, progress first", "", eventsType, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\ndata: " + goodReply + "\n\n"},
	{"events, reply of another", "", eventsType, "data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{\"content\":[]}}\n\ndata: " + goodReply + "\n\n"},
	{"events, bad event first", "", eventsType, "data: {\"jsonrpc\n\ndata: " + goodReply + "\n\n"},
	{"events, two data lines", "", eventsType, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":$ID,\"result\":{\"content\":[]}}\n\n"},
	{"events, of another type", "", eventsType, "event: odd\ndata: " + goodReply + "\n\n"},
	{"events, unknown field", "", eventsType, "datum: 1\ndata: " + goodReply + "\n\n"},
	{"events after the reply", "", eventsType, "data: " + goodReply + "\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"},
	{"progress after the reply", "", eventsType, "data: " + goodReply + "\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n"},
	{"comment after the reply", "", eventsType, "data: " + goodReply + "\n\n: bye\n\n"},
	{"reply twice", "", eventsType, "data: " + goodReply + "\n\ndata: " + goodReply + "\n\n"},
	{"events without a reply", "", eventsType, ": nothing\n\n"},
	{"events, reply without a blank line", "", eventsType, "data: " + goodReply + "\n"},
	{"events, cut", "", eventsType, "data: {\"jsonrpc"},
	{"events, nothing", "", eventsType, ""},
	{"events, bad reply", "", eventsType, "data: " + strings.Replace(goodReply, "]", "}", 1) + "\n\n"},
	{"events, tool error", "", eventsType, "data: " + reply200(`{"isError":true,"content":[{"type":"text","text":"no"}]}`) + "\n\n"},
	{"events sent as JSON", "", jsonType, "data: " + goodReply + "\n\n"},
	{"JSON sent as events", "", eventsType, goodReply},
	{"no content type", "", "", goodReply},
	{"two content types", "", jsonType + "Content-Type: text/html\r\n", goodReply},
	{"text", "", "Content-Type: text/plain\r\n", goodReply},
	{"HTML", "", "Content-Type: text/html\r\n", "<html>log in</html>"},
	{"empty", "", jsonType, ""},
	{"garbage", "", jsonType, "oops"},
	{"cut JSON", "", jsonType, goodReply[:40]},
	{"text behind the JSON", "", jsonType, goodReply + "x"},
	{"two messages", "", jsonType, goodReply + goodReply},
	{"trailing comma", "", jsonType, reply200(`{"content":[],}`)},
	{"bad number", "", jsonType, reply200(`{"content":[],"structuredContent":{"a":01}}`)},
	{"bad escape", "", jsonType, said(`"\x41"`)},
	{"control character in a string", "", jsonType, said("\"a\x01b\"")},
	{"bad UTF-8", "", jsonType, said("\"a\xff\xfeb\"")},
	{"lone surrogate", "", jsonType, said(`"\ud83d"`)},
	{"BOM", "", jsonType, "\xef\xbb\xbf" + goodReply},
	{"no jsonrpc", "", jsonType, `{"id":$ID,"result":{"content":[]}}`},
	{"jsonrpc as a number", "", jsonType, `{"jsonrpc":2.0,"id":$ID,"result":{"content":[]}}`},
	{"jsonrpc 1.0", "", jsonType, `{"jsonrpc":"1.0","id":$ID,"result":{"content":[]}}`},
	{"id as a string", "", jsonType, `{"jsonrpc":"2.0","id":"$ID","result":{"content":[]}}`},
	{"id with a fraction", "", jsonType, `{"jsonrpc":"2.0","id":$ID.0,"result":{"content":[]}}`},
	{"id with an exponent", "", jsonType, `{"jsonrpc":"2.0","id":$IDe0,"result":{"content":[]}}`},
	{"other id", "", jsonType, `{"jsonrpc":"2.0","id":4711,"result":{"content":[]}}`},
	{"no id", "", jsonType, `{"jsonrpc":"2.0","result":{"content":[]}}`},
	{"null id", "", jsonType, `{"jsonrpc":"2.0","id":null,"result":{"content":[]}}`},
	{"two ids, the last ours", "", jsonType, `{"jsonrpc":"2.0","id":4711,"id":$ID,"result":{"content":[]}}`},
	{"two ids, the first ours", "", jsonType, `{"jsonrpc":"2.0","id":$ID,"id":4711,"result":{"content":[]}}`},
	{"id written with an escape", "", jsonType, `{"jsonrpc":"2.0","id":$ID,"\u0069d":4711,"result":{"content":[]}}`},
	{"two results", "", jsonType, `{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"result":{"isError":true,"content":[]}}`},
	{"result and error", "", jsonType, `{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"error":{"code":1,"message":"x"}}`},
	{"result and null error", "", jsonType, `{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"error":null}`},
	{"error", "", jsonType, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"bad"}}`},
	{"error with a quota", "", jsonType, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"slow","data":{"status":429}}}`},
	{"error without id", "", jsonType, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"}}`},
	{"request with our id", "", jsonType, `{"jsonrpc":"2.0","id":$ID,"method":"ping","result":{"content":[]}}`},
	{"unknown member", "", jsonType, `{"jsonrpc":"2.0","id":$ID,"extra":1,"result":{"content":[]}}`},
	{"null result", "", jsonType, reply200(`null`)},
	{"empty result", "", jsonType, reply200(`{}`)},
	{"list result", "", jsonType, reply200(`[]`)},
	{"structured only", "", jsonType, reply200(`{"structuredContent":{"a":1}}`)},
	{"content null", "", jsonType, reply200(`{"content":null}`)},
	{"content of a foreign type", "", jsonType, reply200(`{"content":"hi"}`)},
	{"content with a number", "", jsonType, reply200(`{"content":[7]}`)},
	{"content with null", "", jsonType, reply200(`{"content":[null]}`)},
	{"text is a number", "", jsonType, said(`5`)},
	{"text is null", "", jsonType, said(`null`)},
	{"Text is a number", "", jsonType, reply200(`{"content":[{"type":"text","text":"a","Text":5}]}`)},
	{"type is a list", "", jsonType, reply200(`{"content":[{"type":[],"text":"a"}]}`)},
	{"type with an escape", "", jsonType, reply200(`{"content":[{"type":"te\u0078t","text":"{\"error\":1}"}]}`)},
	{"two texts", "", jsonType, reply200(`{"content":[{"type":"text","text":"a","text":"{\"error\":1}"}]}`)},
	{"isError true", "", jsonType, reply200(`{"isError":true,"content":[{"type":"text","text":"no"}]}`)},
	{"isError twice", "", jsonType, reply200(`{"isError":false,"content":[],"isError":true}`)},
	{"ISERROR true", "", jsonType, reply200(`{"ISERROR":true,"content":[]}`)},
	{"isError with an escape", "", jsonType, reply200(`{"is\u0045rror":true,"content":[]}`)},
	{"isError as text", "", jsonType, reply200(`{"isError":"true","content":[]}`)},
	{"isError null", "", jsonType, reply200(`{"isError":null,"content":[]}`)},
	{"input required", "", jsonType, reply200(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}`)},
	{"unknown result type", "", jsonType, reply200(`{"resultType":"odd","content":[]}`)},
	{"error object in the text", "", jsonType, said(`"{\"error\":\"no such file\"}"`)},
	{"error object behind spaces", "", jsonType, said(`" \n\t{\"error\":\"no such file\"}"`)},
	{"error object behind odd spaces", "", jsonType, said(`"\u2003{\"\u0065rror\":1}"`)},
	{"error object in two blocks", "", jsonType, reply200(`{"content":[{"type":"text","text":"{\"error\":"},{"type":"text","text":"5}"}]}`)},
	{"error object after an empty block", "", jsonType, reply200(`{"content":[{"type":"text","text":""},{"type":"text","text":"{\"error\":5}"}]}`)},
	{"error list", "", jsonType, said(`"[1,{\"error_code\":7}]"`)},
	{"error quota in the text", "", jsonType, said(`"{\"error\":{\"code\":429}}"`)},
	{"no error in the text", "", jsonType, said(`"{\"error\":null,\"a\":{\"error\":1}}"`)},
	{"429 rows", "", jsonType, said(`"found 429 rows, rate limit exceeded"`)},
	{"429 in a tool error", "", jsonType, reply200(`{"isError":true,"content":[{"type":"text","text":"429 Too Many Requests, retry in 2s"}]}`)},
	{"batch", "", jsonType, "[" + goodReply + "]"},
	{"deep", "", jsonType, reply200(`{"content":[],"structuredContent":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`)},
	{"201", "201 Created", jsonType, goodReply},
	{"202", "202 Accepted", "", ""},
	{"303", "303 See Other", "Location: /login\r\n", ""},
	{"307 elsewhere", "307 Temporary Redirect", "Location: http://127.0.0.2:9/\r\n", ""},
	{"400", "400 Bad Request", jsonType, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`},
	{"401", "401 Unauthorized", "WWW-Authenticate: Bearer x=\"y\"\r\n", ""},
	{"403", "403 Forbidden", "", "no"},
	{"404", "404 Not Found", "", ""},
	{"405", "405 Method Not Allowed", "", ""},
	{"429", "429 Too Many Requests", "Retry-After: 2\r\n", "slow down"},
	{"429 nonsense", "429 Too Many Requests", "Retry-After: NaN\r\n", ""},
	{"500", "500 Internal Server Error", jsonType, goodReply},
	{"502", "502 Bad Gateway", "Content-Type: text/html\r\n", "<p>502</p>"},
	{"503 with a wait", "503 Service Unavailable", "Retry-After: 0.5\r\n", ""},
	{"gzip", "", jsonType + "Content-Encoding: gzip\r\n", zipped(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)},
	{"brotli", "", jsonType + "Content-Encoding: br\r\n", "xx"},
	{"identity", "", jsonType + "Content-Encoding: identity\r\n", goodReply},
}

// CannedLines are the bodies as a server on stdio could send them.
func CannedLines() map[string]string {
	lines := map[string]string{}
	for _, b := range bodies {
		if b.status == "" && b.header == jsonType {
			lines[b.name] = strings.NewReplacer("\n", " ", "\r", " ").Replace(b.body)
		}
	}
	return lines
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// answers are the bodies in every framing, and what is odd in the framing itself.
func answers() []canned {
	var all []canned
	for _, b := range bodies {
		head := "HTTP/1.1 " + b.status + "\r\n" + b.header
		if b.status == "" {
			head = "HTTP/1.1 200 OK\r\n" + b.header
		}
		body := strings.ReplaceAll(b.body, "$ID", "1234567") // as long as the ids of the test
		half := len(b.body) / 2
		if at := strings.Index(b.body, "$ID"); at >= 0 {
			half = at
		}
		chunk := func(s string) string {
			if s == "" {
				return ""
			}
			return fmt.Sprintf("%x\r\n%s\r\n", len(strings.ReplaceAll(s, "$ID", "1234567")), s)
		}
		all = append(all,
			canned{b.name + ", length", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), b.body), false},
			canned{b.name + ", chunks", head + "Transfer-Encoding: chunked\r\n\r\n" + chunk(b.body[:half]) + chunk(b.body[half:]) + "0\r\n\r\n", false},
			canned{b.name + ", to the end", head + "\r\n" + b.body, true})
	}
	const ok = "HTTP/1.1 200 OK\r\n" + jsonType
	size := fmt.Sprint(len(strings.ReplaceAll(goodReply, "$ID", "1234567")))
	return append(all,
		canned{"too long a length", ok + "Content-Length: 500\r\n\r\n" + goodReply, true},
		canned{"two equal lengths", ok + "Content-Length: " + size + "\r\nContent-Length: " + size + "\r\n\r\n" + goodReply, false},
		canned{"two lengths", ok + "Content-Length: 5\r\nContent-Length: " + size + "\r\n\r\n" + goodReply, true},
		canned{"negative length", ok + "Content-Length: -1\r\n\r\n" + goodReply, true},
		canned{"length and chunks", ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n", true},
		canned{"chunks with extensions and trailers", "HTTP/1.1 200 OK\r\n" + eventsType + "Transfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\n:a\n\r\n0\r\nX-Check: 1\r\n\r\n", false},
		canned{"chunks cut", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"js", true},
		canned{"chunks without an end", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", true},
		canned{"bad chunk size", ok + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n", true},
		canned{"chunk longer than said", ok + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", true},
		canned{"gzip as transfer encoding", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", true},
		canned{"informational first", "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: " + size + "\r\n\r\n" + goodReply, false},
		canned{"folded header", ok + "X-A: b\r\n c\r\nContent-Length: " + size + "\r\n\r\n" + goodReply, true},
		canned{"space before the colon", ok + "Content-Length : " + size + "\r\n\r\n" + goodReply, true},
		canned{"no status line", goodReply, true},
		canned{"HTTP/2 status line", "HTTP/2 200 OK\r\n\r\n" + goodReply, true},
		canned{"HTTP/1.0", "HTTP/1.0 200 OK\r\n" + jsonType + "\r\n" + goodReply, true},
		canned{"line feeds only", strings.ReplaceAll(ok, "\r", "") + "Content-Length: " + size + "\n\n" + goodReply, false},
		canned{"connection close", ok + "Connection: Close\r\nContent-Length: " + size + "\r\n\r\n" + goodReply, true},
		canned{"204", "HTTP/1.1 204 No Content\r\n\r\n", false},
		canned{"nothing", "", true},
		canned{"half a head", "HTTP/1.1 200 OK\r\nContent-", true})
}

// player answers every tools/call with the same canned answer.
type player struct {
	net.Listener
	now atomic.Pointer[canned]
	id  atomic.Pointer[string] // of the last call
}

func play(t testing.TB) *player {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &player{Listener: l}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return p
}

func (p *player) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		msg, err := parseMessage(body)
		name := msg.name()
		switch {
		case err != nil:
			return
		case name == "initialize":
			text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"player","version":"1"}}}`, msg.id, LatestLegacy)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%sMcp-Session-Id: s\r\nContent-Length: %d\r\n\r\n%s", jsonType, len(text), text)
		case name != "tools/call":
			io.WriteString(c, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
		default:
			id := string(msg.id)
			p.id.Store(&id)
			answer := p.now.Load()
			io.WriteString(c, strings.ReplaceAll(answer.raw, "$ID", id))
			if answer.ends {
				return
			}
		}
	}
}

// slicer cuts what comes on its connections: no read goes beyond the offset at,
// counted from the last cut.
type slicer struct{ at, got atomic.Int64 }

func (s *slicer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return sliced{c, s}, nil
}

func (s *slicer) cut(at int) {
	s.at.Store(int64(at))
	s.got.Store(0)
}

type sliced struct {
	net.Conn
	s *slicer
}

func (c sliced) Read(p []byte) (int, error) {
	if left := c.s.at.Load() - c.s.got.Load(); left > 0 && left < int64(len(p)) {
		p = p[:left]
	}
	n, err := c.Conn.Read(p)
	c.s.got.Add(int64(n))
	return n, err
}

// dialPlayer connects both ways to a player; ids have seven digits.
func dialPlayer(t testing.TB, p *player, s *slicer, thorough bool) (*Client, *Session) {
	t.Helper()
	c, err := dialBy(t.Context(), Config{Transport: wire.StreamableHTTP, Endpoint: "http://" + p.Addr().String() + "/mcp", Protocol: LatestLegacy,
		Timeout: 5 * time.Second, StopGrace: 200 * time.Millisecond}, s.dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	c.thorough = thorough
	c.ids.Store(1_234_000)
	session, err := c.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, session
}
