package discord

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Why a gateway connection ended. closeError and invalidSession carry more.
var (
	errReconnect = errors.New("discord asks to reconnect")
	errNoACK     = errors.New("heartbeat not acknowledged")
	errTwice     = errors.New("second identify on one connection")
	errBacklog   = errors.New("events arrive faster than they are accepted")
	errFinished  = errors.New("connection closed on purpose")
	errCutOff    = errors.New("opening took too long")
)

// invalidSession is Op 9.
type invalidSession struct{ resumable bool }

func (e invalidSession) Error() string {
	if e.resumable {
		return "discord asks to resume the session"
	}
	return "discord has ended the session"
}

const (
	// helloWait bounds the silence before HELLO names the heartbeat interval.
	helloWait = 20 * time.Second
	// writeWait bounds one write: what the bot sends is tiny.
	writeWait = 10 * time.Second
	// inspectLimit is the largest frame that is looked into; all but events are far smaller.
	inspectLimit = 4 << 10
)

// wire is the connection under discordgo's web socket, above TLS. It sees every frame and ends the
// connection where the library would deadlock, storm, or stay deaf:
//
//   - silence: nothing read for two heartbeat intervals, or before HELLO;
//   - a heartbeat without an acknowledgement;
//   - Op 7 and Op 9, which v0.29.0 answers with a deadlock inside Open and with IDENTIFYs as fast as the
//     line carries them: the frame is withheld and reading fails instead;
//   - a second IDENTIFY.
//
// A connection that was ended so writes no close frame: a close by 1000 would end the session, and this
// way it can be resumed. The first cause is kept.
type wire struct {
	net.Conn
	br *bufio.Reader

	// Used by the one reader.
	upgraded bool
	opaque   bool   // not a web socket after all: pass everything through
	pending  []byte // inspected, to be delivered
	passing  uint64 // bytes left of a frame that is passed through unseen
	frame    []byte // buffer that pending points into

	mu         sync.Mutex
	cause      error
	finishing  bool
	interval   time.Duration // 0 before HELLO
	identified bool
	ack        *time.Timer // runs while a heartbeat waits for its acknowledgement

	down      func(cause error) // called once, with the first cause
	closed    chan struct{}     // closed when discordgo closes its end
	closeOnce sync.Once
}

// newWire watches c. down is called once when the connection is over, with the cause.
func newWire(c net.Conn, down func(error)) *wire {
	w := &wire{Conn: c, down: down, closed: make(chan struct{})}
	w.br = bufio.NewReaderSize(reader{w}, 16<<10)
	return w
}

// reader reads from the connection itself, each time with a fresh deadline.
type reader struct{ w *wire }

func (r reader) Read(p []byte) (int, error) {
	r.w.mu.Lock()
	if r.w.finishing {
		r.w.mu.Unlock()
		return 0, errFinished
	}
	idle := helloWait
	if r.w.interval > 0 {
		idle = 2 * r.w.interval
	}
	_ = r.w.Conn.SetReadDeadline(time.Now().Add(idle))
	r.w.mu.Unlock()
	return r.w.Conn.Read(p)
}

// Read delivers at most one frame.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.pending) == 0 && w.passing == 0 && !w.opaque {
		if err := w.next(); err != nil {
			if errors.Is(err, io.EOF) && w.br.Buffered() > 0 {
				err = io.ErrUnexpectedEOF
			}
			w.end(err)
			return 0, err
		}
	}
	if len(w.pending) > 0 {
		n := copy(p, w.pending)
		w.pending = w.pending[n:]
		return n, nil
	}
	if !w.opaque {
		p = p[:min(uint64(len(p)), w.passing)]
	}
	n, err := w.br.Read(p)
	if !w.opaque {
		w.passing -= uint64(n)
	}
	if err != nil {
		w.end(err)
	}
	return n, err
}

// next reads one line of the handshake's answer, or one frame.
func (w *wire) next() error {
	if !w.upgraded {
		line, err := w.br.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		w.frame = append(w.frame[:0], line...)
		w.pending = w.frame
		switch {
		case bytes.HasPrefix(line, []byte("HTTP/1.1 ")):
			w.opaque = !bytes.HasPrefix(line[9:], []byte("101"))
		case len(bytes.TrimSpace(line)) == 0:
			w.upgraded = true
		}
		return nil
	}
	head, err := w.br.Peek(2)
	if err != nil {
		return err
	}
	size, length := 2, uint64(head[1]&0x7f)
	switch length {
	case 126:
		size = 4
	case 127:
		size = 10
	}
	if head, err = w.br.Peek(size); err != nil {
		return err
	}
	switch size {
	case 4:
		length = uint64(binary.BigEndian.Uint16(head[2:]))
	case 10:
		length = binary.BigEndian.Uint64(head[2:])
	}
	kind := head[0] & 0x8f // FIN and the opcode
	w.frame = append(w.frame[:0], head...)
	_, _ = w.br.Discard(size)
	if length > inspectLimit {
		w.pending, w.passing = w.frame, length
		return nil
	}
	w.frame = append(w.frame, make([]byte, length)...)
	if _, err := io.ReadFull(w.br, w.frame[size:]); err != nil {
		return fmt.Errorf("read frame: %w", err)
	}
	w.pending = w.frame
	if err := w.inspect(kind, w.frame[size:]); err != nil {
		w.pending = nil
		return err
	}
	return nil
}

