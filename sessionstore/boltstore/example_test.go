package boltstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"botd/sessionstore"
	"botd/sessionstore/boltstore"
)

func Example() {
	dir, err := os.MkdirTemp("", "botd")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := boltstore.Open(boltstore.Options{Path: filepath.Join(dir, "botd.db")})
	if err != nil {
		panic(err)
	}
	defer db.Close()

	ctx := context.Background()
	const id sessionstore.ID = "line-shop:user:U4af"
	generation, err := db.Generation(ctx, id)
	if err != nil {
		panic(err)
	}
	err = db.Append(ctx, id, sessionstore.Batch{Turn: "t1", Generation: generation, Items: []sessionstore.Item{
		{Raw: []byte(`{"role":"user","content":"Are you open on Sunday?"}`)},
		{Raw: []byte(`{"role":"assistant","content":"From ten to six."}`)},
	}})
	if err != nil {
		panic(err)
	}
	items, err := db.Items(ctx, id, 40)
	if err != nil {
		panic(err)
	}
	for _, it := range items {
		fmt.Printf("%s\n", it.Raw)
	}
	// Output:
	// {"role":"user","content":"Are you open on Sunday?"}
	// {"role":"assistant","content":"From ten to six."}
}
