//go:build !slim

package obs

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	channelUp = prometheus.NewDesc("botd_channel_up", "Whether the channel can take events: connected, or waiting for webhooks.", []string{"channel", "platform"}, nil)
	serverUp  = prometheus.NewDesc("botd_mcp_server_up", "Whether the MCP server is connected.", []string{"server"}, nil)
	inbox     = prometheus.NewDesc("botd_journal_events", "Events in the journal: pending ones are to be answered, dead ones were set aside.", []string{"state"}, nil)
	outbox    = prometheus.NewDesc("botd_journal_deliveries", "Deliveries in the journal that the platform has not accepted.", []string{"state"}, nil)
	oldest    = prometheus.NewDesc("botd_journal_oldest_pending_seconds", "Age of the oldest event that is to be answered; 0 when there is none.", nil, nil)
	storeUp   = prometheus.NewDesc("botd_store_up", "Whether the store can be read.", nil, nil)
	fileSize  = prometheus.NewDesc("botd_store_file_bytes", "Size of the store's file.", nil, nil)
	fileFree  = prometheus.NewDesc("botd_store_free_bytes", "Room in the store's file that new data will use.", nil, nil)
)

// watcher looks at Sources.
type watcher struct{ sources Sources }

// Describe implements prometheus.Collector.
func (w *watcher) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{channelUp, serverUp, inbox, outbox, oldest, storeUp, fileSize, fileFree} {
		ch <- d
	}
}

// journalTimeout bounds the count of the journal.
const journalTimeout = 5 * time.Second

// Collect implements prometheus.Collector.
func (w *watcher) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, c := range w.sources.Channels() {
		gauge(channelUp, number(c.Up), c.Name, c.Platform)
	}
	for name, up := range w.sources.ToolServers() {
		gauge(serverUp, number(up), name)
	}
	if w.sources.StoreSize != nil {
		file, free := w.sources.StoreSize()
		gauge(fileSize, float64(file))
		gauge(fileFree, float64(free))
	}
	ctx, cancel := context.WithTimeout(context.Background(), journalTimeout)
	defer cancel()
	st, err := w.sources.Journal(ctx)
	gauge(storeUp, number(err == nil))
	if err != nil {
		return
	}
	gauge(inbox, float64(st.Pending), "pending")
	gauge(inbox, float64(st.DeadEvents), "dead")
	for state, n := range map[string]int{"waiting": st.Waiting, "held": st.Held, "unknown": st.Unknown, "dead": st.Dead} {
		gauge(outbox, float64(n), state)
	}
	age := 0.0
	if !st.Oldest.IsZero() {
		age = max(time.Since(st.Oldest).Seconds(), 0)
	}
	gauge(oldest, age)
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
