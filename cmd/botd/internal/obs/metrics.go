//go:build !slim

package obs

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"botd/agent"
	"botd/channels/dispatch"
)

// Buckets of the histograms, in seconds. Whole runs take as long as models do; writes and sends do not.
var (
	slowBuckets = []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300}
	fastBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	ageBuckets  = []float64{.1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800, 3600, 21600, 86400}
)

// Metrics counts what happens, for Prometheus. Every label has a bounded number of values: names come from
// the configuration, kinds are fixed, and what comes from outside, the names of tools, is cut off at
// maxValues. No label holds what people write, who they are, or a session.
type Metrics struct {
	registry *prometheus.Registry
	tools    *bounded

	events, turns, messages, sends, requests, tokens, toolCalls, handoffs, reloads *prometheus.CounterVec

	waited, ran, committed, sent, age, modelTime, firstText, toolTime *prometheus.HistogramVec

	reloaded, reloadOK prometheus.Gauge
}

var _ dispatch.Observer = (*Metrics)(nil)

// NewMetrics returns metrics with a registry of their own. Version is that of the program.
func NewMetrics(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), tools: newBounded(maxValues)}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "botd", Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "botd", Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(v)
		return v
	}
	gauge := func(name, help string) prometheus.Gauge {
		v := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "botd", Name: name, Help: help})
		m.registry.MustRegister(v)
		return v
	}
	m.events = counter("events_total", "Events that channels handed in, by whether they could be kept.", "channel", "kind", "outcome")
	m.turns = counter("turns_total", "Runs of turns that ended, by their end.", "channel", "end")
	m.messages = counter("messages_answered_total", "Messages of people that were answered.", "channel")
	m.waited = histogram("turn_wait_seconds", "Time from the acceptance of a turn's oldest message to its start.", ageBuckets, "channel")
	m.ran = histogram("turn_run_seconds", "Time that the engine took for a turn.", slowBuckets, "channel")
	m.committed = histogram("turn_commit_seconds", "Time that it took to make a turn durable.", fastBuckets, "channel")
	m.sends = counter("sends_total", "Attempts to deliver, by the state of the delivery afterwards and the kind of the error.", "channel", "state", "error")
	m.sent = histogram("send_seconds", "Time of one attempt to deliver.", slowBuckets, "channel")
	m.age = histogram("delivery_age_seconds", "Time from the commit of a delivery to its acceptance by the platform.", ageBuckets, "channel")
	m.requests = counter("model_requests_total", "Requests to models, by outcome.", "provider", "model", "outcome")
	m.modelTime = histogram("model_request_seconds", "Time of one request to a model.", slowBuckets, "provider", "model")
	m.firstText = histogram("model_first_text_seconds", "Time from a request to the first text of its answer.", slowBuckets, "provider", "model")
	m.tokens = counter("model_tokens_total", "Tokens used; input includes cached, output includes reasoning.", "provider", "model", "type")
	m.toolCalls = counter("tool_calls_total", "Calls of tools, by outcome.", "tool", "outcome")
	m.toolTime = histogram("tool_call_seconds", "Time of one call of a tool.", slowBuckets, "tool")
	m.handoffs = counter("handoffs_total", "Conversations that one agent handed over to another.", "from", "to")
	m.reloads = counter("config_reloads_total", "Attempts to read the configuration anew, by result.", "result")
	m.reloaded = gauge("config_last_reload_success_timestamp_seconds", "When the configuration in use was read, in Unix time.")
	m.reloadOK = gauge("config_last_reload_successful", "Whether the last attempt to read the configuration succeeded.")
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "botd", Name: "build_info", Help: "The program's build; always 1."}, []string{"version", "go_version"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.reloaded.SetToCurrentTime()
	m.reloadOK.Set(1)
	return m
}

// Watch adds what is looked up at each scrape.
func (m *Metrics) Watch(s Sources) { m.registry.MustRegister(&watcher{sources: s}) }

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: scrapeTimeout})
}

// EventSeen counts an event that a channel handed in; kept says whether it was accepted.
func (m *Metrics) EventSeen(channel, kind string, kept bool) {
	outcome := "accepted"
	if !kept {
		outcome = "refused"
	}
	m.events.WithLabelValues(channel, kind, outcome).Inc()
}

// TurnEnded implements dispatch.Observer.
func (m *Metrics) TurnEnded(r dispatch.TurnReport) {
	m.turns.WithLabelValues(r.Channel, label(string(r.End))).Inc()
	m.waited.WithLabelValues(r.Channel).Observe(r.Waited.Seconds())
	m.ran.WithLabelValues(r.Channel).Observe(r.Ran.Seconds())
	if r.End == dispatch.Answered {
		m.messages.WithLabelValues(r.Channel).Add(float64(r.Events))
		m.committed.WithLabelValues(r.Channel).Observe(r.Committed.Seconds())
	}
}

// SendEnded implements dispatch.Observer.
func (m *Metrics) SendEnded(r dispatch.SendReport) {
	kind := ""
	if r.Err != nil {
		kind = label(r.Kind.String())
	}
	m.sends.WithLabelValues(r.Channel, label(string(r.State)), kind).Inc()
	m.sent.WithLabelValues(r.Channel).Observe(r.Took.Seconds())
	if r.State == dispatch.Delivered {
		m.age.WithLabelValues(r.Channel).Observe(r.Age.Seconds())
	}
}

// Hooks returns what the engine is to call.
func (m *Metrics) Hooks() agent.Hooks {
	return agent.Hooks{Model: m.modelEnded, Tool: m.toolEnded, Handoff: func(_, from, to string) {
		m.handoffs.WithLabelValues(from, to).Inc()
	}}
}

func (m *Metrics) modelEnded(c agent.ModelCall) {
	m.requests.WithLabelValues(c.Provider, c.Model, modelOutcome(c.Err)).Inc()
	m.modelTime.WithLabelValues(c.Provider, c.Model).Observe(c.Duration.Seconds())
	if c.FirstDelta > 0 {
		m.firstText.WithLabelValues(c.Provider, c.Model).Observe(c.FirstDelta.Seconds())
	}
	for kind, n := range map[string]int{
		"input": c.Usage.InputTokens, "cached": c.Usage.CachedTokens, "output": c.Usage.OutputTokens, "reasoning": c.Usage.ReasoningTokens,
	} {
		if n > 0 {
			m.tokens.WithLabelValues(c.Provider, c.Model, kind).Add(float64(n))
		}
	}
}

func (m *Metrics) toolEnded(c agent.ToolCall) {
	outcome := "ok"
	if c.Failed {
		outcome = "failed"
	}
	tool := m.tools.value(c.Tool)
	m.toolCalls.WithLabelValues(tool, outcome).Inc()
	m.toolTime.WithLabelValues(tool).Observe(c.Duration.Seconds())
}

// Reloaded counts an attempt to read the configuration anew.
func (m *Metrics) Reloaded(ok bool) {
	if !ok {
		m.reloads.WithLabelValues("failed").Inc()
		m.reloadOK.Set(0)
		return
	}
	m.reloads.WithLabelValues("ok").Inc()
	m.reloadOK.Set(1)
	m.reloaded.SetToCurrentTime()
}

// scrapeTimeout bounds one scrape.
const scrapeTimeout = 10 * time.Second
