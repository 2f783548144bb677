package config_test

import (
	"strings"
	"testing"

	"botd/config"
)

func TestAdminSocketLiesBesideTheStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"by default", "", "./data/botd.db.sock"},
		{"of another file", "store: bbolt:///var/lib/botd/shop.db\n", "/var/lib/botd/shop.db.sock"},
		{"of no file", "store: \"memory:\"\n", ""},
		{"of no file, where it is given", "store: \"memory:\"\nadmin: {socket: /run/botd.sock}\n", "/run/botd.sock"},
		{"where it is given", "admin: {socket: /run/botd.sock}\n", "/run/botd.sock"},
		{"switched off", "admin: {socket: off}\n", ""},
		{"where its path would be too long", "store: bbolt:///" + strings.Repeat("x", 100) + "/botd.db\n", ""},
	} {
		cfg, problems := config.Parse("botd.yaml", []byte(tt.text+minimal), config.Options{})
		if err := problems.Err(); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := cfg.AdminSocket(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
