-- Tell one node that the index has lost members.
--
-- Every node keeps a mark of its own, a number that only grows and that nobody else writes. An index that was erased,
-- restored from an older copy, or failed over to a replica that lagged has lost the mark or holds a lower one than its
-- owner knows. The first to see that begins a new epoch; the others learn from the epoch that somebody was told.
--
-- Who was told of an epoch and asks again says by asking that it has restored the members. Until then the task is owed:
-- it is offered to whoever else asks once `patience` has passed, for a node may die with it. A node that did not get the
-- answer names an older epoch than the one that it owes, and is told again.
--
-- KEYS    1 the epoch: HASH of epoch, owed_by, owed_since  2 the caller's mark
-- ARGV    1 claimer  2 now  3 the epoch that the caller knows, 0 for none  4 the last number that its mark is known to
--         have had  5 the mark's next number  6 the last epoch of which it was told, 0 for none  7 patience, ms
--         8 how long the mark is kept, ms
-- Output  1 when the caller is to restore all members, else 0; the epoch
-- Bound   O(1)
-- Half    the epoch is written first: a caller that gets no answer is told when it asks again
-- Memory  goes on when Redis is out of memory, as claim does

local claimer, now = ARGV[1], tonumber(ARGV[2])
local known, mark_known, told, patience = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6]), tonumber(ARGV[7])

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' then
  redis.call('DEL', KEYS[1])
end
local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch') or '') or 0
local owed_by = redis.call('HGET', KEYS[1], 'owed_by')
local mark = tonumber(redis.call('GET', KEYS[2]) or '') or 0

local function owe()
  redis.call('HSET', KEYS[1], 'epoch', string.format('%.0f', epoch), 'owed_by', claimer, 'owed_since', ARGV[2])
  return 1
end

redis.call('PEXPIRE', KEYS[2], ARGV[8]) -- a first write that is allowed when Redis is out of memory
local answer = 0
if epoch == 0 or epoch < known or (epoch == known and mark < mark_known) then
  epoch = math.max(now, known + 1, epoch + 1)
  answer = owe()
elseif owed_by and told == epoch then
  redis.call('HDEL', KEYS[1], 'owed_by', 'owed_since')
elseif owed_by then
  -- Either way round: a clock may have been set back.
  local waited = math.abs(now - tonumber(redis.call('HGET', KEYS[1], 'owed_since')))
  if owed_by == claimer or waited >= patience then
    answer = owe()
  end
end
if mark < tonumber(ARGV[5]) then
  redis.call('SET', KEYS[2], ARGV[5], 'PX', ARGV[8])
end
return {answer, epoch}
