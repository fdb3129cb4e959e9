-- Count the members of some lanes; the caller asks page by page. Members may move between two pages.
--
-- KEYS    1 the list of lanes
-- ARGV    1 the rank of the first lane  2 how many lanes
-- Output  how many members they have; how many lanes there were
-- Bound   O(1) a lane; the caller asks for at most 500
-- Half    writes nothing

local lanes = redis.call('ZRANGE', LANES, ARGV[1], ARGV[1] + ARGV[2] - 1)
local members = 0
for _, lane in ipairs(lanes) do
  local count = redis.pcall('ZCARD', LANE .. lane)
  if type(count) == 'number' then
    members = members + count
  end
end
return {members, #lanes}
