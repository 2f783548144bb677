-- ARGV: session ID. Returns the newest message and its record, which are removed, or nothing.
settle()
local n = redis.call('LLEN', messages)
if n == 0 then
  return false
end
record(n)
touch(ARGV[1])
return { redis.call('RPOP', messages), redis.call('RPOP', items) }
