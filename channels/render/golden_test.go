package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestGolden(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("testdata/golden/*.md")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no golden sources: %v", err)
	}
	for _, source := range sources {
		md, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for dialect, f := range map[string]func(string) string{"plain": Plain, "discord": Discord} {
			name := strings.TrimSuffix(source, ".md") + "." + dialect
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				got := f(string(md)) + "\n"
				if *update {
					if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("render %s (-want +got):\n%s", source, diff)
				}
			})
		}
	}
}
