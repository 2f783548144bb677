package boltstore

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"botd/agent"
	"botd/sessionstore"
)

// Items implements sessionstore.Store.
func (db *DB) Items(ctx context.Context, id sessionstore.ID, limit int) (items []sessionstore.Item, err error) {
	if err := id.Validate(); err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	err = db.view(ctx, func(tx *readTx) error {
		sid, h, err := tx.session(id)
		if sid == 0 || err != nil || limit <= 0 {
			return err
		}
		refs := make([]itemRef, 0, min(uint64(limit), h.items))
		for ref := range tx.newest(sid, &h) {
			if refs = append(refs, ref); len(refs) == limit {
				break
			}
		}
		items = copyItems(refs)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	return items, nil
}

// newest iterates over the items that the session shows, newest first, passing over damaged ones.
func (tx *readTx) newest(sid uint64, h *header) func(yield func(itemRef) bool) {
	return func(yield func(itemRef) bool) {
		c := tx.bucket(sesBucket).Cursor()
		for key, rec := range backwards(c, sid, itemClass, h.epoch, h.through) {
			if ref, err := decodeItem(key, tx.plain(sesBucket, key, rec)); err == nil && !yield(ref) {
				return
			}
		}
		if h.view == 0 {
			return
		}
		for key, rec := range backwards(c, sid, viewClass, h.view, 0) {
			if ref, err := decodeItem(key, tx.plain(sesBucket, key, rec)); err == nil && !yield(ref) {
				return
			}
		}
	}
}

// backwards iterates over the records of one epoch whose sequence number is greater than after, from the
// last to the first.
func backwards(c *bolt.Cursor, sid uint64, class byte, epoch uint32, after uint64) func(yield func(key, rec []byte) bool) {
	return func(yield func(key, rec []byte) bool) {
		first := itemKey(sid, class, epoch, after+1)
		var rec []byte
		key, _ := c.Seek(epochKey(sid, class, epoch+1))
		if key == nil {
			key, rec = c.Last()
		} else {
			key, rec = c.Prev()
		}
		for ; bytes.Compare(key, first) >= 0 && len(key) == itemKeyLen; key, rec = c.Prev() {
			if !yield(key, rec) {
				return
			}
		}
	}
}

// Generation implements sessionstore.Store.
func (db *DB) Generation(ctx context.Context, id sessionstore.ID) (uint64, error) {
	h, err := db.header(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read generation: %w", err)
	}
	return h.generation, nil
}

// Usage returns what the session's turns have cost since it was made.
func (db *DB) Usage(ctx context.Context, id sessionstore.ID) (agent.Usage, error) {
	h, err := db.header(ctx, id)
	if err != nil {
		return agent.Usage{}, fmt.Errorf("read usage: %w", err)
	}
	return h.usage, nil
}

func (db *DB) header(ctx context.Context, id sessionstore.ID) (h header, err error) {
	if err := id.Validate(); err != nil {
		return header{}, err
	}
	err = db.view(ctx, func(tx *readTx) error {
		_, h, err = tx.session(id)
		h.recent = nil // ends with the transaction
		return err
	})
	return h, err
}

// Append implements sessionstore.Store.
func (db *DB) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	err := id.Validate()
	if err == nil {
		err = b.Validate()
	}
	if err == nil {
		err = db.write(ctx, itemsSize(b.Items), func(tx *writeTx) error {
			sid, h, err := tx.session(id)
			if err != nil {
				return err
			}
			if h.generation != b.Generation {
				return sessionstore.ErrStale
			}
			if len(b.Items) == 0 || tx.appended(sid, &h, b.Turn) {
				return nil
			}
			if sid, h, err = tx.create(sid, h, id); err != nil {
				return err
			}
			if err := tx.append(sid, &h, b.Turn, b.Items); err != nil {
				return err
			}
			return tx.save(sid, &h)
		})
	}
	if err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	return nil
}

func itemsSize(items []sessionstore.Item) (size int) {
	for i := range items {
		size += len(items[i].Raw)
	}
	return size
}

// append adds a turn's items, which are not empty, and changes the header accordingly.
func (tx *writeTx) append(sid uint64, h *header, turn string, items []sessionstore.Item) error {
	for _, it := range items {
		it.Turn, it.At = turn, tx.now
		key := itemKey(sid, itemClass, h.epoch, h.next)
		if err := tx.putFor(h.id, sesBucket, key, encodeItem(key, it)); err != nil {
			return err
		}
		h.next++
		h.items++
	}
	return tx.remember(sid, h, turn)
}

// Pop implements sessionstore.Store.
func (db *DB) Pop(ctx context.Context, id sessionstore.ID) (it sessionstore.Item, err error) {
	if err := id.Validate(); err != nil {
		return it, fmt.Errorf("pop item: %w", err)
	}
	err = db.writeFreeing(ctx, func(tx *writeTx) error {
		sid, h, err := tx.session(id)
		if err != nil {
			return err
		}
		if sid == 0 {
			return sessionstore.ErrEmpty
		}
		var found bool
		if it, found, err = tx.pop(sid, &h); err != nil {
			return err
		}
		if !found {
			return sessionstore.ErrEmpty
		}
		return nil
	})
	if err != nil {
		return sessionstore.Item{}, fmt.Errorf("pop item: %w", err)
	}
	return it, nil
}

// pop deletes the newest valid item. When there is none it deletes nothing: damaged items alone are left
// for an operator to look at.
func (tx *writeTx) pop(sid uint64, h *header) (it sessionstore.Item, found bool, err error) {
	for ref := range tx.newest(sid, h) {
		it, found = copyItems([]itemRef{ref})[0], true
		break
	}
	if !found {
		return it, false, nil
	}
	// The record found is the newest undamaged one: all that lies behind it is damaged.
	var keys [][]byte
	c := tx.bucket(sesBucket).Cursor()
	collect := func(class byte, epoch uint32, after uint64) bool {
		for key, rec := range backwards(c, sid, class, epoch, after) {
			keys = append(keys, bytes.Clone(key))
			if _, err := decodeItem(key, tx.plain(sesBucket, key, rec)); err == nil {
				return true
			}
		}
		return false
	}
	if !collect(itemClass, h.epoch, h.through) {
		collect(viewClass, h.view, 0)
	}
	for _, key := range keys {
		if err := tx.delete(sesBucket, key); err != nil {
			return it, false, err
		}
		h.items -= min(h.items, 1)
	}
	h.revision++
	return it, true, tx.save(sid, h)
}

// Clear implements sessionstore.Store.
func (db *DB) Clear(ctx context.Context, id sessionstore.ID) error {
	err := id.Validate()
	if err == nil {
		err = db.writeFreeing(ctx, func(tx *writeTx) error {
			sid, h, err := tx.session(id)
			if err != nil {
				return err
			}
			if sid, h, err = tx.create(sid, h, id); err != nil {
				return err
			}
			if err := db.clear(tx, sid, &h); err != nil {
				return err
			}
			return tx.save(sid, &h)
		})
	}
	if err != nil {
		return fmt.Errorf("clear session: %w", err)
	}
	return nil
}

// Sessions implements sessionstore.Lister.
func (db *DB) Sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) ([]sessionstore.Info, error) {
	const page = 256
	var infos []sessionstore.Info
	for len(infos) < limit {
		n := 0
		err := db.view(ctx, func(tx *readTx) error {
			c := tx.bucket(keyBucket).Cursor()
			from := max(prefix, string(after))
			key, _ := c.Seek([]byte(from))
			if key != nil && string(key) == string(after) {
				key, _ = c.Next()
			}
			for ; key != nil && strings.HasPrefix(string(key), prefix) && n < page && len(infos) < limit; key, _ = c.Next() {
				id := sessionstore.ID(key)
				_, h, err := tx.session(id)
				if err != nil {
					return err
				}
				infos = append(infos, sessionstore.Info{
					ID: id, Items: int(h.items), Generation: h.generation, Created: h.created, Updated: h.updated,
				})
				after = id
				n++
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		if n < page {
			break
		}
	}
	return infos, nil
}
