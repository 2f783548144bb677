package discord

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// tape is a connection that reads from a fixed text and keeps what is written.
type tape struct {
	net.Conn
	in     io.Reader
	out    bytes.Buffer
	closed bool
}

func (c *tape) Read(p []byte) (int, error)         { return c.in.Read(p) }
func (c *tape) Write(p []byte) (int, error)        { return c.out.Write(p) }
func (c *tape) Close() error                       { c.closed = true; return nil }
func (c *tape) SetReadDeadline(t time.Time) error  { return nil }
func (c *tape) SetWriteDeadline(t time.Time) error { return nil }

const upgraded = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"

// serverFrame is a frame as a server sends it.
func serverFrame(opcode byte, payload string) string {
	head := []byte{0x80 | opcode}
	switch n := len(payload); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	return string(head) + payload
}

func text(payload string) string { return serverFrame(1, payload) }

// clientFrame is a masked frame as a client sends it.
func clientFrame(payload string) []byte {
	mask := []byte{1, 2, 3, 4}
	frame := []byte{0x81, 0x80 | byte(len(payload))}
	if len(payload) > 125 {
		frame = binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(len(payload)))
	}
	frame = append(frame, mask...)
	for i := range len(payload) {
		frame = append(frame, payload[i]^mask[i%4])
	}
	return frame
}

func silent(error) {}

// TestWire_PassesEverythingOn: whatever the sizes and however the bytes arrive, all of them are delivered.
func TestWire_PassesEverythingOn(t *testing.T) {
	frames := []string{
		text(`{"op":10,"d":{"heartbeat_interval":41250}}`),
		text(`{"op":0,"t":"X","s":1,"d":{"op":9}}`),
		text(`{"op":0,"t":"X","s":1,"d":"` + strings.Repeat("x", 200) + `"}`),
		text(`{"op":0,"t":"X","s":1,"d":"` + strings.Repeat("x", inspectLimit) + `"}`),
		text(`{"op":0,"t":"X","s":1,"d":"` + strings.Repeat("y", 1<<17) + `"}`),
		text(`{"op":9,"d":false,"x":"` + strings.Repeat("x", inspectLimit) + `"}`), // too large to be looked into
		text(``), text(`nonsense`), text(`[]`), text(`{"op":"9"}`), text(`{"op":11}`), text(`{"op":1,"d":null}`),
		serverFrame(2, "\x01\x02\x03"), serverFrame(9, "ping"), serverFrame(10, "pong"),
		"\x01\x02ab", "\x80\x02cd", // a message in two fragments
	}
	stream := upgraded + strings.Join(frames, "")
	for name, in := range map[string]io.Reader{
		"at once":      strings.NewReader(stream),
		"byte by byte": iotest.OneByteReader(strings.NewReader(stream)),
		"in halves":    iotest.HalfReader(strings.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(&tape{in: in}, silent)
			got, err := io.ReadAll(w)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != stream {
				t.Errorf("%d bytes came through of %d, or others", len(got), len(stream))
			}
			if _, greeted := w.state(); !greeted {
				t.Error("HELLO was not seen")
			}
		})
	}
}

