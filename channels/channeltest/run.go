package channeltest

import (
	"testing"

	"go.uber.org/goleak"
)

// marker is in every text that the suite sends, so that it can be found where no text may be.
const marker = "zebra-crossing"

// Run asks the adapter of each fresh rig for everything that the dispatcher relies on.
func Run(t *testing.T, fresh func(t *testing.T) *Rig) {
	t.Run("facts are fixed", func(t *testing.T) { testInfo(t, fresh(t)) })

	t.Run("compose/is pure", func(t *testing.T) { testComposePure(t, fresh(t)) })
	t.Run("compose/nothing to show", func(t *testing.T) { testComposeNothing(t, fresh(t)) })
	t.Run("compose/long answer", func(t *testing.T) { testLongAnswer(t, fresh(t)) })
	t.Run("compose/literal text", func(t *testing.T) { testLiteralText(t, fresh(t)) })

	t.Run("send/once under one ID", func(t *testing.T) { testIdempotent(t, fresh(t)) })
	t.Run("send/in order", func(t *testing.T) { testOrder(t, fresh(t)) })
	t.Run("send/at once", func(t *testing.T) { testConcurrentSends(t, fresh(t)) })
	t.Run("send/cancelled", func(t *testing.T) { testCancelledSend(t, fresh(t)) })
	t.Run("send/failures", func(t *testing.T) { testFailures(t, fresh) })
	t.Run("send/answers its event", func(t *testing.T) { testAnswers(t, fresh(t)) })

	t.Run("events/say who and where", func(t *testing.T) { testEvents(t, fresh(t)) })
	t.Run("events/mention", func(t *testing.T) { testMention(t, fresh(t)) })
	t.Run("events/in order with IDs of their own", func(t *testing.T) { testEventIDs(t, fresh(t)) })
	t.Run("events/redelivered under the same ID", func(t *testing.T) { testRedelivery(t, fresh(t)) })
	t.Run("events/acknowledged after the sink", func(t *testing.T) { testBrokenSink(t, fresh(t)) })
	t.Run("events/slow sink", func(t *testing.T) { testSlowSink(t, fresh(t)) })
	t.Run("events/junk", func(t *testing.T) { testJunk(t, fresh(t)) })

	t.Run("run/ends with its context", func(t *testing.T) {
		before := goleak.IgnoreCurrent()
		t.Run("rig", func(t *testing.T) { testRunEnds(t, fresh(t)) })
		goleak.VerifyNone(t, before)
	})

	t.Run("optional/typing", func(t *testing.T) { testTyping(t, fresh(t)) })
	t.Run("optional/profile", func(t *testing.T) { testProfile(t, fresh(t)) })
	t.Run("optional/stream", func(t *testing.T) { testStream(t, fresh(t)) })
}
