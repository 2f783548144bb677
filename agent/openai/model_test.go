package openai_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"botd/agent/openai"
)

func TestNewChecksItsOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]openai.Options{
		"not a URL":    {BaseURL: "http://user:hunter2@ho st"},
		"no scheme":    {BaseURL: "localhost:11434/v1"},
		"no host":      {BaseURL: "https:///v1"},
		"other scheme": {BaseURL: "ftp://host/v1"},
		"unknown API":  {API: 9},
	} {
		if _, err := openai.New(o); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// roundTripper answers without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestEnvironmentIsNotRead(t *testing.T) {
	for k, v := range map[string]string{
		"OPENAI_BASE_URL": "http://127.0.0.1:1/evil", "OPENAI_API_KEY": "sk-ambient", "OPENAI_ORG_ID": "org-ambient",
		"OPENAI_PROJECT_ID": "proj-ambient", "OPENAI_CUSTOM_HEADERS": "X-Ambient: yes", "OPENAI_ADMIN_KEY": "sk-admin-ambient",
	} {
		t.Setenv(k, v)
	}
	var got *http.Request
	m, err := openai.New(openai.Options{
		API: openai.Responses, Headers: map[string]string{"X-Title": "botd"},
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			got = r
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(sse(doneMsg, completed))), Request: r}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(context.Background(), m, hello()); err != nil {
		t.Fatal(err)
	}
	if got.URL.String() != "https://api.openai.com/v1/responses" {
		t.Errorf("asked %s", got.URL)
	}
	for k, v := range got.Header {
		if strings.Contains(strings.Join(v, ""), "ambient") || k == "X-Ambient" {
			t.Errorf("header %s: %v comes from the environment", k, v)
		}
	}
	if got.Header.Get("Authorization") != "" || got.Header.Get("X-Title") != "botd" {
		t.Errorf("header %v", got.Header)
	}
}

func TestDialectIsFoundByHost(t *testing.T) {
	t.Parallel()
	for base, private := range map[string]bool{
		"https://api.openai.com/v1":                 true,
		"https://eu.api.openai.com/v1":              true,
		"https://shop.openai.azure.com/openai/v1/":  true,
		"http://127.0.0.1:11434/v1":                 false,
		"https://openrouter.ai/api/v1":              false,
		"https://api.openai.com.evil.example/v1":    false,
		"https://evil-openai.azure.com.example/v1/": false,
	} {
		var sent string
		m, err := openai.New(openai.Options{BaseURL: base, API: openai.Responses, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			b, err := io.ReadAll(r.Body)
			sent = string(b)
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(sse(completed))), Request: r}, err
		})})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ask(t.Context(), m, hello()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(sent, `"store":false`); got != private {
			t.Errorf("%s: sent %s", base, sent)
		}
	}
}
