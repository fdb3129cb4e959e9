-- What every script of the timetable begins with: the keys of one shard, and the list of its lanes.
--
-- All keys of a shard carry the same hash tag, so that they lie in one slot of a Redis Cluster. A script is given the
-- key of the list of lanes and computes the keys of the lanes it meets from it: same tag, same slot.
--
--   <prefix>:{<shard>}:lanes        ZSET  lane -> instant of its first member
--   <prefix>:{<shard>}:lane:<lane>  ZSET  member -> instant at which it is due
--
-- Instants and ids come from the caller and travel as text; no script reads Redis' own clock.
-- Redis keeps the writes of a script that fails half way: whoever touches a lane lists it last, and lists it again even
-- when nothing had to be changed, so that the next call for that lane makes good for it.

local LANES = KEYS[1]
local LANE = string.sub(LANES, 1, -string.len('lanes') - 1) .. 'lane:'

-- The key of a lane that is to be written. A key of another type there is none of ours, and goes: it must not stop the
-- other lanes, and the ledger has what belongs into this one.
local function lane_key(lane)
  local key = LANE .. lane
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'zset' and kind ~= 'none' then
    redis.call('DEL', key)
  end
  return key
end

-- The instant of a lane's first member; false when it has none.
local function head_of(lane)
  return redis.call('ZRANGE', LANE .. lane, 0, 0, 'WITHSCORES')[2] or false
end

-- Make the list of lanes agree with a lane.
local function list_lane(lane)
  local head = head_of(lane)
  if head then
    redis.call('ZADD', LANES, head, lane)
  else
    redis.call('ZREM', LANES, lane)
  end
end

-- The earliest instant of the shard; false when it is empty.
local function earliest()
  local head = redis.call('ZRANGE', LANES, 0, 0, 'WITHSCORES')[2]
  return head and tonumber(head)
end

-- Tell the nodes that wait when the shard's earliest instant is earlier than it was; 1 if so, else 0. A user who may
-- not publish costs them the hint and nothing else.
local function announce(before, channel, claimer)
  local after = earliest()
  if after and (not before or after < before) then
    redis.pcall('PUBLISH', channel, claimer)
    return 1
  end
  return 0
end

