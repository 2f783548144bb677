// Package redisstore keeps sessions in Redis, under the keys of the OpenAI Agents SDK's RedisSession, so
// that a Python program can read and write the same conversations at the same time.
//
// For a session ID and the prefix P (agents:session by default) the SDK's keys are the hash P:ID, the list
// P:ID:messages and the counter P:ID:counter. What the SDK has no place for stands beside: the hash
// botd:meta:P:ID (generation, sequence), the list botd:items:P:ID (sequence, turn, origin and time of each
// message), the set botd:turns:P:ID, and the sorted set botd:index:P of all session IDs. Messages that
// Python added have no record there until the next write here; their time is not known.
//
// # Concurrency
//
// A Store is safe for concurrent use, and so are several on one server. Every write is one Lua script.
//
// # Durability
//
// A write that returned nil is as durable as the server makes it: with appendfsync always on the disk, with
// everysec up to a second may be lost, and a failover to a replica may lose what had not reached it.
//
// # Cluster
//
// One session's keys lie on different nodes of a cluster, because the SDK's names hold no hash tag, and
// there is no atomic write across nodes. So a cluster needs a prefix with a hash tag, such as
// {agents:session}, given to Python as key_prefix too. All sessions then lie on one node; a cluster gives
// such a store failover, not room.
package redisstore
