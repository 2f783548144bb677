package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"botd/sessionstore"
)

// scanCount is how many keys the server looks at before it answers.
const scanCount = 1000

// Sessions implements sessionstore.Lister. A session that was cleared is listed without items. Info.Items
// counts messages, those that are no valid items included. The first page, with an empty after, looks
// through all keys of the server for sessions that Python has made.
func (s *Store) Sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) ([]sessionstore.Info, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	defer leave()
	if limit <= 0 {
		return nil, nil
	}
	if after == "" {
		if err := s.read(ctx, func() error { return s.discover(ctx, prefix) }); err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
	}
	infos, err := s.list(ctx, prefix, string(after), limit)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return infos, nil
}

// discover puts the IDs of all sessions with the prefix into the index.
func (s *Store) discover(ctx context.Context, prefix string) error {
	c, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.scan(ctx, s.client, prefix)
	}
	var mu sync.Mutex // one node at a time; one of them has all
	return c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		return s.scan(ctx, node, prefix)
	})
}

func (s *Store) scan(ctx context.Context, node redis.Cmdable, prefix string) error {
	head := s.prefix + ":"
	it := node.ScanType(ctx, 0, globEscape.Replace(head+prefix)+"*", scanCount, "hash").Iterator()
	var found []string
	for it.Next(ctx) {
		found = append(found, strings.TrimPrefix(it.Val(), head))
		if len(found) == scanCount {
			if err := s.indexSessions(ctx, found); err != nil {
				return err
			}
			found = found[:0]
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	return s.indexSessions(ctx, found)
}

// globEscape takes the meaning from what SCAN's patterns give one.
var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// indexSessions adds the IDs whose keys are sessions': their hash says so.
func (s *Store) indexSessions(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	said := make([]*redis.StringCmd, len(ids))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			said[i] = p.HGet(ctx, s.prefix+":"+id, "session_id")
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // a hash without the field is another's
		return err
	}
	var members []redis.Z
	for i, id := range ids {
		if said[i].Val() == id {
			members = append(members, redis.Z{Member: id})
		}
	}
	if len(members) == 0 {
		return nil
	}
	return s.client.ZAdd(ctx, s.index(), members...).Err()
}

// list reads the index, whose members are in the order of their bytes, and takes out those whose time was
// up.
func (s *Store) list(ctx context.Context, prefix, after string, limit int) ([]sessionstore.Info, error) {
	var infos []sessionstore.Info
	low := "[" + prefix
	if after >= prefix {
		low = "(" + after
	}
	for len(infos) < limit {
		ids, err := s.indexed(ctx, low, min(limit-len(infos), page))
		if err != nil || len(ids) == 0 {
			return infos, err
		}
		for _, id := range ids {
			if !strings.HasPrefix(id, prefix) {
				return infos, nil
			}
			info, there, err := s.info(ctx, sessionstore.ID(id))
			if err != nil {
				return nil, err
			}
			if there {
				infos = append(infos, info)
			} else if err := s.client.ZRem(ctx, s.index(), id).Err(); err != nil {
				return nil, err
			}
		}
		low = "(" + ids[len(ids)-1]
	}
	return infos, nil
}

func (s *Store) indexed(ctx context.Context, low string, n int) (ids []string, err error) {
	err = s.read(ctx, func() (err error) {
		ids, err = s.client.ZRangeByLex(ctx, s.index(), &redis.ZRangeBy{Min: low, Max: "+", Count: int64(n)}).Result()
		return err
	})
	return ids, err
}

// info describes one session; there is false when nothing is known of it.
func (s *Store) info(ctx context.Context, id sessionstore.ID) (info sessionstore.Info, there bool, err error) {
	var answer []any
	err = s.read(ctx, func() (err error) {
		answer, err = s.do.info.Run(ctx, s.client, s.keys(id)).Slice()
		return err
	})
	if err != nil {
		return info, false, err
	}
	if len(answer) != 7 {
		return info, false, errAnswer
	}
	number := func(i int) int64 {
		switch v := answer[i].(type) {
		case int64:
			return v
		case string:
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
		return 0
	}
	info = sessionstore.Info{ID: id, Generation: uint64(number(1)), Items: int(number(2))}
	// What is noted here is more exact and outlives a clear; what the SDK noted may be newer.
	if info.Created = instant(number(5)); info.Created.IsZero() {
		info.Created = instant(number(3) * 1000)
	}
	if info.Updated = instant(number(6)); info.Updated.Unix() < number(4) {
		info.Updated = instant(number(4) * 1000)
	}
	return info, number(0) > 0, nil
}

// instant is a time in milliseconds, 0 for none.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
