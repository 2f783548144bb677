package channeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
)

func testInfo(t *testing.T, r *Rig) {
	before := r.Adapter.Info()
	if before.Channel == "" || before.Platform == "" {
		t.Errorf("Info = %+v, want a channel and a platform", before)
	}
	if before.Channel != r.Direct.Address.Channel {
		t.Errorf("Info.Channel = %q, want that of the addresses, %q", before.Channel, r.Direct.Address.Channel)
	}
	if _, ok := r.Adapter.(channels.Typer); ok != (before.TypingEvery > 0) {
		t.Errorf("TypingEvery = %v, and the adapter is a Typer: %v", before.TypingEvery, ok)
	}
	b := start(t, r)
	if after := b.Adapter.Info(); after != before {
		t.Errorf("Info changed from %+v to %+v", before, after)
	}
}

func testComposePure(t *testing.T, r *Rig) {
	m := channels.Outbound{
		ID: "turn-1", To: r.Direct.Address, Quote: true,
		Parts: []channels.Part{markdown(longAnswer(3000)), text("literal " + marker)},
	}
	given, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	first := r.Adapter.Compose(m)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if diff := cmp.Diff(first, r.Adapter.Compose(m)); diff != "" {
				t.Errorf("Compose gives different sends for the same message:\n%s", diff)
			}
		})
	}
	all.Wait()
	if now, _ := json.Marshal(m); string(now) != string(given) {
		t.Error("Compose changed the message it was given")
	}
	for i, s := range first {
		if len(s.Parts) == 0 {
			t.Errorf("send %d holds nothing", i)
		}
		if s.To != m.To {
			t.Errorf("send %d goes to %+v, want %+v", i, s.To, m.To)
		}
	}
}

func testComposeNothing(t *testing.T, r *Rig) {
	for name, parts := range map[string][]channels.Part{
		"no parts":       nil,
		"empty text":     {text("")},
		"blank text":     {text(" \n\t ")},
		"empty Markdown": {markdown("")},
		"blank Markdown": {markdown("\n\n  \n"), markdown(" ")},
		"a comment":      {markdown("<!-- nothing to see -->")},
	} {
		if sends := r.Adapter.Compose(channels.Outbound{ID: "turn-1", To: r.Direct.Address, Parts: parts}); len(sends) > 0 {
			t.Errorf("%s: %d sends, want none", name, len(sends))
		}
	}
}

func testLongAnswer(t *testing.T, r *Rig) {
	b := start(t, r)
	answer := longAnswer(20_000)
	for _, p := range b.places() {
		_, in := b.say(p, "tell me everything "+marker, Manner{Mention: true})
		for i, m := range b.compose(message("long-"+p.name, p, &in, markdown(answer))) {
			if err := b.deliver(m); err != nil {
				t.Fatalf("%s: send %d: %v", p.name, i, err)
			}
		}
		want := letters(answer)
		b.eventually(p.name+": the whole answer is shown", func() bool {
			return len(letters(strings.Join(p.Shown(), ""))) >= len(want)
		})
		if got := letters(strings.Join(p.Shown(), "")); got != want {
			t.Errorf("%s: what is shown is not the whole answer in order (-want +got):\n%s", p.name, difference(want, got))
		}
	}
}

// difference shows where two long texts part.
func difference(want, got string) string {
	w, g := []rune(want), []rune(got)
	i := 0
	for i < min(len(w), len(g)) && w[i] == g[i] {
		i++
	}
	from := max(0, i-20)
	return fmt.Sprintf("-%q\n+%q", string(w[from:min(len(w), i+40)]), string(g[from:min(len(g), i+40)]))
}

