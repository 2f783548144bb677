// Package channeltest is the conformance suite of channels.Adapter: what the dispatcher relies on, asked of
// an adapter in front of a stand-in for its platform.
//
// An adapter's own test describes the stand-in as a Rig and calls Run:
//
//	func TestConformance(t *testing.T) {
//		channeltest.Run(t, func(t *testing.T) *channeltest.Rig { … })
//	}
//
// # Use
//
// The cases run one after another, each on a fresh Rig, for one of them asserts that no goroutine is left.
// The test that calls Run must therefore not be parallel. Rigs end what they start by t.Cleanup.
package channeltest
