package dispatch

import (
	"strings"
	"unicode"

	"botd/channels"
)

// textKey names a text of the catalogue.
type textKey uint8

const (
	textHelp textKey = iota
	textHelpRestore
	textReset
	textResetCount
	textRestoreDays
	textRestoreSoon
	textRestored
	textSetAside
	textNothingToRestore
	textOvertaken
	textStopped
	textNothingToStop
	textUndone
	textTakenBack
	textNothingToUndo
	textNothingToRetry
	textLostQuestion
	textAdminsOnly
	textEmpty
	textBusy
	textOperator
	textTooLong
	textFiltered
	textFailed
	textTimeout
	textBudget
	textCount
)

// catalogue returns the texts in the language of a BCP 47 tag. English is the default; Chinese of
// either script is answered in traditional characters.
func catalogue(locale string) *[textCount]string {
	primary, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(locale), "_", "-"), "-")
	switch primary {
	case "zh", "yue":
		return &chinese
	case "ja":
		return &japanese
	case "th":
		return &thai
	}
	return &english
}

var english = [textCount]string{
	textHelp: "I answer what you write here and remember our conversation.\n\n" +
		"/help – this overview\n" +
		"/reset (or /new) – forget this conversation and start afresh\n" +
		"/stop – stop the answer I am working on\n" +
		"/undo – take back the last message and my answer to it\n" +
		"/retry – answer the last message once more",
	textReset:            "Done. I have forgotten this conversation; we start afresh.",
	textHelpRestore:      "/restore – bring back what the last /reset has forgotten",
	textResetCount:       "Done. I have forgotten the %d messages of this conversation; we start afresh.",
	textRestoreDays:      "Send /restore within %d days to bring it back.",
	textRestoreSoon:      "Send /restore soon to bring it back.",
	textRestored:         "Done. I remember our earlier conversation again (%d messages).",
	textSetAside:         "What we have said since then is set aside; /restore brings it back in turn.",
	textNothingToRestore: "There is no forgotten conversation that I could bring back.",
	textOvertaken:        "This conversation was reset before I could answer this message. Please send it again if you still need an answer.",
	textStopped:          "Stopped.",
	textNothingToStop:    "There is nothing to stop right now.",
	textUndone:           "Done. I have forgotten the last message and my answer to it.",
	textTakenBack:        "Done. I will not answer what you have just sent.",
	textNothingToUndo:    "There is nothing to take back.",
	textNothingToRetry:   "There is no message that I could answer again.",
	textLostQuestion:     "I was interrupted after I had forgotten the last message, and could not answer it again. Please send it once more.",
	textAdminsOnly:       "Everybody here shares this memory, so only an admin can change it. The people who run this service decide who is one. An answer to your own message can be stopped with /stop.",
	textEmpty:            "I have no answer to that. Please try to say it differently.",
	textBusy:             "I could not reach the service that writes my answers, so this message stays unanswered. Please send it again later.",
	textOperator:         "I cannot answer at the moment. Only the people who run this service can mend it. Please try again later.",
	textTooLong:          "Our conversation has become too long for me to go on. Send /reset to start afresh, then ask again.",
	textFiltered:         "The service that writes my answers refuses this message. Please try to say it differently.",
	textFailed:           "Something went wrong with this message and I could not answer it. Please try again or say it differently.",
	textTimeout:          "The answer took too long and I gave up. Please try again, perhaps with a simpler question.",
	textBudget:           "You may ask me again from %s on: until then, what is set aside for answers is used up.",
}

var chinese = [textCount]string{
	textHelp: "我會回覆你在這裡傳送的訊息，並記住我們的對話。\n\n" +
		"/help – 顯示這份說明\n" +
		"/reset（或 /new）– 忘記這段對話，重新開始\n" +
		"/stop – 停止正在產生的回覆\n" +
		"/undo – 收回上一則訊息和我的回覆\n" +
		"/retry – 重新回覆上一則訊息",
	textReset:            "好的，我已經忘記這段對話，我們重新開始。",
	textHelpRestore:      "/restore – 恢復上次 /reset 所忘記的對話",
	textResetCount:       "好的，我已經忘記這段對話的 %d 則訊息，我們重新開始。",
	textRestoreDays:      "在 %d 天內傳送 /restore 即可恢復。",
	textRestoreSoon:      "盡快傳送 /restore 即可恢復。",
	textRestored:         "好的，我又記得我們先前的對話了（%d 則訊息）。",
	textSetAside:         "在那之後的對話已擱置；再次傳送 /restore 即可換回。",
	textNothingToRestore: "沒有可以恢復的對話。",
	textOvertaken:        "在我回覆這則訊息之前，這段對話已被重設。如果仍需要回覆，請再傳送一次。",
	textStopped:          "已停止。",
	textNothingToStop:    "目前沒有需要停止的回覆。",
	textUndone:           "好的，我已經忘記上一則訊息和我的回覆。",
	textTakenBack:        "好的，我不會回覆你剛才傳送的訊息。",
	textNothingToUndo:    "目前沒有可以收回的內容。",
	textNothingToRetry:   "目前沒有可以重新回覆的訊息。",
	textLostQuestion:     "我在忘記上一則訊息之後被中斷，無法重新回覆。請再傳送一次那則訊息。",
	textAdminsOnly:       "這裡的所有人共用同一份記憶，因此只有管理員可以更改。誰是管理員由服務的管理者決定。你可以用 /stop 停止對自己訊息的回覆。",
	textEmpty:            "這則訊息我沒有可以回覆的內容，請換個方式再說一次。",
	textBusy:             "我暫時無法連線到產生回覆的服務，因此這則訊息沒有得到回覆。請稍後再傳送一次。",
	textOperator:         "我目前無法回覆，需要由服務的管理者處理。請稍後再試。",
	textTooLong:          "我們的對話太長，無法繼續。請傳送 /reset 重新開始，然後再問一次。",
	textFiltered:         "產生回覆的服務拒絕了這則訊息，請換個方式再說一次。",
	textFailed:           "處理這則訊息時發生錯誤，無法回覆。請再試一次，或換個方式說。",
	textTimeout:          "產生回覆的時間過長，我已放棄。請再試一次，或把問題簡化。",
	textBudget:           "可用的回覆額度已用完，%s 之後可以再問我。",
}

