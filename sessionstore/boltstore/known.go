package boltstore

import (
	"context"
	"encoding/binary"
	"fmt"

	"botd/channels/dispatch"
)

var _ dispatch.Knower = (*DB)(nil)

// Known implements dispatch.Knower.
func (db *DB) Known(ctx context.Context, channel, id string) (known bool, err error) {
	err = db.view(ctx, func(tx *readTx) error {
		v := tx.get(ddpBucket, dedupeKey(channel, id))
		known = len(v) == 8 && now().Before(decodeTime(int64(binary.BigEndian.Uint64(v))))
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look up event: %w", err)
	}
	return known, nil
}
