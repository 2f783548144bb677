package boltstore

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"botd/channels/dispatch"
)

// outboxIndex knows where the deliveries lie that are not settled for good, and when they are due. It is
// kept in memory alone and filled when the file is opened: the outbox is small, and an index in the file
// would be written twice for every message. It follows the file: changes arrive here after the commit
// that made them and before its callers return. Readers take candidates from it and then look at the
// file, which decides.
type outboxIndex struct {
	mu    sync.RWMutex
	byID  map[string]*outboxRef
	order []*outboxRef // by seq, gone ones among them
	gone  int
}

// outboxRef is one delivery in the index.
type outboxRef struct {
	id    string
	seq   uint64
	state byte
	next  int64 // as encoded
	gone  bool
}

// outboxChanges are the changes of one transaction, in order.
type outboxChanges struct {
	byID  map[string]outboxRef
	order []string
}

func (c *outboxChanges) set(ref outboxRef) {
	if c.byID == nil {
		c.byID = map[string]outboxRef{}
	}
	if _, ok := c.byID[ref.id]; !ok {
		c.order = append(c.order, ref.id)
	}
	c.byID[ref.id] = ref
}

// find returns the delivery as the transaction sees it.
func (x *outboxIndex) find(id string, c *outboxChanges) (outboxRef, bool) {
	if ref, ok := c.byID[id]; ok {
		return ref, !ref.gone
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if ref := x.byID[id]; ref != nil {
		return *ref, true
	}
	return outboxRef{}, false
}

// apply takes over the changes of a transaction that is durable.
func (x *outboxIndex) apply(c outboxChanges) {
	if len(c.order) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range c.order {
		x.set(c.byID[id])
	}
	if x.gone > 64 && x.gone > len(x.order)/2 {
		x.order = slices.DeleteFunc(x.order, func(ref *outboxRef) bool { return ref.gone })
		x.gone = 0
	}
}

func (x *outboxIndex) set(ref outboxRef) {
	old := x.byID[ref.id]
	switch {
	case old == nil && ref.gone:
	case old != nil && old.seq == ref.seq:
		*old = ref
		if ref.gone {
			delete(x.byID, ref.id)
			x.gone++
		}
	default:
		if old != nil { // settled, and its ID used again, in one transaction
			old.gone = true
			x.gone++
		}
		made := &ref
		x.byID[ref.id] = made
		// At the end, but for one that was settled and is released.
		at, _ := slices.BinarySearchFunc(x.order, ref.seq, func(o *outboxRef, seq uint64) int { return cmp.Compare(o.seq, seq) })
		x.order = slices.Insert(x.order, at, made)
	}
}

// load fills the index from the file.
func (x *outboxIndex) load(tx *readTx) error {
	x.byID = map[string]*outboxRef{}
	c := tx.bucket(outBucket).Cursor()
	for key, rec := c.First(); key != nil; key, rec = c.Next() {
		d, err := decodeOutbox(key, tx.plain(outBucket, key, rec))
		if err != nil {
			return err
		}
		x.set(d.ref(key))
	}
	return nil
}

// due returns the sequence numbers of the deliveries that wait and are due, in order.
func (x *outboxIndex) due(now time.Time) (seqs []uint64) {
	at := now.UnixNano()
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, ref := range x.order {
		if !ref.gone && ref.state == stateWaiting && ref.next <= at {
			seqs = append(seqs, ref.seq)
		}
	}
	return seqs
}

// earliest returns the waiting delivery that is due first; its time 0 means at once.
func (x *outboxIndex) earliest() (ref outboxRef, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.order {
		if !r.gone && r.state == stateWaiting && (!ok || r.next < ref.next) {
			ref, ok = *r, true
		}
	}
	return ref, ok
}

// count adds up the deliveries that are not settled for good.
func (x *outboxIndex) count(st *dispatch.Stats) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, ref := range x.byID {
		switch ref.state {
		case stateWaiting:
			st.Waiting++
		case stateHeld:
			st.Held++
		}
	}
}
