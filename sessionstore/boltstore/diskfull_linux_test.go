package boltstore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"botd/sessionstore"
)

const diskFullPath = "BOTD_DISK_FULL_PATH"

// TestDiskFull checks what TestFull does where the refusal comes from the operating system: in a process
// that may not make files larger than 24 MiB, which has nothing else to write.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(diskFullPath); path != "" {
		writeToFullDisk(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "botd.db")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiskFull$", "-test.v")
	cmd.Env = append(os.Environ(), diskFullPath+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	db := openTest(t, Options{Path: path})
	if db.Crashed() {
		t.Error("Crashed() = true, want false")
	}
	wantItems(t, db, "small", 1)
}

func writeToFullDisk(t *testing.T, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 24 << 20, Max: 24 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	db, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	written := 0
	for ; err == nil && written < 1000; written++ {
		err = db.Append(ctx, "big", sessionstore.Batch{Turn: fmt.Sprint(written), Items: bulk(256 << 10)})
	}
	if !errors.Is(err, ErrFull) || db.Err() != nil {
		t.Fatalf("Append to a full disk = %v, Err() = %v, want ErrFull, nil", err, db.Err())
	}
	wantItems(t, db, "big", written-1)
	if _, err := db.Pop(ctx, "big"); err != nil {
		t.Errorf("Pop with a full disk = %v, want nil", err)
	}
	if err := db.Append(ctx, "small", sessionstore.Batch{Items: bulk(10)}); err != nil {
		t.Errorf("Append of what fits = %v, want nil", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
}
