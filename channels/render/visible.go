package render

import (
	"strings"
	"unicode"
)

// Visible reports whether a reader sees anything of text: not of white space, and not of the characters
// that are there but show nothing, such as a zero width space or a byte order mark.
func Visible(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return !unicode.In(r, nothing...) })
}

// nothing are the characters that show nothing by themselves. (Unicode Standard, Default_Ignorable_Code_Point,
// and the space of the Braille patterns.)
var nothing = []*unicode.RangeTable{
	unicode.White_Space, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point,
	{R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}}},
}
