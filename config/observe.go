package config

import "net"

// Metrics are the figures for Prometheus.
type Metrics struct {
	// Listen is the host:port where /metrics is served, apart from the webhooks, for instance 127.0.0.1:9464;
	// nothing is served when it is left out. There is no authentication: outside of this machine only your
	// monitoring should reach it.
	Listen string `yaml:"listen"`
}

// observing checks the listener of the metrics.
func (v *validator) observing() {
	if host, ok := v.listen("metrics.listen", v.cfg.Metrics.Listen); ok && host != "" && !isLoopback(host) {
		if ip := net.ParseIP(host); ip != nil && !ip.IsPrivate() && !ip.IsUnspecified() {
			v.warning("metrics.listen", "listen on 127.0.0.1 or on an address of your own network", "metrics.listen is a public address, and there is no authentication")
		}
	}
}