func testLiteralText(t *testing.T, r *Rig) {
	b := start(t, r)
	const literal = "2 * 3 * 4 is **not bold**, # and ~~this~~ stays " + marker
	p := b.places()[0]
	if err := b.deliver(b.only(message("literal", p, nil, text(literal)))); err != nil {
		t.Fatalf("Send: %v", err)
	}
	// A platform with markup shows literal text by escaping it.
	b.eventually("the text is shown", func() bool { return len(p.Shown()) == 1 })
	if got := strings.ReplaceAll(p.Shown()[0], `\`, ""); got != literal {
		t.Errorf("shown %q, want %q", got, literal)
	}
}

func testIdempotent(t *testing.T, r *Rig) {
	b := start(t, r)
	for _, p := range b.places() {
		_, in := b.say(p, "hello "+marker, Manner{Mention: true})
		for name, event := range map[string]*channels.Inbound{"answer": &in, "message": nil} {
			words := fmt.Sprintf("%s %s %s", name, p.name, marker)
			m := b.only(message("turn-"+name+"-"+p.name, p, event, text(words)))
			receipt, err := b.Adapter.Send(b.ctx, m)
			if err != nil {
				t.Fatalf("%s: first send: %v", words, err)
			}
			// The daemon died before it noted that the send went well, and tries again after its restart.
			m.Uncertain = m.Once
			again, err := b.Adapter.Send(b.ctx, m)
			switch {
			case err == nil:
				if len(again.MessageIDs) > 0 && len(receipt.MessageIDs) > 0 && again.MessageIDs[0] != receipt.MessageIDs[0] {
					t.Errorf("%s: the second send made message %s, the first %s", words, again.MessageIDs[0], receipt.MessageIDs[0])
				}
			case b.checkError(err).Kind != channels.Ambiguous:
				t.Errorf("%s: second send: %v, want none or an ambiguous one", words, err)
			}
			b.eventually(words+": shown", func() bool { return shown(p, words) > 0 })
			if n := shown(p, words); n != 1 {
				t.Errorf("%s: shown %d times", words, n)
			}
		}
	}
}

func testOrder(t *testing.T, r *Rig) {
	b := start(t, r)
	for _, p := range b.places() {
		var want []string
		for i := range 8 {
			words := fmt.Sprintf("number %d %s", i, marker)
			want = append(want, words)
			if err := b.deliver(b.only(message(fmt.Sprintf("order-%s-%d", p.name, i), p, nil, text(words)))); err != nil {
				t.Fatalf("%s: send %d: %v", p.name, i, err)
			}
		}
		b.eventually(p.name+": all are shown", func() bool { return len(p.Shown()) >= len(want) })
		if diff := cmp.Diff(want, unescaped(p.Shown())); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", p.name, diff)
		}
	}
}

func unescaped(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = strings.ReplaceAll(s, `\`, "")
	}
	return out
}

func testConcurrentSends(t *testing.T, r *Rig) {
	b := start(t, r)
	const senders = 6
	var all sync.WaitGroup
	for _, p := range b.places() {
		for i := range senders {
			m := b.only(message(fmt.Sprintf("at-once-%s-%d", p.name, i), p, nil, text(fmt.Sprintf("part %d. %s", i, marker))))
			all.Go(func() {
				if err := b.deliver(m); err != nil {
					t.Errorf("%s: send %d: %v", p.name, i, err)
				}
			})
		}
	}
	all.Wait()
	for _, p := range b.places() {
		for i := range senders {
			words := fmt.Sprintf("part %d. ", i)
			b.eventually(p.name+": "+words+"is shown", func() bool { return shown(p, words) > 0 })
			if n := shown(p, words); n != 1 {
				t.Errorf("%s: %q shown %d times", p.name, words, n)
			}
		}
	}
}

func testCancelledSend(t *testing.T, r *Rig) {
	b := start(t, r)
	p := b.places()[0]
	const words = "cancelled " + marker
	m := b.only(message("cancelled", p, nil, text(words)))
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.Adapter.Send(ctx, m); err == nil {
		t.Error("Send: no error although its context had ended")
	} else {
		b.checkError(err)
	}
	if err := b.deliver(m); err != nil {
		t.Fatalf("Send: %v", err)
	}
	b.eventually("the message is shown", func() bool { return shown(p, words) > 0 })
	if n := shown(p, words); n != 1 {
		t.Errorf("shown %d times", n)
	}
}

func testFailures(t *testing.T, fresh func(*testing.T) *Rig) {
	for i, f := range fresh(t).Failures {
		t.Run(f.Name, func(t *testing.T) {
			b := start(t, fresh(t))
			testFailure(t, b, b.Failures[i])
		})
	}
}

func testFailure(t *testing.T, b *bench, f Failure) {
	p := b.places()[0]
	var event *channels.Inbound
	if f.Reply {
		_, in := b.say(p, "hello "+marker, Manner{})
		event = &in
	}
	const words = "failing " + marker
	m := b.only(message("failing", p, event, text(words)))
	f.Inject(t)
	_, err := b.Adapter.Send(b.ctx, m)
	if err == nil {
		t.Fatal("Send: no error")
	}
	failure := b.checkError(err)
	if failure.Kind != f.Kind {
		t.Errorf("Send: %v, want kind %v", err, f.Kind)
	}
	want := 0
	if f.Accepted {
		want = 1
	}
	switch failure.Kind {
	case channels.Transient, channels.RateLimited:
		if f.Lasting {
			break
		}
		pause(b.ctx, failure.RetryAfter)
		if err := b.deliver(m); err != nil {
			t.Errorf("Send, tried again: %v", err)
		}
		want = 1
	case channels.Ambiguous:
		// The dispatcher will not try again. After a crash it does, and says so.
		m.Uncertain = true
		if _, err := b.Adapter.Send(b.ctx, m); err != nil {
			b.checkError(err)
		}
		if !m.Once {
			t.Error("an ambiguous failure of a send that Compose has not marked Once")
		}
	}
	if want > 0 {
		b.eventually("the message is shown", func() bool { return shown(p, words) > 0 })
	}
	if n := shown(p, words); n != want {
		t.Errorf("shown %d times, want %d", n, want)
	}
	// Whatever happened, the next message goes its way.
	if !f.Lasting {
		if err := b.deliver(b.only(message("next", p, nil, text("next "+marker)))); err != nil {
			t.Errorf("send the next message: %v", err)
		}
	}
}

func testAnswers(t *testing.T, r *Rig) {
	b := start(t, r)
	for _, p := range b.places() {
		if p.Answers == nil {
			continue
		}
		first, a := b.say(p, "first question "+marker, Manner{Mention: true})
		second, c := b.say(p, "second question "+marker, Manner{Mention: true})
		if err := errors.Join(
			b.deliver(b.only(message("answer-2-"+p.name, p, &c, text("to the second. "+marker)))),
			b.deliver(b.only(message("answer-1-"+p.name, p, &a, text("to the first. "+marker)))),
		); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		for words, said := range map[string]Said{"to the first": first, "to the second": second} {
			b.eventually(p.name+": "+words+" is shown", func() bool { return shown(p, words) == 1 })
			if got := p.Answers(said); len(got) != 1 || !strings.Contains(got[0], words) {
				t.Errorf("%s: answers are %q, want the one %q", p.name, got, words)
			}
		}
	}
}
