package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"botd/agent"
	"botd/agent/agenttest"
)

// The counts are those of the vocabulary o200k for the same texts.
func TestEstimateIsNearTheTruth(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text   string
		tokens int
	}{
		{"The quick brown fox jumps over the lazy dog. It was a bright cold day in April, and the clocks were striking thirteen.", 26},
		{"Der schnelle braune Fuchs springt über den faulen Hund. Können Sie mir bitte sagen, wann das Geschäft öffnet?", 26},
		{"お問い合わせありがとうございます。ご注文の商品は明日の午後に発送いたしますので、今しばらくお待ちください。", 26},
		{"您好，请问我的订单什么时候可以送到？如果今天下午能到就太好了，谢谢您的帮助。", 22},
		{"สวัสดีค่ะ ขอสอบถามหน่อยว่าร้านเปิดกี่โมงและมีที่จอดรถหรือเปล่าคะ ขอบคุณมากค่ะ", 34},
		{"안녕하세요, 주문한 상품이 언제 도착하는지 알고 싶습니다. 오늘 오후까지 받을 수 있을까요?", 24},
		{"Здравствуйте, подскажите, пожалуйста, когда приедет мой заказ? Буду очень благодарен за ответ.", 23},
		{"مرحبا، أود أن أعرف متى سيصل طلبي من فضلك. شكرا جزيلا على المساعدة.", 26},
		{"नमस्ते, कृपया बताइए कि मेरा ऑर्डर कब तक पहुँचेगा। आपकी मदद के लिए बहुत धन्यवाद।", 29},
		{"👨\u200d👩\u200d👧\u200d👦 😀😂🎉❤️🔥✨🙏🏽👍🏻🇯🇵🇩🇪", 31},
		{"{\"status\":\"shipped\",\"eta\":\"2026-12-03\",\"items\":[{\"sku\":\"A-1001\",\"qty\":2,\"price\":19.99},{\"sku\":\"B-2002\",\"qty\":1,\"price\":5.5}]}", 53},
		{"func main() {\n\tfor i := range 10 {\n\t\tfmt.Println(i, i*i)\n\t}\n}\n", 22},
		{"3f9c1d7a0b52e8466d1f0c9ab7e2d4455a10f3c87b9e6d21", 39},
	}
	for _, tt := range tests {
		got := agent.EstimateTokens([]byte(tt.text)) - 4
		least := tt.tokens * 3 / 4
		if !strings.Contains(tt.text, " ") && tt.text[0] == '3' {
			least = tt.tokens / 2 // digests are worse than anything people say
		}
		if got < least || got > tt.tokens*5/4 {
			t.Errorf("estimate %d, truth %d: %s", got, tt.tokens, tt.text)
		}
	}
	plain := `{"type":"reasoning","id":"rs_1","summary":[]}`
	sealed := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + strings.Repeat("gAAA", 1000) + `"}`
	if p, s := agent.EstimateTokens([]byte(plain)), agent.EstimateTokens([]byte(sealed)); s-p > 400 || s-p < 100 {
		t.Errorf("4000 characters of encrypted content count %d tokens", s-p)
	}
}

func TestWindowBoundsWhatIsShown(t *testing.T) {
	t.Parallel()
	var past []json.RawMessage
	for i := range 50 {
		past = append(past, agent.UserMessage(fmt.Sprint("question ", i, " ", strings.Repeat("word ", 40))), agent.AssistantMessage("answer"))
	}
	shown := func(window int, a agent.Agent) int {
		m := agenttest.NewModel(agenttest.Say("ok"))
		a.Name, a.Models = "a", []agent.ModelRef{{Model: m, Name: "m", Provider: "p", Window: window}}
		turn := say("hi")
		turn.History = history(past...)
		must(t, team(t, agent.Options{}, a), turn)
		n := 0
		for _, raw := range m.Requests()[0].Input {
			n += agent.EstimateTokens(raw)
		}
		return n
	}
	all := shown(0, agent.Agent{})
	if all < 4000 {
		t.Fatalf("the history has %d tokens only", all)
	}
	if n := shown(128_000, agent.Agent{}); n != all {
		t.Errorf("%d of %d tokens shown in a large window", n, all)
	}
	small := shown(4096, agent.Agent{})
	if small > 4096*3/4 || small < 4096/3 {
		t.Errorf("%d tokens shown in a window of 4096", small)
	}
	for name, a := range map[string]agent.Agent{
		"a long answer":     {MaxOutputTokens: 2000},
		"long instructions": {Instructions: strings.Repeat("Be kind. ", 500)},
		"many tools":        {Tools: []agent.Tool{wordy{}}},
	} {
		if n := shown(4096, a); n >= small {
			t.Errorf("%s: %d tokens shown, no less than %d", name, n, small)
		}
	}
}

// wordy is a tool whose description takes some room.
type wordy struct{ agent.Tool }

func (wordy) Spec() agent.ToolSpec {
	return agent.ToolSpec{Name: "wordy", Description: strings.Repeat("word ", 800), Parameters: json.RawMessage(`{"type":"object"}`)}
}

// Several outputs that fit one by one may not fit together.
func TestOutputsTogetherFitTheWindow(t *testing.T) {
	t.Parallel()
	big := agenttest.NewTool("big", func(_ context.Context, _ json.RawMessage) (string, error) {
		return strings.Repeat("data ", 3000), nil
	})
	var calls []agenttest.Call
	for i := range 4 {
		calls = append(calls, agenttest.Call{ID: fmt.Sprint("c", i), Name: "big", Args: fmt.Sprintf(`{"i":%d}`, i)})
	}
	m := agenttest.NewModel(agenttest.Step{Calls: calls}, agenttest.Say("ok"))
	e := team(t, agent.Options{}, agent.Agent{Name: "a", Tools: []agent.Tool{big}, Models: []agent.ModelRef{{Model: m, Name: "m", Provider: "p", Window: 8192}}})
	r := must(t, e, say("go"))
	n := 0
	for _, raw := range m.Requests()[1].Input {
		n += agent.EstimateTokens(raw)
	}
	if n > 6000 {
		t.Errorf("%d tokens shown in a window of 8192", n)
	}
	if got := len(r.final.Items[5].Raw); got < 15000 {
		t.Errorf("what is remembered was shortened to %d bytes", got)
	}
}
