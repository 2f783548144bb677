package agentssdk

import (
	"encoding/hex"
	"testing"
)

// The answers are those of base64.urlsafe_b64decode of CPython 3.11.
func TestBase64IsReadAsPythonReadsIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"A", "error"},
		{"AA", "error"},
		{"AAA", "error"},
		{"AA=", "error"},
		{"AA==", "00"},
		{"AAA=", "0000"},
		{"A===", "error"},
		{"AAAA", "000000"},
		{"AAAA=", "000000"},
		{"AAAAA", "error"},
		{"A A A A", "000000"},
		{"A-_/", "03efff"},
		{"-_-_", "fbffbf"},
		{"+/+/", "fbffbf"},
		{"AA==AA==", "00"},
		{"AA=A", "error"},
		{"AA=A=", "0000"},
		{"AAA=AAAA", "0000"},
		{"=AAAA", "000000"},
		{"==", ""},
		{"é", "error"},
		{"AAAAé", "error"},
		{"A\nAAA=", "000000"},
		{"AA=\n=", "00"},
		{"AAA A==", "000000"},
		{"A=A=A=A", "0000"},
		{"A=AAA", "000000"},
		{"0 9!  =+A_!z", "error"},
		{"aZ9", "error"},
		{"z-+Z/zA z-", "error"},
		{"a!-a!!Z", "6be699"},
		{"//_aa", "error"},
		{"Az!", "error"},
		{"aa09z+", "error"},
		{"a z-0A", "error"},
		{"-aa0Z90/", "f9a6b467dd3f"},
		{"A/= 9Z090_ 9", "error"},
		{"__ aA", "fff680"},
		{"A 9-A+!", "error"},
		{"9-/A_A a/", "f7efc0fc06bf"},
		{"Z!z_9+", "error"},
		{"+0!_Z/ !", "error"},
		{"0A-Zz9+/", "d00f99cfdfbf"},
		{"a90 +Z0=", "error"},
		{"0a!Z=a  ", "d1a6"},
		{"_a AZ/+", "error"},
		{"Az /90_=-", "error"},
		{"A=A!_", "error"},
		{"za /a=!-", "error"},
		{"a-9a", "6bef5a"},
		{"-0a", "error"},
		{"/a+__  9_0", "fdafbfffdff4"},
		{"_-aZ-+a", "error"},
		{"9aZ_0+!++9", "error"},
		{"!!!9", "error"},
		{"=A!09+ =0_0!", "error"},
		{"9=a/A_+", "error"},
	} {
		got := "error"
		if b, ok := pythonBase64(tt.in); ok {
			got = hex.EncodeToString(b)
		}
		if got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.in, got, tt.want)
		}
	}
}
