package channeltest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
)

func testEvents(t *testing.T, r *Rig) {
	b := start(t, r)
	for _, p := range b.places() {
		words := "hello, 你好, สวัสดี 👋 " + marker
		began := time.Now()
		_, in := b.say(p, words, Manner{Mention: true})
		if in.Kind != channels.Message {
			t.Errorf("%s: kind %q, want %q", p.name, in.Kind, channels.Message)
		}
		if diff := cmp.Diff(p.Address, in.Address); diff != "" {
			t.Errorf("%s: address (-want +got):\n%s", p.name, diff)
		}
		if in.Speaker.ID != p.Address.User || in.Speaker.Bot {
			t.Errorf("%s: speaker %+v, want the person %q", p.name, in.Speaker, p.Address.User)
		}
		if in.ID == "" {
			t.Errorf("%s: event without ID", p.name)
		}
		if d := in.Time.Sub(began); d < -time.Minute || d > time.Minute {
			t.Errorf("%s: time %v, want now", p.name, in.Time)
		}
		if len(in.Parts) == 0 || in.Parts[0].Type != channels.Text {
			t.Errorf("%s: parts %+v, want text", p.name, in.Parts)
		}
	}
}

func testMention(t *testing.T, r *Rig) {
	b := start(t, r)
	for _, p := range b.places() {
		if p.Address.Kind == channels.Direct {
			if _, in := b.say(p, "direct "+marker, Manner{}); !in.Mentioned {
				t.Errorf("%s: Mentioned is false in a direct chat", p.name)
			}
			continue
		}
		b.tell(p, "among ourselves "+marker, Manner{})
		if _, in := b.say(p, "to the bot "+marker, Manner{Mention: true}); !in.Mentioned {
			t.Errorf("%s: Mentioned is false although the bot is named", p.name)
		}
		for _, in := range b.sink.all() {
			if strings.Contains(in.PlainText(), "among ourselves") && in.Mentioned {
				t.Errorf("%s: Mentioned is true although nobody speaks to the bot", p.name)
			}
		}
		receipt, err := b.Adapter.Send(b.ctx, b.only(message("to-be-quoted", p, nil, text("quote me "+marker))))
		if err != nil {
			t.Fatalf("%s: Send: %v", p.name, err)
		}
		if len(receipt.MessageIDs) == 0 {
			t.Errorf("%s: receipt without message IDs", p.name)
			continue
		}
		if _, in := b.say(p, "answering the bot "+marker, Manner{ReplyTo: receipt.MessageIDs[0]}); !in.Mentioned {
			t.Errorf("%s: Mentioned is false although a message of the bot is answered", p.name)
		}
	}
}

func testEventIDs(t *testing.T, r *Rig) {
	b := start(t, r)
	for _, p := range b.places() {
		const n = 10
		var want []string
		for i := range n {
			words := fmt.Sprintf("%s message %d.", p.name, i)
			want = append(want, words)
			b.tell(p, words+" "+marker, Manner{Mention: true})
		}
		b.await(want[n-1])
		ids := map[string]bool{}
		var got []string
		for _, in := range b.sink.all() {
			for _, words := range want {
				if strings.Contains(in.PlainText(), words) {
					got = append(got, words)
					ids[in.ID] = true
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", p.name, diff)
		}
		if len(ids) != n {
			t.Errorf("%s: %d IDs for %d events", p.name, len(ids), n)
		}
	}
}

func testRedelivery(t *testing.T, r *Rig) {
	b := start(t, r)
	for _, p := range b.places() {
		if p.Redeliver == nil {
			continue
		}
		words := p.name + " once more " + marker
		said, first := b.say(p, words, Manner{Mention: true})
		if err := p.Redeliver(b.ctx, said); err != nil {
			t.Fatalf("%s: redeliver: %v", p.name, err)
		}
		// An adapter may drop what it knows; what it hands in has the same ID. The next message shows
		// that the redelivery is over and done with.
		b.say(p, p.name+" afterwards "+marker, Manner{Mention: true})
		for _, in := range b.sink.all() {
			if strings.Contains(in.PlainText(), words) && in.ID != first.ID {
				t.Errorf("%s: redelivered as %q, at first it was %q", p.name, in.ID, first.ID)
			}
		}
	}
}

func testBrokenSink(t *testing.T, r *Rig) {
	b := start(t, r)
	p := b.places()[0]
	b.say(p, "before "+marker, Manner{})
	b.sink.breakDown()
	words := "while the journal is broken " + marker
	said := b.tell(p, words, Manner{})
	b.eventually("the sink is asked", func() bool { return b.sink.refusals() > 0 })
	if _, ok := b.Adapter.(channels.Webhook); ok && !said.Refused {
		t.Error("the platform was told that the event is taken, and it is not")
	}
	b.sink.mend()
	if p.Redeliver != nil {
		if err := p.Redeliver(b.ctx, said); err != nil {
			t.Fatalf("redeliver: %v", err)
		}
	}
	b.await(words)
	b.say(p, "after "+marker, Manner{})
}

func testSlowSink(t *testing.T, r *Rig) {
	b := start(t, r)
	p := b.places()[0]
	b.sink.stall()
	told := make(chan struct{})
	go func() {
		defer close(told)
		for i := range 3 {
			if _, err := p.Say(b.ctx, fmt.Sprintf("slowly %d %s", i, marker), Manner{}); err != nil {
				t.Errorf("say: %v", err)
			}
		}
	}()
	pause(b.ctx, 200*time.Millisecond)
	if n := len(b.sink.all()); n != 0 {
		t.Errorf("%d events although the sink has not taken any", n)
	}
	b.sink.mend()
	<-told
	for i := range 3 {
		b.await(fmt.Sprintf("slowly %d", i))
	}
	if n := len(b.sink.all()); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
}

func testJunk(t *testing.T, r *Rig) {
	b := start(t, r)
	p := b.places()[0]
	for i, junk := range append(b.forgeries(), b.Junk...) {
		junk.Send(t)
		words := fmt.Sprintf("after junk %d. %s", i, marker)
		b.say(p, words, Manner{})
		for _, in := range b.sink.all() {
			if !strings.Contains(in.PlainText(), "after junk") {
				t.Errorf("%s: became the event %+v", junk.Name, in)
			}
		}
	}
}

// forgeries are calls of the webhook by somebody who is not the platform.
func (b *bench) forgeries() []Junk {
	hook, ok := b.Adapter.(channels.Webhook)
	if !ok {
		return nil
	}
	handler := hook.Webhook(b.sink)
	var out []Junk
	for name, body := range map[string]string{
		"empty":     "",
		"no JSON":   "hello",
		"wrong":     `{"destination":3,"events":{}}`,
		"unsigned":  `{"destination":"U0123456789abcdef0123456789abcdef","events":[]}`,
		"binary":    "\x00\xff\xfe",
		"very long": strings.Repeat("x", 8<<20),
		"very deep": strings.Repeat("[", 100_000),
	} {
		out = append(out, Junk{Name: "forged call, " + name, Send: func(t *testing.T) {
			req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte(body)))
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, req)
			if rec.Code < 400 || rec.Code >= 500 {
				t.Errorf("forged call, %s: status %d, want one of 400 to 499", name, rec.Code)
			}
		}})
	}
	return out
}

