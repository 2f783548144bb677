package render_test

import (
	"testing"

	"botd/channels/render"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, " \n\t\u3000\u00a0\u2028": false, "\x00\x1b\u0085": false,
		"\u200b": false, "\u200b\u200d\u2060\ufeff\u00ad\u202e": false, "\ufe0f": false,
		"\u034f\u115f\u1160\u3164\uffa0\u2800": false, "\U000e0001\U000e0100": false,
		"a": true, "\u200ba": true, "\u3000。": true, "😀": true, "❤\ufe0f": true, "\u0301": true, "\ue000": true, "\ufffd": true,
		"\xff": true, // shown as the replacement character
	} {
		if got := render.Visible(text); got != want {
			t.Errorf("Visible(%+q) = %t, want %t", text, got, want)
		}
	}
}
