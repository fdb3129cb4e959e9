-- Forget the members of some lanes, and then that there was an index at all; the caller asks until no lane is left.
--
-- KEYS    1 the list of lanes  2 the epoch
-- ARGV    1 how many lanes
-- Output  how many lanes are left
-- Bound   O(log N) a lane, which is freed in the background; the caller asks for at most 100
-- Half    the lanes that are still listed go with the next call

if redis.call('TYPE', LANES).ok ~= 'zset' then
  redis.call('DEL', LANES)
end
for _, lane in ipairs(redis.call('ZRANGE', LANES, 0, ARGV[1] - 1)) do
  redis.call('UNLINK', LANE .. lane)
  redis.call('ZREM', LANES, lane)
end
redis.call('DEL', KEYS[2])
return redis.call('ZCARD', LANES)
