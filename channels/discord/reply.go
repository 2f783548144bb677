package discord

import (
	"encoding/json"
	"time"
)

// reply is what the adapter keeps in Inbound.Reply and Outbound.Reply. It is stored: names stay as they
// are.
type reply struct {
	// Message is the ID of the message answered.
	Message string `json:"m,omitempty"`
	// Interaction is the slash command answered, when it was acknowledged.
	Interaction *token `json:"i,omitempty"`
	// Part counts the sends of one answer from 0: the first one of an interaction edits the
	// acknowledgement, the others are messages of their own.
	Part int `json:"n,omitempty"`
}

// token is the right to answer one interaction.
type token struct {
	ID    string `json:"id"`
	App   string `json:"app"`
	Token string `json:"token"`
}

func (r reply) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("discord: encode reply: " + err.Error()) // strings and integers only
	}
	return b
}

// decodeReply reads what an earlier version may have written: what cannot be read answers nothing.
func decodeReply(b []byte) reply {
	var r reply
	if json.Unmarshal(b, &r) != nil {
		return reply{}
	}
	if !isSnowflake(r.Message) {
		r.Message = ""
	}
	if t := r.Interaction; t != nil && (!isSnowflake(t.App) || t.Token == "") {
		r.Interaction = nil
	}
	return r
}

// asked is when what is answered was said; the zero time when nothing is answered.
func (r reply) asked() time.Time {
	if r.Interaction != nil {
		return snowflakeTime(r.Interaction.ID)
	}
	return snowflakeTime(r.Message)
}