var japanese = [textCount]string{
	textHelp: "ここに書かれたメッセージにお答えし、会話の内容を覚えています。\n\n" +
		"/help – この説明を表示します\n" +
		"/reset（または /new）– この会話を忘れて最初から始めます\n" +
		"/stop – 作成中の回答を止めます\n" +
		"/undo – 直前のメッセージとその回答を取り消します\n" +
		"/retry – 直前のメッセージにもう一度お答えします",
	textReset:            "この会話を忘れました。最初から始めましょう。",
	textHelpRestore:      "/restore – 前回の /reset で忘れた会話を元に戻します",
	textResetCount:       "この会話のメッセージ %d 件を忘れました。最初から始めましょう。",
	textRestoreDays:      "%d 日以内に /restore を送ると元に戻せます。",
	textRestoreSoon:      "早めに /restore を送ると元に戻せます。",
	textRestored:         "以前の会話を思い出しました（メッセージ %d 件）。",
	textSetAside:         "その後の会話は脇に置きました。もう一度 /restore を送ると入れ替わります。",
	textNothingToRestore: "元に戻せる会話はありません。",
	textOvertaken:        "お答えする前にこの会話がリセットされました。回答が必要な場合は、もう一度お送りください。",
	textStopped:          "停止しました。",
	textNothingToStop:    "いま停止するものはありません。",
	textUndone:           "直前のメッセージとその回答を忘れました。",
	textTakenBack:        "承知しました。先ほどのメッセージにはお答えしません。",
	textNothingToUndo:    "取り消すものはありません。",
	textNothingToRetry:   "もう一度お答えできるメッセージがありません。",
	textLostQuestion:     "直前のメッセージを忘れたあとで処理が中断し、お答えし直せませんでした。もう一度お送りください。",
	textAdminsOnly:       "ここでは全員が同じ記憶を共有しているため、変更できるのは管理者だけです。誰を管理者にするかは運営者が決めます。ご自分のメッセージへの回答は /stop で止められます。",
	textEmpty:            "お答えできる内容がありませんでした。言い方を変えてお試しください。",
	textBusy:             "回答を作成するサービスに接続できず、このメッセージにお答えできませんでした。しばらくしてからもう一度お送りください。",
	textOperator:         "現在お答えできません。運営者による対応が必要です。しばらくしてからお試しください。",
	textTooLong:          "会話が長くなりすぎて続けられません。/reset を送って最初から始め、もう一度ご質問ください。",
	textFiltered:         "回答を作成するサービスがこのメッセージを受け付けませんでした。言い方を変えてお試しください。",
	textFailed:           "問題が発生し、このメッセージにお答えできませんでした。もう一度お試しになるか、言い方を変えてください。",
	textTimeout:          "回答に時間がかかりすぎたため中止しました。質問を簡単にして、もう一度お試しください。",
	textBudget:           "ご利用いただける分を使い切りました。%s 以降にもう一度お尋ねください。",
}

