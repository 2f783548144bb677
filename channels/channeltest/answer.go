package channeltest

import (
	"fmt"
	"strings"
	"unicode"
)

// longAnswer is a model's answer in four scripts with at least n code points. Its letters and digits are the
// same whichever way it is rendered.
func longAnswer(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < 4*n && len([]rune(b.String())) < n; i++ {
		fmt.Fprintf(&b, "## Section %d\n\n", i)
		fmt.Fprintf(&b, "This is **paragraph %d** in English, with `code` and *stress*. It has a second sentence, too.\n\n", i)
		fmt.Fprintf(&b, "這是第%d段**中文**。它有「引號」，也有第二句話。\n\n", i)
		fmt.Fprintf(&b, "これは%d番目の**段落**です。「かぎ括弧」もあります。\n\n", i)
		fmt.Fprintf(&b, "นี่คือย่อหน้าที่ %d ภาษาไทย มีประโยคที่สอง 👩‍👩‍👧\n\n", i)
		fmt.Fprintf(&b, "- item %d\n- 項目 %d\n  - รายการ %d\n\n", i, i, i)
		fmt.Fprintf(&b, "> quoted %d\n\n", i)
		fmt.Fprintf(&b, "```\nfunc f%d() {\n\treturn %d\n}\n```\n\n", i, i)
	}
	return b.String()
}

// letters returns the letters, marks and digits of s: what must survive every rendering.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.L, unicode.M, unicode.N) && r != '\uFE0F' {
			return r
		}
		return -1
	}, s)
}
