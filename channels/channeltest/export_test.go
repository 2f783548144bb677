package channeltest

import "time"

// SetPatience changes how long the suite waits for what does not happen.
func SetPatience(d time.Duration) { patience = d }
