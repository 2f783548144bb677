package sqlstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/sqlstore"
)

// victimFile names the file that this process, started by TestKilledProcess, writes to until it is killed.
const victimFile = "BOTD_TEST_VICTIM_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(victimFile); file != "" {
		if err := beVictim(context.Background(), file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beVictim appends turns from several goroutines, and says which are acknowledged.
func beVictim(ctx context.Context, file string) error {
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: "sqlite:///" + file})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				turn := fmt.Sprintf("%d-%d", w, n)
				raw := fmt.Sprintf(`{"turn":"%s"}`, turn)
				if err := s.Append(ctx, "s", sessionstore.Batch{Turn: turn, Items: dbtest.Items(raw, raw)}); err != nil {
					return
				}
				fmt.Println(turn) // one write, so lines do not mix
			}
		})
	}
	wg.Wait()
	return nil
}

func TestKilledProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.db")
	acknowledged := map[string]bool{}
	for round := range 5 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), victimFile+"="+file)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			acknowledged[lines.Text()] = true
			if n == 20+7*round {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
	}
	s := openFile(t, file)
	found := map[string]int{}
	items, err := s.Items(t.Context(), "s", sessionstore.All)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		found[it.Turn]++
	}
	for turn := range acknowledged {
		if found[turn] == 0 {
			t.Errorf("turn %s was acknowledged and is lost", turn)
		}
	}
	for turn, n := range found {
		if n != 2 {
			t.Errorf("turn %s has %d items, want 2", turn, n)
		}
	}
	var verdict string
	if err := plain(t, file).QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity check: %q, %v", verdict, err)
	}
}
