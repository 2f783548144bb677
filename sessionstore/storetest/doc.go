// Package storetest checks that an implementation keeps the contracts of sessionstore and of
// dispatch.Journal. Each contract has a suite; a store calls those of the interfaces that it implements:
//
//	func TestStore(t *testing.T) {
//		storetest.Store(t, func(t *testing.T) sessionstore.Store { return memstore.New() })
//	}
//
// The function that opens a store is called once for each test, with that test's own t: it makes an empty
// store and leaves the closing to the suite, unless it registers a t.Cleanup. Closing twice is no error.
package storetest