const (
	wholeText  = 0x80 | 1
	closeFrame = 0x80 | 8
)

// inspect looks into one frame from Discord. An error withholds it and ends the connection.
func (w *wire) inspect(kind byte, payload []byte) error {
	switch kind {
	case closeFrame:
		code := 1005 // "no status received"
		if len(payload) >= 2 {
			code = int(binary.BigEndian.Uint16(payload))
		}
		w.note(closeError{code})
		return nil
	case wholeText:
	default:
		return nil
	}
	if isDispatch(payload) {
		return nil
	}
	var f struct {
		Op   int             `json:"op"`
		Data json.RawMessage `json:"d"`
	}
	if json.Unmarshal(payload, &f) != nil {
		return nil
	}
	switch f.Op {
	case opReconnect:
		return errReconnect
	case opInvalidSession:
		return invalidSession{resumable: string(f.Data) == "true"}
	case opHello:
		var hello struct {
			Interval float64 `json:"heartbeat_interval"`
		}
		if json.Unmarshal(f.Data, &hello) == nil && hello.Interval > 0 {
			w.mu.Lock()
			w.interval = time.Duration(hello.Interval * float64(time.Millisecond))
			w.mu.Unlock()
		}
	case opACK:
		w.mu.Lock()
		w.stopACK()
		w.mu.Unlock()
	}
	return nil
}

// isDispatch reports without decoding that a message is an event. A quote inside a JSON string is
// escaped, so the first "op" is a name, and no nested object comes before it.
func isDispatch(payload []byte) bool {
	const name = `"op":`
	i := bytes.Index(payload, []byte(name))
	return i >= 0 && i+len(name)+1 < len(payload) && payload[i+len(name)] == '0' && (payload[i+len(name)+1] == ',' || payload[i+len(name)+1] == '}')
}

// Write passes on what discordgo sends, but for what must not be sent.
func (w *wire) Write(p []byte) (int, error) {
	op := clientOp(p)
	w.mu.Lock()
	if w.cause != nil && !w.finishing {
		w.mu.Unlock()
		return 0, net.ErrClosed
	}
	switch op {
	case opIdentify:
		if w.identified {
			w.mu.Unlock()
			w.end(errTwice)
			return 0, net.ErrClosed
		}
		w.identified = true
	case opHeartbeat:
		// "No ACK before the next heartbeat" is the sign of a dead connection. The timer is a little
		// quicker than the next beat, and is not set anew by a beat that Discord asked for.
		if w.ack == nil && w.interval > 0 {
			w.ack = time.AfterFunc(w.interval*3/4, func() { w.end(errNoACK) })
		}
	}
	_ = w.Conn.SetWriteDeadline(time.Now().Add(writeWait))
	w.mu.Unlock()
	return w.Conn.Write(p)
}

// clientOp returns the opcode of the message in a masked text frame, -1 for anything else. discordgo
// writes each message as one frame that begins with its opcode.
func clientOp(p []byte) int {
	const prefix = `{"op":`
	if len(p) < 2 || p[0] != wholeText || p[1]&0x80 == 0 {
		return -1
	}
	at := 2
	switch p[1] & 0x7f {
	case 126:
		at = 4
	case 127:
		at = 10
	}
	if len(p) < at+4+len(prefix)+2 {
		return -1
	}
	mask, body := p[at:at+4], p[at+4:]
	char := func(i int) byte { return body[i] ^ mask[i%4] }
	for i := range len(prefix) {
		if char(i) != prefix[i] {
			return -1
		}
	}
	op := int(char(len(prefix))) - '0'
	if op < 0 || op > 9 || char(len(prefix)+1) != ',' {
		return -1
	}
	return op
}

// note keeps the first cause of the end.
func (w *wire) note(cause error) {
	w.mu.Lock()
	first := w.cause == nil
	if first {
		w.cause = cause
	}
	w.mu.Unlock()
	if first {
		w.down(cause)
	}
}

// end cuts the connection.
func (w *wire) end(cause error) {
	w.note(cause)
	w.mu.Lock()
	w.stopACK()
	finishing := w.finishing
	w.mu.Unlock()
	if !finishing {
		_ = w.Conn.Close()
	}
}

func (w *wire) stopACK() {
	if w.ack != nil {
		w.ack.Stop()
		w.ack = nil
	}
}

// finish makes reading fail and leaves writing possible, so that discordgo says goodbye by itself: its
// own Close may not run beside its reader.
func (w *wire) finish() {
	w.mu.Lock()
	w.finishing = true
	first := w.cause == nil
	if first {
		w.cause = errFinished
	}
	_ = w.Conn.SetReadDeadline(time.Unix(1, 0))
	w.mu.Unlock()
	if first {
		w.down(errFinished)
	}
}

// Close is discordgo closing its end.
func (w *wire) Close() error {
	w.end(net.ErrClosed)
	w.closeOnce.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// SetDeadline and SetReadDeadline do nothing: the wire sets its own for each read and write.
func (w *wire) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (w *wire) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// state returns why the connection ended, if it has, and whether Discord said HELLO on it.
func (w *wire) state() (cause error, greeted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause, w.interval > 0
}
