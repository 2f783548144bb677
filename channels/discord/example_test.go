package discord_test

import (
	"context"
	"fmt"
	"time"

	"botd/channels"
	"botd/channels/discord"
	"botd/channels/discord/discordfake"
)

// echo is a sink that hands what it hears to a channel; a real one writes it to disk first.
type echo chan channels.Inbound

func (e echo) Accept(_ context.Context, events ...channels.Inbound) error {
	for _, in := range events {
		e <- in
	}
	return nil
}

// A bot that hears one message on a Discord inside the process, and answers it.
func Example() {
	srv, err := discordfake.New(discordfake.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	bot, err := discord.New(discord.Options{Channel: "discord", Token: discordfake.DefaultToken, APIBase: srv.URL()})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	heard, ended := make(echo, 1), make(chan error)
	go func() { ended <- bot.Run(ctx, heard) }()
	for bot.Ready() != nil {
		time.Sleep(time.Millisecond)
	}

	ada := srv.Person("Ada")
	room := srv.DM(ada.ID)
	if _, err := srv.Say(discordfake.Saying{From: ada.ID, Room: room, Text: "Hello?"}); err != nil {
		panic(err)
	}
	in := <-heard
	fmt.Println(in.Speaker.Name+":", in.PlainText())

	answer := channels.Outbound{ID: "turn-1", To: in.Address, Reply: in.Reply, Parts: []channels.Part{{Type: channels.Markdown, Text: "Hello, **Ada**!"}}}
	for _, send := range bot.Compose(answer) {
		if _, err := bot.Send(ctx, send); err != nil {
			panic(err)
		}
	}
	fmt.Println("bot:", srv.BotPosts(room)[0].Content)

	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// Ada: Hello?
	// bot: Hello, **Ada**!
	// ended: <nil>
}
