package discord

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Command is a slash command that Discord offers to people. What it does is decided by who takes the
// event: it arrives as a message "/name".
type Command struct {
	// Name has 1–32 lower-case letters, digits, '-' or '_'.
	Name string
	// Description has 1–100 characters. Localized are other languages' by Discord's locale ("ja", "zh-TW").
	Description string
	Localized   map[string]string
}

// DefaultCommands are the commands that every conversation understands. Their names are the same in every
// language: people type them too, and answers name them.
func DefaultCommands() []Command {
	return []Command{
		{Name: "help", Description: "What this bot can do", Localized: map[string]string{
			"de": "Was dieser Bot kann", "ja": "このボットの使い方", "th": "วิธีใช้บอตนี้", "zh-CN": "使用说明", "zh-TW": "使用說明",
		}},
		{Name: "reset", Description: "Forget this conversation and start afresh", Localized: map[string]string{
			"de": "Dieses Gespräch vergessen und neu beginnen", "ja": "この会話を忘れて最初から始める", "th": "ลืมบทสนทนานี้และเริ่มใหม่", "zh-CN": "忘记这段对话，重新开始", "zh-TW": "忘記這段對話，重新開始",
		}},
		{Name: "restore", Description: "Bring back what the last /reset has forgotten", Localized: map[string]string{
			"de": "Zurückholen, was das letzte /reset vergessen hat", "ja": "前回の /reset で忘れた会話を元に戻す", "th": "นำบทสนทนาที่ /reset ครั้งล่าสุดลืมไปกลับมา", "zh-CN": "恢复上次 /reset 忘记的对话", "zh-TW": "恢復上次 /reset 所忘記的對話",
		}},
		{Name: "undo", Description: "Take back the last message and the answer to it", Localized: map[string]string{
			"de": "Die letzte Nachricht und die Antwort darauf zurücknehmen", "ja": "直前のメッセージとその回答を取り消す", "th": "ยกเลิกข้อความล่าสุดและคำตอบ", "zh-CN": "撤回上一条消息和对它的回复", "zh-TW": "收回上一則訊息和對它的回覆",
		}},
		{Name: "retry", Description: "Answer the last message once more", Localized: map[string]string{
			"de": "Die letzte Nachricht noch einmal beantworten", "ja": "直前のメッセージにもう一度回答する", "th": "ตอบข้อความล่าสุดอีกครั้ง", "zh-CN": "重新回复上一条消息", "zh-TW": "重新回覆上一則訊息",
		}},
		{Name: "stop", Description: "Stop the answer in progress", Localized: map[string]string{
			"de": "Die laufende Antwort abbrechen", "ja": "作成中の回答を止める", "th": "หยุดคำตอบที่กำลังเขียน", "zh-CN": "停止正在生成的回复", "zh-TW": "停止正在產生的回覆",
		}},
	}
}

// Where a command is offered. (Discord documentation, Application Commands, Interaction Contexts and
// Installation Contexts.)
const (
	contextGuild = 0
	contextBotDM = 1
	installGuild = 0
)

// commandBody is one command in the bulk overwrite.
type commandBody struct {
	Name         string            `json:"name"`
	Type         int               `json:"type"`
	Description  string            `json:"description"`
	Localized    map[string]string `json:"description_localizations,omitempty"`
	Contexts     []int             `json:"contexts"`
	InstallTypes []int             `json:"integration_types"`
}

// registeredCommand is what Discord has; a command with options or other names is not one of ours.
type registeredCommand struct {
	commandBody
	Options lenient[[]any]             `json:"options"`
	Names   lenient[map[string]string] `json:"name_localizations"`
}

func bodies(list []Command) []commandBody {
	out := make([]commandBody, 0, len(list))
	for _, c := range list {
		out = append(out, commandBody{
			Name: c.Name, Type: commandChat, Description: c.Description, Localized: c.Localized,
			Contexts: []int{contextGuild, contextBotDM}, InstallTypes: []int{installGuild},
		})
	}
	return out
}

// sameCommands reports that Discord has just the commands wanted.
func sameCommands(have []registeredCommand, want []commandBody) bool {
	if len(have) != len(want) {
		return false
	}
	byName := map[string]registeredCommand{}
	for _, c := range have {
		byName[c.Name] = c
	}
	for _, w := range want {
		h, ok := byName[w.Name]
		if !ok || h.Type != w.Type || h.Description != w.Description || len(h.Options.v) > 0 || len(h.Names.v) > 0 ||
			!maps.Equal(h.Localized, w.Localized) || !sameSet(h.Contexts, w.Contexts) || !sameSet(h.InstallTypes, w.InstallTypes) {
			return false
		}
	}
	return true
}

func sameSet(a, b []int) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, cmp.Compare)
	slices.SortFunc(b, cmp.Compare)
	return slices.Equal(a, b)
}

// registerCommands makes Discord offer the commands. It writes only where something differs: a program
// that registers at each start uses up the 200 creations a day. (Discord documentation, Application
// Commands, Registering a Command.) A failure is told and tried again with the next connection.
func (a *Adapter) registerCommands(ctx context.Context) error {
	app, err := a.identity(ctx)
	if err != nil {
		return err
	}
	have, err := a.rest.commands(ctx, app.ID)
	if err != nil {
		return err
	}
	want := bodies(a.commands)
	if sameCommands(have, want) {
		return nil
	}
	return a.rest.overwriteCommands(ctx, app.ID, want)
}
