package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
	_ "time/tzdata" // the zones are known on hosts that have no zone database, too

	"botd/agent"
)

// ClockName is the name by which a model calls the clock.
const ClockName = "clock"

// ClockOptions configures a Clock; the zero value is ready.
type ClockOptions struct {
	// Now is nil for time.Now.
	Now func() time.Time
	// Zone is the zone told when the model asks for none; nil: UTC.
	Zone *time.Location
}

// Clock tells the model the date and the time, which it cannot know otherwise.
type Clock struct {
	now  func() time.Time
	zone *time.Location
}

var _ agent.Tool = (*Clock)(nil)

// NewClock returns a clock.
func NewClock(o ClockOptions) *Clock {
	c := &Clock{now: o.Now, zone: o.Zone}
	if c.now == nil {
		c.now = time.Now
	}
	if c.zone == nil {
		c.zone = time.UTC
	}
	return c
}

// Spec implements agent.Tool.
func (c *Clock) Spec() agent.ToolSpec {
	return agent.ToolSpec{
		Name:        ClockName,
		Description: "Tells the current date, weekday and time. Without a zone it tells them for " + c.zone.String() + ".",
		Parameters: json.RawMessage(`{"type":"object","properties":{"zone":{"type":"string",` +
			`"description":"IANA time zone, such as Asia/Tokyo or Europe/Berlin"}},"additionalProperties":false}`),
	}
}

// reading is what the clock tells, in forms that mean the same in every language.
type reading struct {
	Local   string `json:"local"`
	Zone    string `json:"zone"`
	Weekday string `json:"weekday"`
	// ISOWeek is the week as year and number.
	ISOWeek string `json:"iso_week"`
	UTC     string `json:"utc"`
	Unix    int64  `json:"unix"`
}

// Call implements agent.Tool.
func (c *Clock) Call(_ context.Context, args json.RawMessage) (agent.ToolResult, error) {
	var in struct {
		Zone string `json:"zone"`
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return agent.ToolResult{}, fmt.Errorf("read arguments: %w", err)
	}
	zone := c.zone
	// "Local" would be the zone of the host, which is nobody's business.
	if in.Zone != "" {
		var err error
		if zone, err = time.LoadLocation(in.Zone); err != nil || in.Zone == "Local" {
			return agent.ToolResult{}, fmt.Errorf("unknown time zone %q: use an IANA name such as Asia/Tokyo", in.Zone)
		}
	}
	now := c.now().In(zone)
	year, week := now.ISOWeek()
	out, err := json.Marshal(reading{
		Local:   now.Format(time.RFC3339),
		Zone:    zone.String(),
		Weekday: now.Weekday().String(),
		ISOWeek: fmt.Sprintf("%04d-W%02d", year, week),
		UTC:     now.UTC().Format(time.RFC3339),
		Unix:    now.Unix(),
	})
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("write reading: %w", err)
	}
	return agent.ToolResult{Text: string(out)}, nil
}
