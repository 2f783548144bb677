package boltstore

import (
	"fmt"
	"path/filepath"
	"syscall"
)

// networkTypes are file systems on which two machines can hold one lock, or a flush is no promise; by
// statfs(2).
var networkTypes = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x01021997: "9P", 0x5346414f: "AFS", 0x73757245: "Coda",
}

// onNetwork reports, as an error, that a path lies on a file system of another machine.
func onNetwork(path string) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &st); err != nil {
		return fmt.Errorf("look at the file system: %w", err)
	}
	return networkError(uint32(st.Type))
}

func networkError(magic uint32) error {
	if name, ok := networkTypes[magic]; ok {
		return fmt.Errorf("%w: %s", ErrNetwork, name)
	}
	return nil
}
