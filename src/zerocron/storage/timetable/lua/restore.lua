-- Put members that are missing, or that are later than a claim made now would hide them. What a claim hides is left to
-- its claimer.
--
-- KEYS    1 the list of lanes
-- ARGV    1 channel  2 claimer  3 the instant until which a claim made now hides
--         then for each lane: its name, how many pairs follow, and the pairs: instant, member
-- Output  how many were put; 1 when the shard's earliest instant became earlier, else 0
-- Bound   O(log N) a member; the caller sends at most 200 members
-- Half    as put: every lane that is named is listed again, also when none of its members had to be put
-- Memory  refused as a whole when Redis is out of memory

local hidden = tonumber(ARGV[3])
local before, restored = earliest(), 0
local at = 4
while at <= #ARGV do
  local lane, last = ARGV[at], at + 1 + 2 * tonumber(ARGV[at + 1])
  local key, lost = lane_key(lane), {}
  for pair = at + 2, last, 2 do
    local known = redis.call('ZSCORE', key, ARGV[pair + 1])
    if not known or tonumber(known) > math.max(tonumber(ARGV[pair]), hidden) then
      lost[#lost + 1] = ARGV[pair]
      lost[#lost + 1] = ARGV[pair + 1]
    end
  end
  if #lost > 0 then
    redis.call('ZADD', key, unpack(lost))
    restored = restored + #lost / 2
  end
  list_lane(lane)
  at = last + 1
end
return {restored, announce(before, ARGV[1], ARGV[2])}
