package line_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/line/linefake"
)

func TestProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob := w.fake.AddUser(linefake.UserConfig{Name: "Bob", Language: "th"})
	group, room := w.bot.Group(bob), w.bot.Room(bob)
	blocked := w.fake.AddUser(linefake.UserConfig{Name: "Eve"})
	w.bot.Direct(blocked).Unfollow()
	for _, tt := range []struct {
		name string
		to   channels.Address
		want channels.Speaker
	}{
		{"a friend", channels.Address{Kind: channels.Direct, Room: w.alice.ID, User: w.alice.ID}, channels.Speaker{ID: w.alice.ID, Name: "Alice", Locale: "ja"}},
		{"a member of a group", channels.Address{Kind: channels.Group, Room: group.ID, User: bob.ID}, channels.Speaker{ID: bob.ID, Name: "Bob"}},
		{"a member of a room", channels.Address{Kind: channels.Group, Room: room.ID, User: bob.ID}, channels.Speaker{ID: bob.ID, Name: "Bob"}},
		{"somebody who blocked the bot", channels.Address{Kind: channels.Direct, Room: blocked.ID, User: blocked.ID}, channels.Speaker{ID: blocked.ID}},
		{"somebody who left the group", channels.Address{Kind: channels.Group, Room: group.ID, User: w.alice.ID}, channels.Speaker{ID: w.alice.ID}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := len(w.fake.Calls())
			for range 3 {
				got, err := w.a.Profile(t.Context(), tt.to)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("speaker (-want +got):\n%s", diff)
				}
			}
			if n := len(w.fake.Calls()) - calls; n != 1 {
				t.Errorf("%d calls for three look-ups, want 1", n)
			}
		})
	}
}

func TestProfilesAreForgottenInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		friend := channels.Address{Kind: channels.Direct, Room: w.alice.ID, User: w.alice.ID}
		stranger := channels.Address{Kind: channels.Direct, Room: w.bot.ID, User: w.bot.ID}
		look := func(to channels.Address) int {
			t.Helper()
			if _, err := w.a.Profile(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			return len(w.fake.Calls(linefake.Profile))
		}
		look(friend)
		look(stranger)
		time.Sleep(11 * time.Minute)
		if n := look(friend); n != 2 {
			t.Errorf("%d calls, want 2: a name is believed for hours", n)
		}
		if n := look(stranger); n != 3 {
			t.Errorf("%d calls, want 3: who is unknown may be known ten minutes later", n)
		}
		time.Sleep(7 * time.Hour)
		if n := look(friend); n != 4 {
			t.Errorf("%d calls, want 4: names change", n)
		}
	})
}

func TestProfileFailuresAreNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	friend := channels.Address{Kind: channels.Direct, Room: w.alice.ID, User: w.alice.ID}
	w.fake.Inject(linefake.Profile, linefake.Fault{Status: 500})
	_, err := w.a.Profile(t.Context(), friend)
	expectKind(t, err, channels.Transient)
	if got, err := w.a.Profile(t.Context(), friend); err != nil || got.Name != "Alice" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestIDsAreCheckedBeforeTheyBecomePaths: nothing that is no ID of LINE gets into a request.
func TestIDsAreCheckedBeforeTheyBecomePaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, user := range []string{"", "../../evil", w.alice.ID + "/../x", "U123", "u" + w.alice.ID[1:], "U" + w.alice.ID[1:32] + "G", w.bot.Group().ID} {
		_, err := w.a.Profile(t.Context(), channels.Address{Kind: channels.Group, Room: w.bot.Group().ID, User: user})
		expectKind(t, err, channels.Permanent)
		expectKind(t, w.a.Typing(t.Context(), channels.Address{Kind: channels.Direct, Room: user}), channels.Permanent)
	}
	if n := len(w.fake.Calls()); n != 0 {
		t.Errorf("%d calls, want none", n)
	}
}

func TestTyping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		direct := channels.Address{Kind: channels.Direct, Room: w.alice.ID, User: w.alice.ID}
		// Shown anew in time, the animation never stops.
		for range 3 {
			if err := w.a.Typing(t.Context(), direct); err != nil {
				t.Fatal(err)
			}
			time.Sleep(w.a.Info().TypingEvery)
			if w.chat.Loading().IsZero() {
				t.Error("the animation stopped")
			}
		}
		if _, err := w.a.Send(t.Context(), w.one(w.say("hello"), "answer")); err != nil {
			t.Fatal(err)
		}
		if !w.chat.Loading().IsZero() {
			t.Error("the animation goes on after the answer")
		}
	})
}

func TestTypingIsForDirectChatsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.a.Typing(t.Context(), channels.Address{Kind: channels.Group, Room: w.bot.Group(w.alice).ID, User: w.alice.ID}); err != nil {
		t.Error(err)
	}
	if n := len(w.fake.Calls()); n != 0 {
		t.Errorf("%d calls, want none", n)
	}
	w.fake.Inject(linefake.LoadingStart, linefake.Fault{Status: 429})
	err := w.a.Typing(context.Background(), channels.Address{Kind: channels.Direct, Room: w.alice.ID})
	expectKind(t, err, channels.RateLimited)
}
