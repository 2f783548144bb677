package doctor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/cmd/botd/internal/doctor"
	"botd/config"
)

func options() config.Options {
	return config.Options{LookupEnv: func(string) (string, bool) { return "planted", true }}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "botd.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const agents = `
providers: {local: {type: offline}}
agents: {a: {models: [local/x]}}
`

func TestReportNamesWhatToRegister(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	got := doctor.Check(write(t, "store: bbolt://"+dir+"/botd.db\nserver: {public_url: \"https://bot.shop.test/\"}"+agents+`
channels:
  shop: {type: line, channel_secret: "${A}", channel_access_token: "x-${B}"}
  here: {type: console}
`), options())
	want := []doctor.Channel{
		{Name: "here", Type: config.Console, Agent: "a"},
		{Name: "shop", Type: config.LINE, Agent: "a", WebhookPath: "/webhook/shop", WebhookURL: "https://bot.shop.test/webhook/shop"},
	}
	if diff := cmp.Diff(want, got.Channels); diff != "" || !got.OK {
		t.Errorf("ok %v, channels (-want +got):\n%s\n%s", got.OK, diff, got.Problems)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the check left %v in the folder of the store, %v", left, err)
	}
}

func TestFolderOfTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		store, want string
		ok          bool
	}{
		{dir + "/botd.db", "", true},
		{dir + "/not/made/yet/botd.db", "", true},
		{file + "/botd.db", "is not a folder", false},
	} {
		r := doctor.Check(write(t, fmt.Sprintf("store: bbolt://%s\n%schannels: {c: {type: console}}\n", tt.store, agents)), options())
		if r.OK != tt.ok || !strings.Contains(r.Problems.String(), tt.want) {
			t.Errorf("store %s: ok %v, problems: %s", tt.store, r.OK, r.Problems)
		}
	}
}

func TestAConfigurationWithErrorsHasNoChannels(t *testing.T) {
	t.Parallel()
	r := doctor.Check(write(t, "nonsense: 1\n"), options())
	if r.OK || len(r.Channels) != 0 || len(r.Problems) == 0 {
		t.Errorf("report = %+v", r)
	}
}