var thai = [textCount]string{
	textHelp: "ฉันตอบข้อความที่คุณส่งมาที่นี่ และจดจำบทสนทนาของเรา\n\n" +
		"/help – แสดงคำอธิบายนี้\n" +
		"/reset (หรือ /new) – ลืมบทสนทนานี้และเริ่มต้นใหม่\n" +
		"/stop – หยุดคำตอบที่กำลังเขียนอยู่\n" +
		"/undo – ยกเลิกข้อความล่าสุดและคำตอบของฉัน\n" +
		"/retry – ตอบข้อความล่าสุดอีกครั้ง",
	textReset:            "เรียบร้อย ฉันลืมบทสนทนานี้แล้ว เรามาเริ่มต้นใหม่กัน",
	textHelpRestore:      "/restore – นำบทสนทนาที่ /reset ครั้งล่าสุดลืมไปกลับมา",
	textResetCount:       "เรียบร้อย ฉันลืมข้อความ %d ข้อความของบทสนทนานี้แล้ว เรามาเริ่มต้นใหม่กัน",
	textRestoreDays:      "ส่ง /restore ภายใน %d วันเพื่อนำกลับมา",
	textRestoreSoon:      "รีบส่ง /restore เพื่อนำกลับมา",
	textRestored:         "เรียบร้อย ฉันจำบทสนทนาก่อนหน้าของเราได้อีกครั้ง (%d ข้อความ)",
	textSetAside:         "สิ่งที่เราคุยกันหลังจากนั้นถูกพักไว้ ส่ง /restore อีกครั้งเพื่อสลับกลับ",
	textNothingToRestore: "ไม่มีบทสนทนาที่ฉันจะนำกลับมาได้",
	textOvertaken:        "บทสนทนานี้ถูกรีเซ็ตก่อนที่ฉันจะตอบข้อความนี้ หากยังต้องการคำตอบ กรุณาส่งข้อความอีกครั้ง",
	textStopped:          "หยุดแล้ว",
	textNothingToStop:    "ตอนนี้ไม่มีอะไรให้หยุด",
	textUndone:           "เรียบร้อย ฉันลืมข้อความล่าสุดและคำตอบของฉันแล้ว",
	textTakenBack:        "เรียบร้อย ฉันจะไม่ตอบข้อความที่คุณเพิ่งส่งมา",
	textNothingToUndo:    "ไม่มีอะไรให้ยกเลิก",
	textNothingToRetry:   "ไม่มีข้อความที่ฉันจะตอบใหม่ได้",
	textLostQuestion:     "ฉันถูกขัดจังหวะหลังจากลืมข้อความล่าสุดไปแล้ว จึงตอบใหม่ไม่ได้ กรุณาส่งข้อความนั้นอีกครั้ง",
	textAdminsOnly:       "ทุกคนที่นี่ใช้ความจำร่วมกัน จึงมีแต่ผู้ดูแลเท่านั้นที่เปลี่ยนได้ ผู้ให้บริการเป็นผู้กำหนดว่าใครเป็นผู้ดูแล คุณหยุดคำตอบต่อข้อความของคุณเองได้ด้วย /stop",
	textEmpty:            "ฉันไม่มีคำตอบสำหรับข้อความนี้ กรุณาลองพูดใหม่อีกแบบ",
	textBusy:             "ฉันติดต่อบริการที่เขียนคำตอบไม่ได้ ข้อความนี้จึงไม่ได้รับคำตอบ กรุณาส่งอีกครั้งภายหลัง",
	textOperator:         "ตอนนี้ฉันตอบไม่ได้ ต้องให้ผู้ดูแลบริการแก้ไข กรุณาลองใหม่ภายหลัง",
	textTooLong:          "บทสนทนาของเรายาวเกินไปจนไปต่อไม่ได้ กรุณาส่ง /reset เพื่อเริ่มต้นใหม่ แล้วถามอีกครั้ง",
	textFiltered:         "บริการที่เขียนคำตอบปฏิเสธข้อความนี้ กรุณาลองพูดใหม่อีกแบบ",
	textFailed:           "เกิดข้อผิดพลาดกับข้อความนี้และฉันตอบไม่ได้ กรุณาลองอีกครั้งหรือพูดใหม่อีกแบบ",
	textTimeout:          "คำตอบใช้เวลานานเกินไป ฉันจึงหยุด กรุณาลองอีกครั้งด้วยคำถามที่ง่ายขึ้น",
	textBudget:           "โควตาสำหรับคำตอบหมดแล้ว กรุณาถามฉันอีกครั้งหลัง %s",
}

// notice is a text of the catalogue in answer to an event, in its speaker's language.
func (d *Dispatcher) notice(to Entry, key textKey) speech {
	text := catalogue(d.language(to))[key]
	return speech{to, channels.Part{Type: channels.Text, Text: text}}
}

// help is the overview of what the dispatcher can do.
func (d *Dispatcher) help(to Entry) speech {
	says := d.notice(to, textHelp)
	if d.archiver != nil {
		says.part.Text += "\n" + catalogue(d.language(to))[textHelpRestore]
	}
	return says
}

// language returns what the platform tells of the speaker's language, or what their message is written
// in.
func (d *Dispatcher) language(e Entry) string {
	if e.Event.Speaker.Locale != "" {
		return e.Event.Speaker.Locale
	}
	if known := d.profile(d.hard, e).Locale; known != "" {
		return known
	}
	return script(e.Event.PlainText())
}

// script guesses a language from the letters of a text, empty when they tell nothing. Kana tell Japanese
// although most of its letters may be Chinese.
func script(text string) string {
	guess := ""
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			return "ja"
		case unicode.Is(unicode.Thai, r):
			return "th"
		case unicode.Is(unicode.Han, r):
			guess = "zh-Hant"
		}
	}
	return guess
}
