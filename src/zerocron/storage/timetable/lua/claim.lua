-- Take due members and push them away in the same step, a fair share from every lane.
--
-- Each claim of a node has a number, and the node says up to which number it got the answers. When the claim that is on
-- record was never answered, it is taken back before anything else: its members are due again as they were, and this
-- claim finds them. A claim that comes later than a younger call of the same node was given up by it, and does nothing;
-- one that was merely overtaken is made again.
--
-- KEYS    1 the list of lanes  2 the record of the node's last claim  3 the node's mark
-- ARGV    1 now  2 how many at most  3 the instant until which they are hidden  4 how long that is, ms
--         5 the claim's number  6 the last number that was answered  7 where to begin when more lanes are due than asked
--         for  8 the last number that the mark is known to have had  9 how long the mark is kept, ms
--         then the lanes that are passed over
-- Output  the earliest instant left in the lanes that were not passed over, or ""; then the members
-- Bound   O(log N) a member and at most `how many` lanes with three commands each; so at most 200 of both, and one
--         more for each lane passed over. The number of members and of lanes does not matter
-- Half    members that are hidden and were not returned come back by themselves; a lane is listed too early, which the
--         next claim corrects
-- Memory  goes on when Redis is out of memory: its first write is one that Redis allows then, and after a first write a
--         script may go on

local now, wanted, hidden, hide_ms = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local number, answered, turn = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local passed_over = {}
for at = 10, #ARGV do
  passed_over[ARGV[at]] = true
end
local passed_over_count = #ARGV - 9

local function next_due()
  local lanes = redis.call('ZRANGE', LANES, 0, passed_over_count, 'WITHSCORES')
  for at = 1, #lanes, 2 do
    if not passed_over[lanes[at]] then
      return lanes[at + 1]
    end
  end
  return ''
end

-- The record: number, instant until which its members are hidden, and for each lane {lane, {instant, member, ...}}.
local function take_back(record)
  local record_number, record_hidden, claims = unpack(cmsgpack.unpack(record))
  if record_number <= answered then
    return record_number < number
  end
  if record_number >= number then
    return false
  end
  for _, claim in ipairs(claims) do
    local lane, pairs_, back = claim[1], claim[2], {}
    for at = 1, #pairs_, 2 do
      -- Only what is still as that claim left it: it may have been put or dropped since. One that was put for that very
      -- instant cannot be told from it, and comes early, which the ledger refuses.
      if redis.call('ZSCORE', LANE .. lane, pairs_[at + 1]) == record_hidden then
        back[#back + 1] = pairs_[at]
        back[#back + 1] = pairs_[at + 1]
      end
    end
    if #back > 0 then
      redis.call('ZADD', LANE .. lane, unpack(back))
    end
    list_lane(lane)
  end
  return true
end

-- The lanes with something due, the earliest first; when there are more than wanted, as many from the caller's turn on.
local function due_lanes()
  local due = redis.call('ZCOUNT', LANES, '-inf', now)
  local size = math.min(due, wanted + passed_over_count)
  local start = due > wanted and turn % due or 0
  local window = redis.call('ZRANGE', LANES, start, math.min(start + size, due) - 1)
  if start + size > due then
    for _, lane in ipairs(redis.call('ZRANGE', LANES, 0, start + size - due - 1)) do
      window[#window + 1] = lane
    end
  end
  local lanes = {}
  for _, lane in ipairs(window) do
    if #lanes < wanted and not passed_over[lane] then
      lanes[#lanes + 1] = lane
    end
  end
  return lanes
end

-- How many each lane may give: an equal share, and what a lane does not use goes to the others. Each round satisfies a
-- lane or shares out all there is, so that there are at most as many rounds as lanes.
local function quotas(lanes)
  local quota, due, open, left = {}, {}, {}, wanted
  for at, lane in ipairs(lanes) do
    local count = redis.pcall('ZCOUNT', LANE .. lane, '-inf', now)
    quota[at], due[at] = 0, type(count) == 'number' and count or 1
    open[at] = at
  end
  while #open > 0 and left > 0 do
    local share, still_open = math.max(1, math.floor(left / #open)), {}
    for _, at in ipairs(open) do
      local more = math.min(share, due[at] - quota[at], left)
      quota[at], left = quota[at] + more, left - more
      if quota[at] < due[at] then
        still_open[#still_open + 1] = at
      end
    end
    open = still_open
  end
  return quota
end

-- Hide up to `quota` members of a lane and add them to the answer; gives what it takes to put them back, and the lane's
-- new head, false when it has none. One member more is read than may be taken: it will be the head.
local function take(lane, quota, answer)
  local first = redis.pcall('ZRANGE', LANE .. lane, 0, quota, 'WITHSCORES')
  if first.err then -- a key of another type is none of ours, and must not stop the other lanes
    redis.call('DEL', LANE .. lane)
    return {}, false
  end
  local hide, back, head = {}, {}, first[2] or false
  for at = 1, math.min(#first, 2 * quota), 2 do
    if tonumber(first[at + 1]) > tonumber(now) then
      break
    end
    hide[at], hide[at + 1] = hidden, first[at]
    back[at], back[at + 1] = first[at + 1], first[at]
    answer[#answer + 1] = first[at]
    head = first[at + 3] or hidden
  end
  if #hide > 0 then
    redis.call('ZADD', LANE .. lane, unpack(hide))
    if tonumber(head) > tonumber(hidden) then
      head = hidden
    end
  end
  return back, head
end

local record = redis.call('GET', KEYS[2])
if record and not take_back(record) then
  return {next_due()}
end
-- After that: what an overtaken claim names as answered is noted by its node, so that its record must not stay behind.
local mark = tonumber(redis.call('GET', KEYS[3]) or '')
if mark and mark >= number then
  if record then
    redis.call('DEL', KEYS[2])
  end
  return {next_due()}
end

local answer, claims = {''}, {}
local lanes = wanted > 0 and due_lanes() or {}
if #lanes > 0 then
  redis.call('DEL', KEYS[2])
  local quota = #lanes < wanted and quotas(lanes) or {}
  local listed = {}
  for at, lane in ipairs(lanes) do
    local back, head = take(lane, quota[at] or 1, answer)
    claims[#claims + 1] = {lane, back}
    if head then
      listed[#listed + 1] = head
      listed[#listed + 1] = lane
    else
      redis.call('ZREM', LANES, lane)
    end
  end
  if #listed > 0 then
    redis.call('ZADD', LANES, unpack(listed))
  end
  redis.call('SET', KEYS[2], cmsgpack.pack({number, hidden, claims}), 'PX', hide_ms)
end

-- The mark moves with every claim, unless it shows that the index was lost: that is for `lost` to tell.
if mark and mark >= tonumber(ARGV[8]) then
  redis.call('SET', KEYS[3], number, 'PX', ARGV[9])
end

answer[1] = next_due()
return answer
