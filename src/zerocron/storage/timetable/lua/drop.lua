-- Forget members.
--
-- KEYS    1 the list of lanes
-- ARGV    for each lane: its name, how many members follow, and the members
-- Output  how many there were
-- Bound   O(log N) a member; the caller sends at most 200 members
-- Half    the lane is listed earlier than it should be, which the next claim corrects

local dropped, at = 0, 1
while at <= #ARGV do
  local lane, last = ARGV[at], at + 1 + tonumber(ARGV[at + 1])
  dropped = dropped + redis.call('ZREM', lane_key(lane), unpack(ARGV, at + 2, last))
  list_lane(lane)
  at = last + 1
end
return dropped
