package discord

import (
	"strings"
	"testing"

	"botd/channels"
)

func BenchmarkMessageInbound(b *testing.B) {
	a := unconnected(b)
	raw := []byte(sampleMessage)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		m, err := decodeMessage(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := a.inbound(b.Context(), m); !ok {
			b.Fatal("no event")
		}
	}
}

func BenchmarkCompose(b *testing.B) {
	a := unconnected(b)
	for name, text := range map[string]string{
		"short": "**Yes.** See `x`.",
		"long":  strings.Repeat("A paragraph with **bold** words and a [link](https://a.test).\n\n- item\n\n```go\nfmt.Println(1)\n```\n\n", 100),
	} {
		b.Run(name, func(b *testing.B) {
			m := channels.Outbound{ID: "x", Reply: reply{Message: "1"}.encode(), Quote: true, Parts: []channels.Part{{Type: channels.Markdown, Text: text}}}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				a.Compose(m)
			}
		})
	}
}

// BenchmarkWire is what the watch over the connection costs for each event.
func BenchmarkWire(b *testing.B) {
	frame := text(`{"t":"MESSAGE_CREATE","s":42,"op":0,"d":` + sampleMessage + `}`)
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	w := newWire(&tape{in: &endless{frame: frame, rest: upgraded}}, silent)
	buf := make([]byte, 4096)
	for b.Loop() {
		for n := 0; n < len(frame); {
			read, err := w.Read(buf)
			if err != nil {
				b.Fatal(err)
			}
			n += read
		}
	}
}

type endless struct{ frame, rest string }

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.frame
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
