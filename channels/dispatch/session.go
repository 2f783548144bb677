package dispatch

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"botd/channels"
	"botd/sessionstore"
)

// Scope says which messages share one memory.
type Scope string

// The scopes. The zero value is the default: one memory for a direct chat, one for a LINE group, one for
// a Discord thread, and one for each person in any other Discord room.
const (
	// ScopeUser gives each person one memory wherever they speak on the channel.
	ScopeUser Scope = "user"
	// ScopeRoom gives each room one memory, its threads included.
	ScopeRoom Scope = "room"
	// ScopeUserInRoom gives each person one memory in each group, room or thread.
	ScopeUserInRoom Scope = "user_in_room"
	// ScopeThread gives each thread one memory, and each room one for what is said outside of threads.
	ScopeThread Scope = "thread"
)

// Validate reports whether the scope is one of the known ones.
func (s Scope) Validate() error {
	switch s {
	case "", ScopeUser, ScopeRoom, ScopeUserInRoom, ScopeThread:
		return nil
	}
	return fmt.Errorf("unknown scope %q (want user, room, user_in_room, thread or nothing)", string(s))
}

// SessionID returns the ID of the session that an address belongs to. It is a pure function whose
// results are stored for ever:
//
//	direct chat      line-shop:user:U4af…        line-shop:direct:<room> where the person is not told
//	group            line-shop:group:C9…         line-shop:group:C9…:user:U4af… for one person in it
//	room of a server discord:room:11…            discord:room:11…:user:22… for one person in it
//	thread           discord:thread:33…          discord:thread:33…:user:22… for one person in it
//
// Parts that hold ':' or '%' are percent-escaped there, so different parts never give one ID. A scope
// that needs a person falls back to what everybody there shares when the address names none. An ID too
// long for a store is replaced by its SHA-256.
func SessionID(scope Scope, a channels.Address) sessionstore.ID {
	shared, personal := placeID(scope, a)
	id := shared
	if a.User != "" {
		id = personal
	}
	if len(id) > sessionstore.MaxIDLen {
		sum := sha256.Sum256([]byte(id))
		id = "hash:sha256:" + hex.EncodeToString(sum[:])
	}
	return sessionstore.ID(id)
}

// shared reports whether several people speak in the session of an address.
func shared(scope Scope, a channels.Address) bool {
	everybody, personal := placeID(scope, a)
	return a.Kind != channels.Direct && (a.User == "" || everybody == personal)
}

// placeID returns the ID for somebody unnamed at the address and that for its person; they are equal
// where the scope does not tell people apart.
func placeID(scope Scope, a channels.Address) (everybody, personal string) {
	user := join(a.Channel, "user", a.User)
	if a.Kind == channels.Direct {
		return join(a.Channel, "direct", a.Room), user
	}
	switch {
	case a.Thread != "" && scope != ScopeRoom:
		everybody = join(a.Channel, "thread", a.Thread)
	case a.Kind == channels.Group:
		everybody = join(a.Channel, "group", a.Room)
	default:
		everybody = join(a.Channel, "room", a.Room)
	}
	byDefault := scope == "" && a.Kind == channels.Room && a.Thread == ""
	switch {
	case scope == ScopeUser:
		return everybody, user
	case scope == ScopeUserInRoom, byDefault:
		return everybody, everybody + ":" + join("user", a.User)
	}
	return everybody, everybody
}

var escaper = strings.NewReplacer("%", "%25", ":", "%3A")

func join(parts ...string) string {
	for i, p := range parts {
		parts[i] = escaper.Replace(p)
	}
	return strings.Join(parts, ":")
}

// turnEncoding has no 0, 1, 8 and 9, so that a 0 can separate the count in a turn ID.
var turnEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// turnID returns the ID of the turn that answers n events beginning with e: the same for the same entry
// whenever it is run, and another one for an event that the platform sends again after the journal has
// forgotten it. It is short because platforms bound the idempotency keys made from it, and holds the
// count because a turn found half committed must consume exactly what it answered.
func turnID(e Entry, n int) string {
	id := turnPrefix(e)
	if n > 1 {
		id += "0" + strconv.Itoa(n)
	}
	return id
}

func turnPrefix(e Entry) string {
	sum := sha256.Sum256([]byte(join(e.Event.Address.Channel, e.Event.ID, strconv.FormatUint(e.Seq, 10))))
	return turnEncoding.EncodeToString(sum[:10])
}

// turnSize is the reverse of turnID: the number of events that the turn answers when it begins with e,
// 0 when it is another turn.
func turnSize(e Entry, turn string) int {
	rest, ok := strings.CutPrefix(turn, turnPrefix(e))
	switch {
	case !ok:
		return 0
	case rest == "":
		return 1
	}
	n, err := strconv.Atoi(strings.TrimPrefix(rest, "0"))
	if err != nil || n < 2 {
		return 0
	}
	return n
}