func testRunEnds(t *testing.T, r *Rig) {
	b := start(t, r)
	p := b.places()[0]
	b.say(p, "hello "+marker, Manner{})
	if err := b.deliver(b.only(message("turn-1", p, nil, text("hi "+marker)))); err != nil {
		t.Errorf("Send: %v", err)
	}
	if err := b.end(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func testTyping(t *testing.T, r *Rig) {
	typer, ok := r.Adapter.(channels.Typer)
	if !ok {
		t.Skip("the adapter is no channels.Typer")
	}
	b := start(t, r)
	p := b.places()[0]
	_, in := b.say(p, "think hard "+marker, Manner{})
	if err := typer.Typing(b.ctx, in.Address); err != nil {
		t.Fatalf("Typing: %v", err)
	}
	b.eventually("the sign of work is shown", p.Typing)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if err := typer.Typing(ctx, in.Address); err == nil {
		t.Error("Typing: no error although its context had ended")
	}
	for _, p := range b.places() {
		_, in := b.say(p, "anywhere "+marker, Manner{Mention: true})
		if err := typer.Typing(b.ctx, in.Address); err != nil {
			t.Errorf("%s: Typing: %v", p.name, err)
		}
	}
}

func testProfile(t *testing.T, r *Rig) {
	profiler, ok := r.Adapter.(channels.Profiler)
	if !ok {
		t.Skip("the adapter is no channels.Profiler")
	}
	b := start(t, r)
	for _, p := range b.places() {
		for range 2 {
			got, err := profiler.Profile(b.ctx, p.Address)
			if err != nil {
				t.Fatalf("%s: Profile: %v", p.name, err)
			}
			if got.ID != p.Address.User || got.Name != p.Name {
				t.Errorf("%s: Profile = %+v, want %q with ID %q", p.name, got, p.Name, p.Address.User)
			}
		}
	}
}

func testStream(t *testing.T, r *Rig) {
	streamer, ok := r.Adapter.(channels.Streamer)
	if !ok {
		t.Skip("the adapter is no channels.Streamer")
	}
	b := start(t, r)
	for _, p := range b.places() {
		_, in := b.say(p, "tell me slowly "+marker, Manner{Mention: true})
		live, err := streamer.Stream(b.ctx, message("stream-"+p.name+"/0", p, &in))
		if err != nil {
			t.Fatalf("%s: Stream: %v", p.name, err)
		}
		const preview, final = "a preview in words ", "the final answer. " + marker
		for range 20 {
			if err := live.Write(b.ctx, preview); err != nil {
				t.Fatalf("%s: Write: %v", p.name, err)
			}
		}
		if err := live.Close(); err != nil {
			t.Fatalf("%s: Close: %v", p.name, err)
		}
		if err := b.deliver(b.only(message("stream-"+p.name, p, &in, text(final)))); err != nil {
			t.Fatalf("%s: Send: %v", p.name, err)
		}
		b.eventually(p.name+": the answer has replaced the preview", func() bool {
			return shown(p, "the final answer") == 1 && shown(p, "preview") == 0
		})
	}
}
