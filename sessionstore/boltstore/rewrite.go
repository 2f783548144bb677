package boltstore

import (
	"context"
	"fmt"
	"slices"

	"botd/sessionstore"
)

// Revision implements sessionstore.Rewriter.
func (db *DB) Revision(ctx context.Context, id sessionstore.ID) (uint64, error) {
	h, err := db.header(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read revision: %w", err)
	}
	return h.revision, nil
}

// Rewrite implements sessionstore.Rewriter.
func (db *DB) Rewrite(ctx context.Context, id sessionstore.ID, r sessionstore.Rewrite) error {
	err := id.Validate()
	if err == nil {
		err = sessionstore.Batch{Items: r.Items}.Validate()
	}
	if err == nil {
		err = db.write(ctx, itemsSize(r.Items), func(tx *writeTx) error { return tx.rewrite(id, r) })
	}
	if err != nil {
		return fmt.Errorf("rewrite session: %w", err)
	}
	return nil
}

// rewrite writes the items to be shown as a view of its own and leaves the one before to be swept.
func (tx *writeTx) rewrite(id sessionstore.ID, r sessionstore.Rewrite) error {
	sid, h, err := tx.session(id)
	if err != nil {
		return err
	}
	if sid == 0 || h.revision != r.Revision {
		return sessionstore.ErrChanged
	}
	n := uint64(len(r.Items))
	if r.Through == 0 || r.Through >= h.next || r.Through < h.through || n > r.Through {
		return fmt.Errorf("%d items through %d do not fit", n, r.Through)
	}
	var kept uint64
	for range backwards(tx.bucket(sesBucket).Cursor(), sid, itemClass, h.epoch, r.Through) {
		kept++
	}
	if h.view != 0 {
		if err := tx.put(swpBucket, epochKey(sid, viewClass, h.view), nil); err != nil {
			return err
		}
	}
	h.view, h.nextEpoch = h.nextEpoch, h.nextEpoch+1
	h.through, h.items = r.Through, kept+n
	h.revision++
	for i, it := range r.Items {
		if it.At.IsZero() {
			it.At = tx.now
		}
		key := itemKey(sid, viewClass, h.view, r.Through-n+1+uint64(i))
		if err := tx.putFor(h.id, sesBucket, key, encodeItem(key, it)); err != nil {
			return err
		}
	}
	return tx.save(sid, &h)
}

// History implements sessionstore.Rewriter.
func (db *DB) History(ctx context.Context, id sessionstore.ID, after uint64, limit int) (items []sessionstore.Item, err error) {
	if err := id.Validate(); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	err = db.view(ctx, func(tx *readTx) error {
		sid, h, err := tx.session(id)
		if sid == 0 || err != nil {
			return err
		}
		items = tx.history(sid, &h, after, limit)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return items, nil
}

// history copies items as they were appended, passing over damaged ones.
func (tx *readTx) history(sid uint64, h *header, after uint64, limit int) []sessionstore.Item {
	var refs []itemRef
	c := tx.bucket(sesBucket).Cursor()
	end := epochKey(sid, itemClass, h.epoch+1)
	for key, rec := c.Seek(itemKey(sid, itemClass, h.epoch, after+1)); key != nil && string(key) < string(end) && len(refs) < limit; key, rec = c.Next() {
		if ref, err := decodeItem(key, tx.plain(sesBucket, key, rec)); err == nil {
			refs = append(refs, ref)
		}
	}
	slices.Reverse(refs)
	return copyItems(refs)
}
