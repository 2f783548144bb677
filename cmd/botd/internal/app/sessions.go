package app

import "botd/sessionstore"

// Sessions returns the store of the conversations, to look at; it is closed when Run returns.
func (a *App) Sessions() sessionstore.Store { return a.store }
