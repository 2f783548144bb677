package boltstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"botd/sessionstore"
)

// How much one transaction carries at most. Beyond this, waiting for the others costs a caller more than
// the flush that it saves.
const (
	maxBatch      = 512
	maxBatchBytes = 4 << 20
)

// write is one caller's part in a transaction.
type write struct {
	// run validates before it writes, so that a refusal leaves the transaction as it was. It may run
	// again in another transaction when a neighbour spoils the first one.
	run func(*writeTx) error
	// alone, instead of run, is called with no transaction open and none beside it.
	alone func() error
	// size is about how many bytes it writes; frees says that it makes room on the whole.
	size  int
	frees bool

	ctx   context.Context
	state writeState
	wake  chan struct{}
	err   error
}

// writeState says where a write is. It is guarded by writer.mu.
type writeState int

const (
	queued  writeState = iota
	leading            // its caller commits the next transaction
	riding             // part of a transaction
	done
)

// writer groups writes into transactions. It has no goroutine: the caller at the head of the queue
// commits for all that wait, then hands the lead to the next.
type writer struct {
	// commit writes a batch and sets the error of each write in it.
	commit func([]*write)

	mu     sync.Mutex
	busy   bool // somebody leads
	queue  []*write
	closed bool
	idle   sync.Cond // busy became false
}

func newWriter(commit func([]*write)) *writer {
	w := &writer{commit: commit}
	w.idle.L = &w.mu
	return w
}

// do carries out one write and returns its own result. When ctx ends before the write is part of a
// transaction, nothing is written and ctx's error is returned; later than that the outcome is awaited.
func (w *writer) do(ctx context.Context, wr *write) error {
	wr.ctx, wr.wake = ctx, make(chan struct{}, 1)
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return sessionstore.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		w.mu.Unlock()
		return err
	}
	if w.busy {
		w.queue = append(w.queue, wr)
		w.mu.Unlock()
		if !w.wait(wr) {
			return wr.err
		}
	} else {
		w.busy, wr.state = true, leading
		w.mu.Unlock()
	}
	w.lead(wr)
	return wr.err
}

// wait returns when the write is done or withdrawn (false) or its caller has to lead (true).
func (w *writer) wait(wr *write) (lead bool) {
	select {
	case <-wr.wake:
	case <-wr.ctx.Done():
		w.mu.Lock()
		if wr.state == queued {
			w.queue = slices.DeleteFunc(w.queue, func(o *write) bool { return o == wr })
			wr.state, wr.err = done, wr.ctx.Err()
			w.mu.Unlock()
			return false
		}
		w.mu.Unlock()
		<-wr.wake
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return wr.state == leading
}

// lead commits one transaction with what is queued and hands the lead on.
func (w *writer) lead(first *write) {
	batch := w.take(first)
	switch {
	case len(batch) == 0:
	case batch[0].alone != nil:
		first.err = first.alone()
	default:
		w.commit(batch)
	}

	w.mu.Lock()
	var next *write
	if len(w.queue) > 0 {
		next = w.queue[0]
		w.queue = slices.Delete(w.queue, 0, 1)
		next.state = leading
	} else {
		w.busy = false
		w.idle.Broadcast()
	}
	for _, wr := range batch {
		wr.state = done
	}
	w.mu.Unlock()
	if next != nil {
		next.wake <- struct{}{}
	}
	for _, wr := range batch {
		if wr != first {
			wr.wake <- struct{}{}
		}
	}
}

// take returns the writes of the next transaction. A leader whose context has ended meanwhile still
// leads, without a write of its own.
func (w *writer) take(first *write) []*write {
	w.mu.Lock()
	defer w.mu.Unlock()
	var batch []*write
	if first.err = first.ctx.Err(); first.err == nil {
		batch = append(batch, first)
		if first.alone != nil {
			return batch
		}
	}
	size, n := first.size, 0
	for _, wr := range w.queue {
		if wr.alone != nil || len(batch) == maxBatch || size+wr.size > maxBatchBytes {
			break
		}
		wr.state = riding
		batch = append(batch, wr)
		size += wr.size
		n++
	}
	w.queue = slices.Delete(w.queue, 0, n)
	return batch
}

// close refuses new writes and waits for those under way.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for w.busy {
		w.idle.Wait()
	}
}

// write carries out run in a transaction; see write.
func (db *DB) write(ctx context.Context, size int, run func(*writeTx) error) error {
	return db.writer.do(ctx, &write{run: run, size: size})
}

// writeFreeing is write for what makes room.
func (db *DB) writeFreeing(ctx context.Context, run func(*writeTx) error) error {
	return db.writer.do(ctx, &write{run: run, frees: true})
}

