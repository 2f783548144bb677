package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/redisstore"
	"botd/sessionstore/storetest"
)

// startCluster starts a cluster of two nodes on this machine and returns their addresses.
func startCluster(t *testing.T) []string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	var addrs []string
	var nodes []*redis.Client
	for range 2 {
		addr := startNode(t, path)
		node := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { node.Close() })
		addrs, nodes = append(addrs, addr), append(nodes, node)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	wait := func(what string, ok func() bool) {
		t.Helper()
		for !ok() {
			select {
			case <-ctx.Done():
				t.Fatalf("the cluster does not come up: %s", what)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	for _, node := range nodes {
		wait("ping", func() bool { return node.Ping(ctx).Err() == nil })
	}
	for i, r := range [][2]int{{0, 8191}, {8192, 16383}} {
		if err := nodes[i].ClusterAddSlotsRange(ctx, r[0], r[1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := net.SplitHostPort(addrs[1])
	if err := nodes[0].ClusterMeet(ctx, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		wait("state", func() bool {
			info := node.ClusterInfo(ctx).Val()
			return containsAll(info, "cluster_state:ok", "cluster_slots_assigned:16384")
		})
	}
	return addrs
}

func containsAll(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// startNode starts a server on a port of its own, and on the one 10,000 above for the cluster's talk.
func startNode(t *testing.T, path string) string {
	t.Helper()
	for {
		ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := ln.Addr().(*net.TCPAddr).Port
		ln.Close()
		if port+10000 > 65535 {
			continue
		}
		cmd := exec.CommandContext(t.Context(), path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
			"--cluster-enabled", "yes", "--cluster-node-timeout", "15000", "--save", "", "--dir", t.TempDir())
		var out dbtest.Tail
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("redis-server: %s", out.String())
			}
		})
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	addrs := startCluster(t)
	var n atomic.Int64
	fresh := func(t *testing.T) *redisstore.Store {
		// The tags fall on both nodes.
		return open(t, redisstore.Options{URL: "redis+cluster://" + addrs[0] + "?addr=" + addrs[1], KeyPrefix: fmt.Sprintf("{agents:%d}", n.Add(1))})
	}
	t.Run("Store", func(t *testing.T) {
		storetest.Store(t, func(t *testing.T) sessionstore.Store { return fresh(t) })
	})
	t.Run("Lister", func(t *testing.T) {
		storetest.Lister(t, func(t *testing.T) storetest.Listing { return fresh(t) })
	})
}
