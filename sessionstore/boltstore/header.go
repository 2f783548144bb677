package boltstore

import (
	"encoding/binary"
	"time"

	"botd/agent"
	"botd/sessionstore"
)

// header is what is known of a session beside its items.
type header struct {
	id         sessionstore.ID
	generation uint64
	// revision counts the changes that were no appends.
	revision uint64
	// epoch is where the items are, nextEpoch the next one never used.
	epoch, nextEpoch uint32
	// next is the next sequence number.
	next uint64
	// items counts what Items gives.
	items uint64
	// view, when not 0, is the epoch of the items shown in place of those up to through.
	view    uint32
	through uint64
	// recent are the newest turns appended in the epoch. It is part of the file.
	recent turnList

	created, updated time.Time
	usage            agent.Usage
}

func newHeader(id sessionstore.ID, now time.Time) header {
	return header{id: id, epoch: 1, nextEpoch: 2, next: 1, created: now, updated: now}
}

// used reports whether something was appended in the present epoch.
func (h *header) used() bool { return h.next > 1 }

func (h *header) encode(key []byte) []byte {
	b := newRecord(len(h.id) + len(h.recent) + 72)
	for _, v := range []uint64{
		h.generation, h.revision, uint64(h.epoch), uint64(h.nextEpoch), h.next, h.items, uint64(h.view), h.through,
	} {
		b = binary.AppendUvarint(b, v)
	}
	b = appendTime(appendTime(b, h.created), h.updated)
	b = appendUsage(b, h.usage)
	b = appendBytes(b, h.id)
	return seal(key, appendBytes(b, h.recent))
}

func decodeHeader(key, rec []byte) (header, error) {
	payload, err := unseal(key, rec)
	if err != nil {
		return header{}, err
	}
	r := reader{b: payload}
	h := header{
		generation: r.uvarint(), revision: r.uvarint(), epoch: uint32(r.uvarint()), nextEpoch: uint32(r.uvarint()),
		next: r.uvarint(), items: r.uvarint(), view: uint32(r.uvarint()), through: r.uvarint(),
		created: r.time(), updated: r.time(),
	}
	h.usage = readUsage(&r)
	h.id = sessionstore.ID(r.bytes())
	h.recent = r.bytes()
	return h, r.err(key)
}

func appendUsage(b []byte, u agent.Usage) []byte {
	for _, v := range []int{u.Requests, u.InputTokens, u.CachedTokens, u.OutputTokens, u.ReasoningTokens} {
		b = binary.AppendUvarint(b, uint64(max(0, v)))
	}
	if u.Estimated {
		return append(b, 1)
	}
	return append(b, 0)
}

func readUsage(r *reader) agent.Usage {
	return agent.Usage{
		Requests: int(r.uvarint()), InputTokens: int(r.uvarint()), CachedTokens: int(r.uvarint()),
		OutputTokens: int(r.uvarint()), ReasoningTokens: int(r.uvarint()), Estimated: r.byte() == 1,
	}
}