// commit writes a batch in as few transactions as it takes, nearly always one. A write that fails after
// it has begun to write, or panics, is left out and the others are run again.
func (db *DB) commit(batch []*write) {
	if err := db.Err(); err != nil {
		failAll(batch, err)
		return
	}
	batch = slices.Clone(batch)
	for len(batch) > 0 {
		spoiler, err := db.commitOnce(batch)
		switch {
		case spoiler >= 0:
			batch = slices.Delete(batch, spoiler, spoiler+1)
		case errors.Is(err, ErrFull):
			// Those that make room may go through where the others do not.
			adding := slices.DeleteFunc(slices.Clone(batch), func(wr *write) bool { return wr.frees })
			if len(adding) == 0 || len(adding) == len(batch) {
				failAll(batch, err)
				return
			}
			failAll(adding, err)
			batch = slices.DeleteFunc(batch, func(wr *write) bool { return !wr.frees })
		case err != nil:
			failAll(batch, err)
			return
		default:
			return
		}
	}
}

func failAll(batch []*write, err error) {
	for _, wr := range batch {
		if wr.err == nil {
			wr.err = err
		}
	}
}

// commitOnce runs a batch in one transaction. spoiler, when not negative, is the place of the write that
// left the transaction unusable; nothing was written then.
func (db *DB) commitOnce(batch []*write) (spoiler int, err error) {
	btx, err := db.begin()
	if err != nil {
		return -1, err
	}
	tx := &writeTx{readTx: readTx{bolt: btx, master: db.master}, now: time.Now()}
	room := db.room(btx)
	for i, wr := range batch {
		if wr.err = nil; !wr.frees {
			if room -= wr.size + writeOverhead; room < 0 {
				wr.err = fmt.Errorf("%w: the file is near its largest size of %d bytes", ErrFull, db.opts.MaxSize)
				continue
			}
		}
		before := tx.dirty
		tx.dirty = false
		wr.err = runWrite(wr, tx)
		if wr.err != nil && tx.dirty {
			rollback(btx)
			return i, nil
		}
		tx.dirty = tx.dirty || before
	}
	if !tx.dirty {
		rollback(btx)
		return -1, nil
	}
	id := btx.ID()
	if err := commitTx(btx); err != nil {
		return -1, db.judge(id, err)
	}
	db.outbox.apply(tx.outbox)
	return -1, nil
}

// writeOverhead is about what a small write needs in pages.
const writeOverhead = 32 << 10

// room returns how many bytes writes may still add before Options.MaxSize is near. What lies behind is
// kept for the writes that make room: bbolt itself, at its limit, refuses those like any other.
func (db *DB) room(tx *bolt.Tx) int {
	if db.opts.MaxSize == 0 {
		return math.MaxInt
	}
	free := db.bolt.Stats().FreePageN * db.bolt.Info().PageSize
	return db.opts.MaxSize - allocSize - db.opts.MaxSize/10 - int(tx.Size()) + free
}

// runWrite runs one write, making an error of a panic.
func runWrite(wr *write, tx *writeTx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			tx.dirty = true // who knows
			err = fmt.Errorf("write panicked: %v", p)
		}
	}()
	return wr.run(tx)
}

// begin opens the transaction of a batch.
func (db *DB) begin() (tx *bolt.Tx, err error) {
	defer recovered(&err, ErrCorrupt)
	if tx, err = db.bolt.Begin(true); err != nil {
		err = fmt.Errorf("begin transaction: %w", err)
	}
	return tx, err
}

// commitTx commits. When bbolt panics over a damaged page, the transaction is given up, so that closing
// the file does not wait for it for ever.
func commitTx(tx *bolt.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, p)
			defer func() { _ = recover() }()
			rollback(tx)
		}
	}()
	return tx.Commit()
}

// rollback gives a transaction up. Its error is of no use: it can only say that the transaction is over.
func rollback(tx *bolt.Tx) { _ = tx.Rollback() }

// judge decides what a failed commit means. While the transaction's number is not to be seen in the
// file, its meta page was not written and nothing happened. For want of room that is an everyday refusal;
// any other error of the disk, or a meta page that may or may not be durable, ends writing for good.
func (db *DB) judge(txID int, err error) error {
	if isFull(err) && !db.shows(txID) {
		db.opts.Logger.Error("no room for a write", "path", db.opts.Path, "err", err)
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	failed := fmt.Errorf("%w: commit: %w", ErrFailed, err)
	db.failed.CompareAndSwap(nil, &failed)
	db.opts.Logger.Error("store has failed, no more writes until it is opened again", "path", db.opts.Path, "err", err)
	return failed
}

// shows reports whether a reader sees the transaction's number, or cannot tell.
func (db *DB) shows(txID int) (seen bool) {
	defer func() {
		if recover() != nil {
			seen = true
		}
	}()
	tx, err := db.bolt.Begin(false)
	if err != nil {
		return true
	}
	defer rollback(tx)
	return tx.ID() >= txID
}
