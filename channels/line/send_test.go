package line_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

const delivered = channels.ErrorKind(255)

// TestSendNeverShowsAnAnswerTwice goes through everything that can happen to an answer that has a reply
// token. Bubbles is what the person sees in the end, after all the tries that the kind allows.
func TestSendNeverShowsAnAnswerTwice(t *testing.T) {
	t.Parallel()
	const (
		inTime = time.Second
		late   = 59 * time.Second
		gone   = 2 * time.Minute
	)
	fault := func(f ...linefake.Fault) []linefake.Fault { return f }
	refused := linefake.Fault{Status: 500}
	accepted := linefake.Fault{Status: 500, Handled: true}
	dropped := linefake.Fault{Lost: linefake.BeforeHandling}
	answerLost := linefake.Fault{Lost: linefake.AfterHandling}
	slow := linefake.Fault{Delay: time.Minute}
	held := linefake.Fault{Hold: time.Minute}
	for _, tt := range []struct {
		name      string
		age       time.Duration // of the event
		uncertain bool
		used      bool // the token is not good any more
		reply     []linefake.Fault
		push      []linefake.Fault
		want      channels.ErrorKind
		bubbles   []linefake.Via
		calls     [2]int // to reply and to push
	}{
		{name: "the reply is taken", age: inTime, want: delivered, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{1, 0}},
		{name: "too late: pushed without a try", age: late, want: delivered, bubbles: []linefake.Via{linefake.Pushed}, calls: [2]int{0, 1}},
		{name: "far too late", age: gone, want: delivered, bubbles: []linefake.Via{linefake.Pushed}, calls: [2]int{0, 1}},
		{name: "token refused: pushed", age: inTime, used: true, want: delivered, bubbles: []linefake.Via{linefake.Pushed}, calls: [2]int{1, 1}},

		{name: "500, not accepted", age: inTime, reply: fault(refused), want: delivered, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},
		{name: "500, accepted", age: inTime, reply: fault(accepted), want: channels.Ambiguous, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},
		{name: "connection lost, not accepted", age: inTime, reply: fault(dropped), want: delivered, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},
		{name: "connection lost, accepted", age: inTime, reply: fault(answerLost), want: channels.Ambiguous, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},
		{name: "timeout, not accepted", age: inTime, reply: fault(slow), want: delivered, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},
		{name: "timeout, accepted", age: inTime, reply: fault(held), want: channels.Ambiguous, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},
		{name: "500 twice", age: inTime, reply: fault(refused, refused), want: channels.Ambiguous, calls: [2]int{2, 0}},
		{name: "a proxy's 408", age: inTime, reply: fault(linefake.Fault{Status: 408, Handled: true}), want: channels.Ambiguous, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},
		{name: "lost, then limited", age: inTime, reply: fault(dropped, linefake.Fault{Status: 429}), want: channels.Ambiguous, calls: [2]int{2, 0}},
		{name: "lost, then 401", age: inTime, reply: fault(answerLost, linefake.Fault{Status: 401}), want: channels.Ambiguous, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},

		{name: "500 with the words of a refusal", age: inTime, reply: fault(linefake.Fault{Status: 500, Handled: true, Message: linefake.InvalidReplyToken}), want: channels.Ambiguous, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},
		{name: "limited", age: inTime, reply: fault(linefake.Fault{Status: 429}), want: channels.RateLimited, calls: [2]int{1, 0}},
		{name: "unauthorized", age: inTime, reply: fault(linefake.Fault{Status: 401}), want: channels.Unauthorized, calls: [2]int{1, 0}},
		{name: "forbidden", age: inTime, reply: fault(linefake.Fault{Status: 403}), want: channels.Permanent, calls: [2]int{1, 0}},
		{name: "bad request", age: inTime, reply: fault(linefake.Fault{Status: 400, Message: "The request body has 1 error(s)"}), want: channels.Permanent, calls: [2]int{1, 0}},

		{name: "uncertain, not sent before", age: inTime, uncertain: true, want: delivered, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{1, 0}},
		{name: "uncertain, token used", age: inTime, uncertain: true, used: true, want: channels.Ambiguous, calls: [2]int{1, 0}},
		{name: "uncertain, too late", age: late, uncertain: true, want: channels.Ambiguous, calls: [2]int{0, 0}},
		{name: "uncertain, accepted, answer lost", age: inTime, uncertain: true, reply: fault(answerLost), want: channels.Ambiguous, bubbles: []linefake.Via{linefake.Replied}, calls: [2]int{2, 0}},
		{name: "uncertain, limited: later again", age: inTime, uncertain: true, reply: fault(linefake.Fault{Status: 429}), want: channels.RateLimited, calls: [2]int{1, 0}},

		{name: "refused, push fails", age: inTime, used: true, push: fault(refused), want: channels.Transient, calls: [2]int{1, 1}},
		{name: "refused, push accepted, answer lost", age: inTime, used: true, push: fault(answerLost), want: channels.Transient, bubbles: []linefake.Via{linefake.Pushed}, calls: [2]int{1, 1}},
		{name: "refused, no quota for the push", age: inTime, used: true, push: fault(linefake.Fault{Status: 429, Message: linefake.MonthlyLimit}), want: channels.QuotaExhausted, calls: [2]int{1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				in := w.say("hello")
				m := w.one(in, "answer")
				m.Uncertain = tt.uncertain
				if tt.used {
					w.fake.Expire(decode(t, in).Token)
				}
				time.Sleep(tt.age)
				w.fake.Inject(linefake.Reply, tt.reply...)
				w.fake.Inject(linefake.Push, tt.push...)
				receipt, err := w.a.Send(t.Context(), m)
				if tt.want != delivered {
					expectKind(t, err, tt.want)
				} else if err != nil || len(receipt.MessageIDs) != 1 {
					t.Errorf("got %+v, %v; want one message ID", receipt, err)
				}
				if got := [2]int{len(w.fake.Calls(linefake.Reply)), len(w.fake.Calls(linefake.Push))}; got != tt.calls {
					t.Errorf("calls to reply and push: %v, want %v", got, tt.calls)
				}
				got := w.chat.Answers()
				if diff := cmp.Diff(tt.bubbles, vias(got)); diff != "" {
					t.Errorf("bubbles (-want +got):\n%s", diff)
				}
				// What may be tried again must not double either, with the knowledge of the outbox.
				shown := len(got)
				for channels.KindOf(err) == channels.Transient && err != nil {
					if _, err = w.a.Send(t.Context(), m); err == nil {
						if n := len(w.chat.Answers()); n != 1 {
							t.Errorf("%d bubbles after another try, %d before", n, shown)
						}
					}
				}
				w.checkCalls()
			})
		})
	}
}

