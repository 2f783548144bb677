package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/openai/openai-go/v3/packages/ssestream"
)

// maxJSONBody bounds an answer that comes as one JSON document.
const maxJSONBody = 32 << 20

// answerBody is the body of an answer with a successful status. Servers that do not stream answer with
// one JSON document, and proxies with a page, whatever content type they tell.
type answerBody struct {
	// whole is the document, nil when the answer is a stream.
	whole  []byte
	events iter.Seq2[ssestream.Event, error]
}

func openBody(resp *http.Response) (answerBody, error) {
	br := bufio.NewReader(resp.Body)
	first, err := firstByte(br)
	switch {
	case errors.Is(err, io.EOF):
		return answerBody{}, early("the answer is empty")
	case err != nil:
		return answerBody{}, err
	case first == '{' || first == '[':
		raw, err := io.ReadAll(io.LimitReader(br, maxJSONBody))
		if err != nil {
			return answerBody{}, err
		}
		if !json.Valid(raw) {
			return answerBody{}, early("the answer is cut off")
		}
		return answerBody{whole: raw}, nil
	case first == '<':
		return answerBody{}, early("the answer is a page, not a stream of events")
	}
	stream := *resp
	stream.Body = struct {
		io.Reader
		io.Closer
	}{br, resp.Body}
	return answerBody{events: events(ssestream.NewDecoder(&stream))}, nil
}

// firstByte returns the first byte that is not white space, and leaves it to be read.
func firstByte(br *bufio.Reader) (byte, error) {
	for {
		b, err := br.ReadByte()
		if err != nil {
			return 0, err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return b, br.UnreadByte()
	}
}

// events yields the events of a stream up to its end mark.
func events(dec ssestream.Decoder) iter.Seq2[ssestream.Event, error] {
	return func(yield func(ssestream.Event, error) bool) {
		for dec.Next() {
			ev := dec.Event()
			ev.Data = bytes.TrimSpace(ev.Data)
			if len(ev.Data) == 0 {
				continue
			}
			if bytes.Equal(ev.Data, []byte("[DONE]")) {
				return
			}
			if !json.Valid(ev.Data) {
				yield(ev, early("an event of the stream is not JSON"))
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
		if err := dec.Err(); err != nil {
			yield(ssestream.Event{}, err)
		}
	}
}

// encode is json.Marshal without the escaping of <, > and &.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("encode: " + err.Error()) // only strings, raw JSON and structs of them come here
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
