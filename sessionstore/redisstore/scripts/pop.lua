-- ARGV: session ID, ttl in ms. Returns the newest message and its record, which are removed, or nothing.
-- It does not prolong the session's life, but what it makes must not outlive it for ever.
local ttl = tonumber(ARGV[2])
settle()
local n = redis.call('LLEN', messages)
if n == 0 then
  return false
end
-- An envelope of EncryptedSession stays where it is.
local newest = redis.call('LINDEX', messages, -1)
if string.find(newest, '__enc__', 1, true) then
  local ok, item = pcall(cjson.decode, newest)
  if ok and type(item) == 'table' and (item['__enc__'] == 1 or item['__enc__'] == true)
    and item['payload'] ~= nil and item['kid'] ~= nil and item['v'] ~= nil then
    return redis.error_reply('SEALED')
  end
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
