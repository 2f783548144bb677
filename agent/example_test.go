package agent_test

import (
	"context"
	"fmt"
	"time"

	"botd/agent"
	"botd/agent/offline"
	"botd/agent/tools"
	"botd/sessionstore"
)

// Two turns of a conversation with the model that needs no provider.
func Example() {
	noon := func() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }
	engine, err := agent.New(agent.Options{Agents: []agent.Agent{{
		Name:   "concierge",
		Tools:  []agent.Tool{tools.NewClock(tools.ClockOptions{Now: noon})},
		Models: []agent.ModelRef{{Model: offline.New(offline.Options{}), Name: "offline", Provider: "offline"}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var history []sessionstore.Item
	for i, text := range []string{"My name is Ann.", "What time is it?", "What is my name?"} {
		turn := agent.Turn{
			ID: fmt.Sprint("turn-", i), Session: "example", History: history,
			Input: []agent.Message{{Parts: []agent.Part{{Text: text}}}},
		}
		for ev, err := range engine.Run(context.Background(), turn) {
			switch {
			case err != nil:
				fmt.Println(err)
				return
			case ev.Tool != nil && !ev.Tool.Done:
				fmt.Println("calls", ev.Tool.Name)
			case ev.Final != nil:
				fmt.Println(ev.Final.Text)
				history = append(history, ev.Final.Items...)
			}
		}
	}
	// Output:
	// Nice to meet you, **Ann**! I will remember your name.
	// calls clock
	// I asked the clock tool: it is **12:00** on Tuesday, 2026-12-01 (UTC).
	// Your name is **Ann**: you told me, and I remember.
}
