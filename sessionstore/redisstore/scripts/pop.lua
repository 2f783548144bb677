-- ARGV: session ID, ttl in ms. Returns the newest message and its record, which are removed, or nothing.
-- It does not prolong the session's life, but what it makes must not outlive it for ever.
local ttl = tonumber(ARGV[2])
settle()
local n = redis.call('LLEN', messages)
if n == 0 then
  return false
end
record(n)
touch(ARGV[1])
if ttl > 0 then
  for _, key in ipairs({ items, meta }) do
    if redis.call('PTTL', key) == -1 then
      redis.call('PEXPIRE', key, ttl + 86400000)
    end
  end
end
return { redis.call('RPOP', messages), redis.call('RPOP', items) }
