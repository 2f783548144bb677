-- ARGV: place behind the last message wanted, -1 for the end; how many at most. Writes nothing.
-- Returns the place of the first message, the messages, the records that there are for the first of them,
-- how many messages of the session have records, and the sequence number of the last record ever made.
local n, count = redis.call('LLEN', messages), tonumber(ARGV[2])
local stop = tonumber(ARGV[1])
if stop < 0 or stop > n then
  stop = n
end
local start = math.max(0, stop - count)
if start >= stop then
  return { start, {}, {}, 0, 0 }
end
local m = recorded(n)
local records = {}
if m > start then
  records = redis.call('LRANGE', items, start, math.min(m, stop) - 1)
end
return { start, redis.call('LRANGE', messages, start, stop - 1), records, m, tonumber(redis.call('HGET', meta, 'seq') or 0) }