// checkCalls fails the test if a call was made that no client should make.
func (w *world) checkCalls() {
	w.t.Helper()
	for _, c := range w.fake.Calls() {
		if c.Note != "" {
			w.t.Errorf("bad call: %+v", c)
		}
	}
}

// TestNoConnectionMeansNotSent: when no byte has left, the reply can be tried again, token and all.
func TestNoConnectionMeansNotSent(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"connection refused": &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED},
		"no such host":       &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.line.test", IsNotFound: true}},
		"dial timeout":       context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.one(w.say("hello"), "answer")
			away := w.adapter(func(o *line.Options) {
				o.HTTPClient.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, cause }}
			})
			for _, uncertain := range []bool{false, true} {
				m.Uncertain = uncertain
				_, err := away.Send(t.Context(), m)
				expectKind(t, err, channels.Transient)
			}
			if _, err := w.a.Send(t.Context(), m); err != nil {
				t.Errorf("with a connection: %v", err)
			}
			if diff := cmp.Diff([]linefake.Via{linefake.Replied}, vias(w.chat.Answers())); diff != "" {
				t.Errorf("bubbles (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnknownTransportIsNotTrusted: a transport that does not tell how far a request has come may have
// sent it.
func TestUnknownTransportIsNotTrusted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.one(w.say("hello"), "answer")
		silent := w.adapter(func(o *line.Options) {
			o.HTTPClient.Transport = roundTripper(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED })
		})
		_, err := silent.Send(t.Context(), m)
		expectKind(t, err, channels.Ambiguous)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestCanceledSend: before the request nothing was sent; during it nobody knows, and no time is taken
// for another try.
func TestCanceledSend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.one(w.say("hello"), "answer")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.a.Send(ctx, m)
		expectKind(t, err, channels.Transient)

		w.fake.Inject(linefake.Reply, linefake.Fault{Hold: time.Hour})
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err = w.a.Send(ctx, m)
		expectKind(t, err, channels.Ambiguous)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
	})
}

