-- ARGV: session ID, ttl in ms.
settle()
redis.call('DEL', session, messages, counter, items, turns)
redis.call('HINCRBY', meta, 'generation', 1)
redis.call('HDEL', meta, 'seen')
touch(ARGV[1])
keep(tonumber(ARGV[2]))
return 1
