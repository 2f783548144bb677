package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Default values of Options.
const (
	DefaultKeyPrefix    = "agents:session"
	DefaultWriteTimeout = 10 * time.Second
)

// ErrURL is returned by Open for a URL that it does not understand.
var ErrURL = errors.New("invalid Redis URL")

// ErrCluster is returned by Open for a cluster whose nodes would share one session's keys.
var ErrCluster = errors.New("a cluster needs a key prefix with a hash tag, such as {agents:session}")

// Options are the settings of Open. The zero value of every field but URL is its default.
type Options struct {
	// URL names the server:
	//
	//	redis://user:password@host:6379/0  rediss://…  unix:///run/redis.sock
	//	redis+cluster://user:password@host:6379?addr=host2:6379  rediss+cluster://…
	//
	// Its query may hold key_prefix, ttl (a duration such as 720h, or seconds), and what go-redis
	// understands, such as pool_size or read_timeout.
	URL string
	// KeyPrefix is the SDK's key_prefix.
	KeyPrefix string
	// TTL is how long a session lives after its last write; 0 for ever. Reading and popping do not
	// prolong it, as with the SDK's ttl.
	TTL time.Duration
	// WriteTimeout bounds a write that has begun, which no longer heeds its context.
	WriteTimeout time.Duration
}

// Open connects to the server that o.URL names. Errors: ErrURL, ErrCluster, and those of the client; none
// holds a password.
func Open(ctx context.Context, o Options) (*Store, error) {
	client, err := o.client()
	if err != nil {
		return nil, fmt.Errorf("open Redis store: %w", err)
	}
	if err := client.Ping(ctx).Err(); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("open Redis store: %w", err)
	}
	return &Store{client: client, prefix: o.KeyPrefix, ttl: o.TTL, timeout: o.WriteTimeout, do: newScripts()}, nil
}

// hashTag is the part of a key that alone decides where a cluster keeps it, when there is one.
var hashTag = regexp.MustCompile(`^[^{]*\{[^}]+\}`)

// client makes the client, and fills o from the URL and its defaults.
func (o *Options) client() (redis.UniversalClient, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, ErrURL // url.Error repeats the URL, which may hold a password
	}
	if err := o.parse(u); err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "redis", "rediss", "unix":
		return single(u.String())
	case "redis+cluster", "rediss+cluster":
		if !hashTag.MatchString(o.KeyPrefix) {
			return nil, ErrCluster
		}
		u.Scheme = u.Scheme[:len(u.Scheme)-len("+cluster")]
		return cluster(u.String())
	}
	return nil, fmt.Errorf("%w: unknown scheme %q (redis, rediss, unix, redis+cluster or rediss+cluster)", ErrURL, u.Scheme)
}

// parse takes out of the URL what is not go-redis's.
func (o *Options) parse(u *url.URL) error {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: malformed parameters", ErrURL)
	}
	if v := q.Get("key_prefix"); o.KeyPrefix == "" {
		o.KeyPrefix = v
	}
	if o.KeyPrefix == "" {
		o.KeyPrefix = DefaultKeyPrefix
	}
	if v := q.Get("ttl"); v != "" && o.TTL == 0 {
		if o.TTL, err = parseTTL(v); err != nil {
			return err
		}
	}
	if o.TTL < 0 || o.TTL > 0 && o.TTL < time.Millisecond {
		return fmt.Errorf("%w: a time to live of %v", ErrURL, o.TTL)
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = DefaultWriteTimeout
	}
	q.Del("key_prefix")
	q.Del("ttl")
	u.RawQuery = q.Encode()
	return nil
}

func parseTTL(v string) (time.Duration, error) {
	if n, err := strconv.ParseInt(v, 10, 32); err == nil && n > 0 {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%w: ttl %q is neither a duration such as 720h nor a number of seconds", ErrURL, v)
	}
	return d, nil
}

// The client must not send anything twice: an answer that was lost is no proof that the script did not
// run. Store.retry knows when it is safe.
const noRetries = -1

func single(u string) (redis.UniversalClient, error) {
	opts, err := redis.ParseURL(u)
	if err != nil {
		return nil, fmt.Errorf("%w: go-redis does not take these parameters", ErrURL)
	}
	opts.MaxRetries = noRetries
	opts.ContextTimeoutEnabled = true
	opts.DialerRetries = 1
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(opts), nil
}

func cluster(u string) (redis.UniversalClient, error) {
	opts, err := redis.ParseClusterURL(u)
	if err != nil {
		return nil, fmt.Errorf("%w: go-redis does not take these parameters", ErrURL)
	}
	opts.MaxRetries = noRetries
	opts.ContextTimeoutEnabled = true
	opts.DialerRetries = 1
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(opts), nil
}
