package line_test

import (
	"context"
	"fmt"
	"net/http"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

// echo is a sink that answers every message with itself. A real one makes the events durable and
// returns, and the answers come later.
type echo struct{ a *line.Adapter }

func (s echo) Accept(ctx context.Context, events ...channels.Inbound) error {
	for _, in := range events {
		for i, m := range s.a.Compose(channels.Outbound{To: in.Address, Reply: in.Reply, Parts: in.Parts}) {
			m.ID = fmt.Sprint(in.ID, "/", i)
			if _, err := s.a.Send(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// A bot that repeats what it is told, in front of a LINE Platform in the same process.
func Example() {
	mux := http.NewServeMux()
	platform := linefake.New(linefake.Options{Transport: linefake.HandlerTransport(mux)})
	defer platform.Close()
	bot := platform.AddBot(linefake.BotConfig{WebhookURL: "http://bot.test/webhook/line-shop"})

	a, err := line.New(line.Options{
		Channel: "line-shop", Secret: bot.Secret, Token: bot.Token,
		APIBase: platform.URL(), HTTPClient: &http.Client{Transport: platform.Transport()},
	})
	if err != nil {
		panic(err)
	}
	mux.Handle("/webhook/line-shop", line.Handler(echo{a}, a))

	alice := platform.AddUser(linefake.UserConfig{Name: "Alice"})
	chat := bot.Direct(alice)
	chat.Say(context.Background(), alice, "Is anybody there?")
	for _, b := range chat.Bubbles() {
		fmt.Println(b.Via, b.Text)
	}
	// Output:
	// said Is anybody there?
	// reply Is anybody there?
}