func TestPush(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		fault   linefake.Fault
		want    channels.ErrorKind
		after   time.Duration
		bubbles int // after one more try
	}{
		{"taken", linefake.Fault{}, delivered, 0, 1},
		{"500, not accepted", linefake.Fault{Status: 500}, channels.Transient, 0, 1},
		{"500, accepted", linefake.Fault{Status: 500, Handled: true}, channels.Transient, 0, 1},
		{"connection lost, accepted", linefake.Fault{Lost: linefake.AfterHandling}, channels.Transient, 0, 1},
		{"timeout, accepted", linefake.Fault{Hold: time.Hour}, channels.Transient, 0, 1},
		{"limited", linefake.Fault{Status: 429}, channels.RateLimited, 0, 1},
		{"limited, with a time", linefake.Fault{Status: 429, Header: http.Header{"Retry-After": {"30"}}}, channels.RateLimited, 30 * time.Second, 1},
		{"limited, with an absurd time", linefake.Fault{Status: 429, Header: http.Header{"Retry-After": {"99999999"}}}, channels.RateLimited, time.Hour, 1},
		{"limited, with a time that is none", linefake.Fault{Status: 429, Header: http.Header{"Retry-After": {"-5"}}}, channels.RateLimited, 0, 1},
		{"limited by a text not known yet", linefake.Fault{Status: 429, Message: "Slow down"}, channels.RateLimited, 0, 1},
		{"monthly limit", linefake.Fault{Status: 429, Message: linefake.MonthlyLimit}, channels.QuotaExhausted, 0, 1},
		{"token refused", linefake.Fault{Status: 401}, channels.Unauthorized, 0, 1},
		{"forbidden", linefake.Fault{Status: 403}, channels.Permanent, 0, 1},
		{"bad property", linefake.Fault{Status: 400, Message: "The property, 'to', in the request body is invalid (line: -, column: -)"}, channels.Permanent, 0, 1},
		{"not in the group any more", linefake.Fault{Status: 400, Message: linefake.FailedToSend}, channels.Gone, 0, 1},
		{"not found", linefake.Fault{Status: 404}, channels.Gone, 0, 1},
		{"too long", linefake.Fault{Status: 413}, channels.Permanent, 0, 1},
		{"a proxy's page", linefake.Fault{Status: 502, Message: "<html>"}, channels.Transient, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				m := channels.Outbound{
					ID: "turn/0", To: channels.Address{Channel: "line-shop", Kind: channels.Direct, Room: w.alice.ID},
					Parts: []channels.Part{text("reminder")},
				}
				w.fake.Inject(linefake.Push, tt.fault)
				first, err := w.a.Send(t.Context(), m)
				if tt.want == delivered {
					if err != nil {
						t.Errorf("got %v", err)
					}
				} else {
					expectKind(t, err, tt.want)
					if e, ok := errors.AsType[*channels.Error](err); ok && e.RetryAfter != tt.after {
						t.Errorf("retry after %v, want %v", e.RetryAfter, tt.after)
					}
				}
				again, err := w.a.Send(t.Context(), m)
				if err != nil || len(again.MessageIDs) != 1 {
					t.Errorf("another try: %+v, %v", again, err)
				}
				got := w.chat.Answers()
				if len(got) != tt.bubbles || got[0].ID != again.MessageIDs[0] {
					t.Errorf("bubbles %+v, want %d, as the receipt %v says", got, tt.bubbles, again.MessageIDs)
				}
				if tt.want == delivered && first.MessageIDs[0] != again.MessageIDs[0] {
					t.Errorf("receipts %v, then %v", first, again)
				}
				w.checkCalls()
			})
		})
	}
}

// TestRetryKeysDifferByChannelAndDelivery and are the same for one delivery, after a restart too.
func TestRetryKeysDifferByChannelAndDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := map[string]int{}
	send := func(a *line.Adapter, id string) {
		t.Helper()
		m := channels.Outbound{ID: id, To: channels.Address{Room: w.alice.ID}, Parts: []channels.Part{text("hi " + id)}}
		if _, err := a.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	send(w.a, "turn/0")
	send(w.a, "turn/1")
	send(w.adapter(), "turn/0")
	send(w.adapter(func(o *line.Options) { o.Channel = "line-help" }), "turn/0")
	for _, c := range w.fake.Calls(linefake.Push) {
		keys[c.RetryKey]++
	}
	if len(keys) != 3 {
		t.Errorf("keys %v, want 3 for 4 pushes", keys)
	}
	w.checkCalls()
}

