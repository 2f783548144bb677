package boltstore

import (
	"errors"
	"testing"
)

func TestNetworkFileSystems(t *testing.T) {
	t.Parallel()
	for magic, want := range map[uint32]error{
		0x6969: ErrNetwork, 0xff534d42: ErrNetwork, 0xef53: nil /* ext4 */, 0x01021994: nil /* tmpfs */, 0x794c7630: nil, /* overlayfs */
	} {
		if err := networkError(magic); !errors.Is(err, want) {
			t.Errorf("networkError(%#x) = %v, want %v", magic, err, want)
		}
	}
}
