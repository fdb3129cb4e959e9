-- Set when members are due, whatever they were before.
--
-- KEYS    1 the list of lanes
-- ARGV    1 channel  2 claimer, who is not told what it did itself
--         then for each lane: its name, how many pairs follow, and the pairs: instant, member
-- Output  1 when the shard's earliest instant became earlier, else 0
-- Bound   O(log N) a member; the caller sends at most 200 members
-- Half    a lane's members are written before the lane is listed: they wait for the next call that touches the lane,
--         at the latest a sweep's
-- Memory  refused as a whole when Redis is out of memory

local before = earliest()
local at = 3
while at <= #ARGV do
  local lane, last = ARGV[at], at + 1 + 2 * tonumber(ARGV[at + 1])
  redis.call('ZADD', lane_key(lane), unpack(ARGV, at + 2, last))
  list_lane(lane)
  at = last + 1
end
return announce(before, ARGV[1], ARGV[2])
