package config

import "net"

// Metrics are the figures for Prometheus.
type Metrics struct {
	// Listen is the host:port where /metrics is served, apart from the webhooks, for instance 127.0.0.1:9464;
	// nothing is served when it is left out. There is no authentication: outside of this machine only your
	// monitoring should reach it.
	Listen string `yaml:"listen"`
}

// Tracing sends spans of turns, model calls, tool calls and deliveries to an OpenTelemetry collector. They
// hold names, IDs, times and token counts, never what people write.
type Tracing struct {
	// Endpoint is the collector's address for OTLP over HTTP, for instance http://127.0.0.1:4318; nothing is
	// traced when it is left out.
	Endpoint string `yaml:"endpoint"`
	// Headers are added to every request to the collector, by name.
	Headers map[string]Secret `yaml:"headers" free:"true"`
	// Sample is the share of turns that is traced, from 0 to 1; all when left out.
	Sample *float64 `yaml:"sample" min:"0" max:"1"`
}

// TLS has the listener speak HTTPS itself, without a proxy in front.
type TLS struct {
	// Certificate is the path of the certificate chain in PEM; it is read again within a minute after it has
	// changed.
	Certificate string `yaml:"certificate"`
	// Key is the path of its private key in PEM, which is read again with it.
	Key string `yaml:"key"`
	// ACME gets certificates from Let's Encrypt or another authority instead.
	ACME ACME `yaml:"acme"`
}

// ACME gets certificates by itself (RFC 8555, challenge tls-alpn-01), for which the authority must reach
// server.listen at port 443 of the domains. Using it means to agree to the authority's terms.
type ACME struct {
	// Domains are the names to get certificates for.
	Domains []string `yaml:"domains"`
	// Email is where the authority writes to about certificates that run out.
	Email string `yaml:"email"`
	// Cache is the folder where certificates and the account's key are kept.
	Cache string `yaml:"cache" default:"./data/acme"`
	// Directory is the authority's address; Let's Encrypt when left out.
	Directory string `yaml:"directory"`
}

// Enabled reports whether the listener speaks HTTPS.
func (t TLS) Enabled() bool { return t.Certificate != "" || t.Key != "" || len(t.ACME.Domains) > 0 }

// observing checks metrics, tracing and the listener's certificates.
func (v *validator) observing() {
	if host, ok := v.listen("metrics.listen", v.cfg.Metrics.Listen); ok && host != "" && !isLoopback(host) {
		if ip := net.ParseIP(host); ip != nil && !ip.IsPrivate() && !ip.IsUnspecified() {
			v.warning("metrics.listen", "listen on 127.0.0.1 or on an address of your own network", "metrics.listen is a public address, and there is no authentication")
		}
	}
	v.tracing()
	v.tls()
}

func (v *validator) tracing() {
	t := v.cfg.Tracing
	u, ok := v.url("tracing.endpoint", t.Endpoint)
	v.headers("tracing.headers", t.Headers)
	switch {
	case t.Endpoint == "" && len(t.Headers) > 0:
		v.problem("tracing.headers", "add tracing.endpoint, or remove them", "tracing.headers are of no use without tracing.endpoint")
	case ok && u.Scheme == "http" && len(t.Headers) > 0 && !isLoopback(u.Hostname()):
		v.warning("tracing.endpoint", "use https:// unless the network between is trusted", "tracing.endpoint sends the headers unencrypted")
	}
}

func (v *validator) tls() {
	const path = "server.tls"
	t := v.cfg.Server.TLS
	acme := len(t.ACME.Domains) > 0
	switch {
	case !t.Enabled():
		if t.ACME.Email != "" || t.ACME.Directory != "" {
			v.problem(path+".acme", "add domains: with the names to get certificates for", "%s.acme has no domains", path)
		}
		return
	case acme && (t.Certificate != "" || t.Key != ""):
		v.problem(path+".acme", "keep acme, or certificate and key", "%s has both acme and a certificate of its own", path)
	case acme:
	case t.Certificate == "":
		v.problem(path+".certificate", "add certificate: with the path of the chain in PEM", "%s has a key and no certificate", path)
	case t.Key == "":
		v.problem(path+".key", "add key: with the path of the private key in PEM", "%s has a certificate and no key", path)
	}
	if t.ACME.Directory != "" {
		v.url(path+".acme.directory", t.ACME.Directory)
	}
	if v.cfg.Server.Listen == "" {
		v.problem(path, "add server.listen, or remove tls", "server.tls is of no use without server.listen")
	}
}
