-- Take or renew the duty, which one node at a time holds.
--
-- KEYS    1 the duty: STRING, the claimer that holds it
-- ARGV    1 claimer  2 for how long, ms
-- Output  1 when the caller holds it, else 0
-- Bound   O(1)
-- Half    one write decides
-- Memory  goes on when Redis is out of memory, as claim does

local kind = redis.call('TYPE', KEYS[1]).ok
local holder = kind == 'string' and redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
