-- ARGV: session ID, generation, turn, ttl in ms, then for each item its bytes and the rest of its record.
-- Returns 1 when written or written before, 0 when the session was cleared since.
local id, generation, turn, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
settle()
if (redis.call('HGET', meta, 'generation') or '0') ~= generation then
  return 0
end
if turn ~= '' and redis.call('SADD', turns, turn) == 0 then
  return 1
end
record(redis.call('LLEN', messages))
local seconds = string.format('%.0f', math.floor(now() / 1000))
redis.call('HSET', session, 'session_id', id, 'updated_at', seconds)
redis.call('HSETNX', session, 'created_at', seconds)
redis.call('HSET', meta, 'seen', redis.call('HGET', session, 'created_at'))
for i = 5, #ARGV, 2 do
  local seq = redis.call('HINCRBY', meta, 'seq', 1)
  redis.call('RPUSH', messages, ARGV[i])
  redis.call('RPUSH', items, string.format('%016.0f%016.0f', seq, now()) .. redis.sha1hex(ARGV[i]) .. ARGV[i + 1])
end
touch(id)
keep(ttl)
return 1