func TestGroupAnswerQuotesTheQuestion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		content linefake.Content
		edit    func(w *world, m *channels.Outbound)
		quotes  bool
		via     linefake.Via
	}{
		{"a reply", linefake.Text{Text: "hi"}, nil, true, linefake.Replied},
		{"a push", linefake.Text{Text: "hi"}, func(w *world, m *channels.Outbound) { w.fake.Expire(decodeReply(m).Token) }, true, linefake.Pushed},
		{"not asked for", linefake.Text{Text: "hi"}, func(_ *world, m *channels.Outbound) { m.Quote = false }, false, linefake.Replied},
		{"a message that cannot be quoted", linefake.Media{Type: "file", Name: "a"}, nil, false, linefake.Replied},
		{"a quotation that LINE refuses", linefake.Text{Text: "hi"}, func(_ *world, m *channels.Outbound) {
			m.Reply = []byte(strings.Replace(string(m.Reply), `"quote":"`, `"quote":"no longer `, 1))
		}, false, linefake.Replied},
		{"a quotation that LINE refuses in a push", linefake.Text{Text: "hi"}, func(w *world, m *channels.Outbound) {
			w.fake.Expire(decodeReply(m).Token)
			m.Reply = []byte(strings.Replace(string(m.Reply), `"quote":"`, `"quote":"no longer `, 1))
		}, false, linefake.Pushed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			group := w.bot.Group(w.alice)
			in := w.post(group, w.alice, tt.content)
			m := w.one(in, "answer")
			if tt.edit != nil {
				tt.edit(w, &m)
			}
			if _, err := w.a.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			got := group.Answers()
			if len(got) != 1 || got[0].Via != tt.via || (got[0].Quotes == in.MessageID) != tt.quotes {
				t.Errorf("bubbles %+v, want one by %s, quoting: %v", got, tt.via, tt.quotes)
			}
		})
	}
}

// TestReplyTokenIsTheEventsOwn: two questions of one person are answered each with its own token.
func TestReplyTokenIsTheEventsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.say("one"), w.say("two")
	for _, in := range []channels.Inbound{second, first} {
		m := w.one(in, "answer")
		m.ID = in.ID + "/0"
		if _, err := w.a.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if got := w.chat.Replies(in.ID); len(got) != 1 {
			t.Errorf("%d replies to event %s, want 1", len(got), in.ID)
		}
	}
}

func TestSendRefusesWhatComposeDoesNotReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := channels.Outbound{ID: "turn/0", To: channels.Address{Room: w.alice.ID}, Parts: []channels.Part{text("hi")}}
	for name, edit := range map[string]func(*channels.Outbound){
		"no ID":           func(m *channels.Outbound) { m.ID = "" },
		"no parts":        func(m *channels.Outbound) { m.Parts = nil },
		"six parts":       func(m *channels.Outbound) { m.Parts = make([]channels.Part, 6) },
		"Markdown":        func(m *channels.Outbound) { m.Parts = []channels.Part{md("hi")} },
		"an image":        func(m *channels.Outbound) { m.Parts = []channels.Part{{Type: channels.Image}} },
		"a room of none":  func(m *channels.Outbound) { m.To.Room = "" },
		"a prefixed room": func(m *channels.Outbound) { m.To.Room = "line:" + m.To.Room },
		"capitals":        func(m *channels.Outbound) { m.To.Room = strings.ToUpper(m.To.Room) },
	} {
		t.Run(name, func(t *testing.T) {
			m := good
			edit(&m)
			_, err := w.a.Send(t.Context(), m)
			expectKind(t, err, channels.Permanent)
		})
	}
	if n := len(w.fake.Calls()); n != 0 {
		t.Errorf("%d calls, want none", n)
	}
}

// TestUnreadableSuccessIsASuccess: the status says that the message was accepted.
func TestUnreadableSuccessIsASuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 409} {
		w := newWorld(t)
		w.fake.Inject(linefake.Push, linefake.Fault{Status: status, Message: "not what was expected"})
		m := channels.Outbound{ID: "turn/0", To: channels.Address{Room: w.alice.ID}, Parts: []channels.Part{text("hi")}}
		if r, err := w.a.Send(t.Context(), m); err != nil || len(r.MessageIDs) != 0 {
			t.Errorf("status %d: %+v, %v; want success without IDs", status, r, err)
		}
	}
}

func decodeReply(m *channels.Outbound) handle {
	var h handle
	_ = json.Unmarshal(m.Reply, &h)
	return h
}
