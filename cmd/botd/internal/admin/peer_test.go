package admin

import (
	"os"
	"testing"
)

func TestOnlyRootAndTheOwnUserAreServed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		peer peer
		want bool
	}{
		{"the own user", self(), true},
		{"root", peer{known: true, uid: 0}, true},
		{"somebody else", peer{known: true, uid: os.Getuid() + 1}, false},
		{"where the system does not tell, the mode of the socket decides", peer{}, true},
	} {
		if got := tt.peer.permitted(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
