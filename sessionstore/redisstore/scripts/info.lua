-- Writes nothing. Returns whether there is a session, its generation, how many messages it has, the SDK's
-- created_at and updated_at, and when it was made and changed here, in ms; '' for what is not known.
local there = redis.call('EXISTS', session, messages, meta)
local generation = tonumber(redis.call('HGET', meta, 'generation') or 0)
if cleared() then
  generation = generation + 1
end
local sdk = redis.call('HMGET', session, 'created_at', 'updated_at')
local own = redis.call('HMGET', meta, 'created', 'updated')
return { there, generation, redis.call('LLEN', messages), sdk[1] or '', sdk[2] or '', own[1] or '', own[2] or '' }
