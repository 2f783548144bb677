-- Shared by all scripts. A record in the items list stands at the same place as its message and reads
--   sequence (16 digits) | time (16 digits, ms) | SHA-1 of the message (40) | length of turn (4) | turn | origin
-- so that a record which Python has left behind, by popping and adding, is known by its hash.
local session, messages, counter, meta, items, turns, index =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]

local function expect(key, kind)
  local t = redis.call('TYPE', key)['ok']
  if t ~= 'none' and t ~= kind then
    return redis.error_reply('WRONGTYPE a key of the session is a ' .. t .. ', want a ' .. kind)
  end
end
local wrong = expect(session, 'hash') or expect(messages, 'list') or expect(meta, 'hash') or expect(items, 'list')
  or expect(turns, 'set') or expect(index, 'zset')
if wrong then
  return wrong
end

local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- fits tells whether the record at a place belongs to the message at that place.
local function fits(place)
  local record, message = redis.call('LINDEX', items, place), redis.call('LINDEX', messages, place)
  return record and message and string.sub(record, 33, 72) == redis.sha1hex(message)
end

-- cleared tells whether Python has cleared the session since the last write here. Early releases of the
-- SDK write created_at anew with every add, hence the look at the first message. A session that has
-- outlived its time was not cleared.
local function cleared()
  local known = redis.call('HMGET', meta, 'seen', 'expires')
  if not known[1] then
    return false
  end
  local created = redis.call('HGET', session, 'created_at')
  if created == known[1] or created and fits(0) then
    return false
  end
  return not (known[2] and now() >= tonumber(known[2]))
end

-- settle counts a clear by Python.
local function settle()
  if cleared() then
    redis.call('HINCRBY', meta, 'generation', 1)
    redis.call('HDEL', meta, 'seen')
    redis.call('DEL', items, turns)
  end
end

-- recorded returns how many of the first n messages have records.
local function recorded(n)
  local m = math.min(redis.call('LLEN', items), n)
  while m > 0 and not fits(m - 1) do
    m = m - 1
  end
  return m
end

-- record gives the messages that have no records theirs.
local function record(n)
  local m = recorded(n)
  if m == 0 then
    redis.call('DEL', items)
  else
    redis.call('LTRIM', items, 0, m - 1)
  end
  while m < n do
    local chunk = redis.call('LRANGE', messages, m, math.min(m + 499, n - 1))
    for _, message in ipairs(chunk) do
      local seq = redis.call('HINCRBY', meta, 'seq', 1)
      redis.call('RPUSH', items, string.format('%016.0f%016.0f', seq, 0) .. redis.sha1hex(message) .. '0000')
    end
    m = m + #chunk
  end
end

-- keep applies the time to live, 0 for none. What tells generations apart lives a day longer, so that a run
-- that began just before the end is not taken for one from before a clear.
local function keep(ttl)
  if ttl > 0 then
    for _, key in ipairs({ session, messages, counter, items, turns }) do
      redis.call('PEXPIRE', key, ttl)
    end
    redis.call('PEXPIRE', meta, ttl + 86400000)
    redis.call('HSET', meta, 'expires', string.format('%.0f', now() + ttl))
  else
    redis.call('PERSIST', meta)
    redis.call('HDEL', meta, 'expires')
  end
end

-- touch notes a change of the session named id.
local function touch(id)
  local t = string.format('%.0f', now())
  redis.call('HSETNX', meta, 'created', t)
  redis.call('HSET', meta, 'updated', t)
  redis.call('ZADD', index, 0, id)
end
