package discordfake_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"botd/channels/discord/discordfake"
)

// A bot that greets a room by the REST API, and what people there see of it.
func Example() {
	s, err := discordfake.New(discordfake.Options{BotName: "greeter"})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	guild, _ := s.Guild("Book club")
	room, alice := s.Room(guild, "general"), s.Person("Alice")
	if _, err := s.Say(discordfake.Saying{From: alice.ID, Room: room, Text: "Is anybody there?"}); err != nil {
		panic(err)
	}

	greeting := fmt.Sprintf(`{"content": "Hello, <@%s>!"}`, alice.ID)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL()+"/api/v10/channels/"+room+"/messages", strings.NewReader(greeting))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bot "+discordfake.DefaultToken)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "DiscordBot (https://bot.example, 1)")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	fmt.Println(res.Status)

	for _, p := range s.Posts(room) {
		fmt.Printf("%s: %s\n", p.Author.Username, strings.ReplaceAll(p.Content, alice.ID, "ALICE"))
	}
	fmt.Println("notified Alice:", slices.Contains(s.BotPosts(room)[0].Pings, alice.ID))
	// Output:
	// 200 OK
	// alice: Is anybody there?
	// greeter: Hello, <@ALICE>!
	// notified Alice: true
}
