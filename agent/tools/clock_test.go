package tools_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"botd/agent/tools"
)

func TestClock(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 12, 31, 23, 30, 5, 999, time.UTC)
	tests := map[string]struct {
		zone *time.Location
		args string
		want string // the output, or after ! a part of the error
	}{
		"UTC by default":      {nil, `{}`, `{"local":"2026-12-31T23:30:05Z","zone":"UTC","weekday":"Thursday","iso_week":"2026-W53","utc":"2026-12-31T23:30:05Z","unix":1798759805}`},
		"a zone of its own":   {berlin, `{}`, `{"local":"2027-01-01T00:30:05+01:00","zone":"Europe/Berlin","weekday":"Friday","iso_week":"2026-W53","utc":"2026-12-31T23:30:05Z","unix":1798759805}`},
		"the zone asked for":  {berlin, `{"zone":"Asia/Kathmandu"}`, `{"local":"2027-01-01T05:15:05+05:45","zone":"Asia/Kathmandu","weekday":"Friday","iso_week":"2026-W53","utc":"2026-12-31T23:30:05Z","unix":1798759805}`},
		"an unknown zone":     {nil, `{"zone":"Mars/Olympus"}`, `!unknown time zone "Mars/Olympus"`},
		"a path":              {nil, `{"zone":"../../etc/passwd"}`, `!unknown time zone`},
		"the host's own zone": {nil, `{"zone":"Local"}`, `!unknown time zone`},
		"an unknown argument": {nil, `{"city":"Tokyo"}`, `!unknown field "city"`},
		"a wrong type":        {nil, `{"zone":5}`, `!read arguments`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tools.NewClock(tools.ClockOptions{Now: func() time.Time { return at }, Zone: tt.zone})
			got, err := c.Call(t.Context(), json.RawMessage(tt.args))
			if want, fails := strings.CutPrefix(tt.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
				return
			}
			if err != nil || got.Text != tt.want {
				t.Errorf("got %s, %v\nwant %s", got.Text, err, tt.want)
			}
		})
	}
}

func TestClockOfToday(t *testing.T) {
	t.Parallel()
	c := tools.NewClock(tools.ClockOptions{})
	before := time.Now().Unix()
	res, err := c.Call(t.Context(), json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Unix int64 }
	if err := json.Unmarshal([]byte(res.Text), &r); err != nil || r.Unix < before || r.Unix > time.Now().Unix() {
		t.Errorf("told %s (%v)", res.Text, err)
	}
	if s := c.Spec(); s.Name != "clock" || !json.Valid(s.Parameters) {
		t.Errorf("spec: %+v", s)
	}
}
