package boltstore

// isNewest reports whether the newest undamaged item that a session shows is of a turn.
func (tx *readTx) isNewest(sid uint64, h *header, turn string) bool {
	if sid == 0 {
		return false
	}
	for ref := range tx.newest(sid, h) {
		return string(ref.turn) == turn
	}
	return false
}

// undo removes the newest items as long as they are of a turn, and what is damaged among them.
func (tx *writeTx) undo(sid uint64, h *header, turn string) error {
	for tx.isNewest(sid, h, turn) {
		if _, _, err := tx.pop(sid, h); err != nil {
			return err
		}
	}
	return nil
}