func TestWire_NoWebSocket(t *testing.T) {
	t.Parallel()
	stream := "HTTP/1.1 403 Forbidden\r\nContent-Length: 30\r\n\r\n\x81\x7f <html>not a frame</html>"
	got, err := io.ReadAll(newWire(&tape{in: strings.NewReader(stream)}, silent))
	if err != nil || string(got) != stream {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestWire_Withholds: what would send discordgo into a deadlock or a storm of logins never reaches it.
func TestWire_Withholds(t *testing.T) {
	tests := map[string]struct {
		frame string
		want  error
	}{
		"Op 7":                   {`{"op":7,"d":null}`, errReconnect},
		"Op 7, Discord's order":  {`{"t":null,"s":null,"op":7,"d":null}`, errReconnect},
		"Op 9 true":              {`{"op":9,"d":true}`, invalidSession{resumable: true}},
		"Op 9 false":             {`{"t":null,"s":null,"op":9,"d":false}`, invalidSession{}},
		"Op 9 without data":      {`{"op":9}`, invalidSession{}},
		"Op 9, with white space": {`{ "op" : 9 , "d" : false }`, invalidSession{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := upgraded + text(`{"op":10,"d":{"heartbeat_interval":41250}}`)
			conn := &tape{in: strings.NewReader(before + text(tt.frame) + text(`{"op":0}`))}
			var told error
			w := newWire(conn, func(cause error) { told = cause })
			got, err := io.ReadAll(w)
			if string(got) != before || !errors.Is(err, tt.want) {
				t.Errorf("read %q and %v, want it to end with %v", got, err, tt.want)
			}
			if cause, _ := w.state(); !errors.Is(cause, tt.want) || !errors.Is(told, tt.want) || !conn.closed {
				t.Errorf("cause %v, told %v, closed %v", cause, told, conn.closed)
			}
			if _, err := w.Write(clientFrame(`{"op":1,"d":1}`)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("write afterwards: %v", err)
			}
			if conn.out.Len() > 0 {
				t.Error("a close frame was sent: the session could not be resumed")
			}
		})
	}
}

func TestWire_KeepsTheCloseCode(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]int{"\x0f\xa4gone": 4004, "": 1005} {
		w := newWire(&tape{in: strings.NewReader(upgraded + serverFrame(8, payload))}, silent)
		if _, err := io.ReadAll(w); err != nil {
			t.Fatal(err)
		}
		if cause, _ := w.state(); !errors.Is(cause, closeError{want}) {
			t.Errorf("cause %v, want code %d", cause, want)
		}
	}
}

func TestWire_OneLoginPerConnection(t *testing.T) {
	t.Parallel()
	conn := &tape{}
	w := newWire(conn, silent)
	identify := clientFrame(`{"op":2,"d":{"token":"` + strings.Repeat("x", 200) + `"}}`)
	if _, err := w.Write(identify); err != nil {
		t.Fatal(err)
	}
	n := conn.out.Len()
	if _, err := w.Write(identify); err == nil || conn.out.Len() != n {
		t.Errorf("a second login went out: %v", err)
	}
	if cause, _ := w.state(); !errors.Is(cause, errTwice) {
		t.Errorf("cause %v", cause)
	}
}

func TestClientOp(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]int{
		`{"op":1,"d":251}`: 1, `{"op":2,"d":{}}`: 2, `{"op":6,"d":{}}`: 6, `{"op":10,"d":1}`: -1, `{"d":1,"op":2}`: -1, `{"op":`: -1, ``: -1, `{"op":x,}`: -1,
	} {
		if got := clientOp(clientFrame(payload)); got != want {
			t.Errorf("clientOp(%s) = %d, want %d", payload, got, want)
		}
	}
	for _, raw := range []string{"", "GET /?v=9 HTTP/1.1", "\x88\x82\x01\x02\x03\x04\x05\x06", "\x81\x05hello", "\x81\xfe", "\x81\xff\x00"} {
		if got := clientOp([]byte(raw)); got != -1 {
			t.Errorf("clientOp(%q) = %d", raw, got)
		}
	}
}

func FuzzWire(f *testing.F) {
	f.Add([]byte(upgraded + text(`{"op":10,"d":{"heartbeat_interval":41250}}`) + text(`{"op":7}`)))
	f.Add([]byte(upgraded + serverFrame(8, "\x0f\xa4")))
	f.Add([]byte(upgraded + "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xffx"))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		got, err := io.ReadAll(newWire(&tape{in: bytes.NewReader(stream)}, silent))
		if !bytes.HasPrefix(stream, got) {
			t.Fatalf("read something else than was sent")
		}
		if err == nil && len(got) < len(stream) {
			t.Errorf("%d of %d bytes without an error", len(got), len(stream))
		}
	})
}
