package dispatch

import (
	"encoding/json"
	"slices"
	"strings"

	"botd/agent"
	"botd/sessionstore"
)

// isRetry reports whether a pending entry asks for the last question to be answered again. Right after
// a message of the same person that is not answered yet, it is about that message.
func isRetry(e Entry) bool { return parseCommand(e.Event) == commandRetry }

// question is the last one of a session, to be asked again.
type question struct {
	// turn is the one that answered it, before is the history without that turn.
	turn   string
	before []sessionstore.Item
	// items hold what the people said, messages the same as the engine reads it.
	items    []sessionstore.Item
	messages []agent.Message
}

// lastQuestion finds the question of the newest turn. When there is none it returns what is to be said: one
// that was taken out of a session kept elsewhere, by a run that was interrupted before it could put its
// answer there, is lost.
func (t *turn) lastQuestion(history []sessionstore.Item) (q *question, none textKey) {
	last := ""
	if len(history) > 0 {
		last = history[len(history)-1].Turn
	}
	if noted, ok := strings.CutPrefix(t.asked().Reason, undoNote); ok && last != noted {
		return nil, textLostQuestion
	}
	if last == "" {
		return nil, textNothingToRetry
	}
	q = &question{turn: last}
	first := len(history)
	for first > 0 && history[first-1].Turn == q.turn {
		first--
	}
	q.before = history[:first]
	for _, it := range history[first:] {
		role, content := readMessage(it)
		if role != "user" {
			break
		}
		q.items = append(q.items, it)
		q.messages = append(q.messages, t.askedAgain(it, content))
	}
	if len(q.items) == 0 {
		return nil, textNothingToRetry
	}
	return q, 0
}

// askedAgain turns an item back into what a person said. In a session of several people the engine has
// put a header before it, which names the speaker; elsewhere who asks for the retry has said it.
func (t *turn) askedAgain(it sessionstore.Item, content []string) agent.Message {
	asked := t.asked().Event
	m := agent.Message{At: it.At}
	if !shared(t.channel.Scope, asked.Address) {
		m.Speaker = agent.Speaker{ID: asked.Speaker.ID, Name: asked.Speaker.Name, Locale: asked.Speaker.Locale}
	} else if len(content) > 1 && strings.HasPrefix(content[0], "[from ") {
		if _, name, ok := strings.Cut(content[0], `"`); ok {
			m.Speaker.Name, _, _ = strings.Cut(name, `"`)
		}
		content = content[1:]
	}
	for _, text := range content {
		m.Parts = append(m.Parts, agent.Part{Text: text})
	}
	return m
}

// keep puts the people's messages as they were first remembered in the place of those that the engine has
// made of them: a header written anew could not tell who had spoken.
func (q *question) keep(items []sessionstore.Item) []sessionstore.Item {
	n := 0
	for n < len(items) {
		if role, _ := readMessage(items[n]); role != "user" {
			break
		}
		n++
	}
	return slices.Concat(q.items, items[n:])
}

// readMessage returns the role and the texts of an item that is a message, "" for any other.
func readMessage(it sessionstore.Item) (role string, texts []string) {
	var message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(it.Raw, &message) != nil {
		return "", nil
	}
	var text string
	if json.Unmarshal(message.Content, &text) == nil {
		return message.Role, []string{text}
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(message.Content, &parts) == nil {
		for _, p := range parts {
			texts = append(texts, p.Text)
		}
	}
	return message.Role, texts
}
