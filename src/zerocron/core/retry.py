"""How long to wait before the next attempt, and what a target says about it.

Owns the back-off formulas of the first 0cron, the reading of `Retry-After`, and the budget that keeps the retries of a
team from becoming a storm. Whether there is a next attempt is decided in `core.lifecycle`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime
from hashlib import blake2b

from zerocron.core.model import Instant, RetryPolicy

ATTEMPTS_MAX = 10
DELAY_SECONDS_MAX = 86_400
BACKOFF_SECONDS_MAX = 86_400
"""A wait is never longer than a day, however often the delay doubles."""

RETRY_AFTER_SECONDS_MAX = 3_600
"""A target may ask us to wait, for an hour at most."""

RETRY_WINDOW_MS = 86_400_000
"""From the start of a run's first attempt to that of its last one, at most."""

SHORTAGE_DELAY_SECONDS, SHORTAGE_DELAY_SECONDS_MAX = 5, 300
"""When this server could not send for want of something of its own: it waits, twice as long each time."""

STOP_STATUS = 489
STOP_HEADER, STOP_VALUE = "x-0cron-retry", "no"
"""By either of them a target ends the attempts of a run."""

BUDGET_BURST = 100
BUDGET_SECONDS = 60
"""Over how long the attempts of a team are counted."""

BUDGET_PER_SECOND_MIN = 1.0
"""So many retries a team may always have: a share of hardly any attempts would be none."""

BUDGET_TEAMS_MAX = 10_000

STRATEGIES = ("exponential", "linear", "fixed")


def backoff_ms(policy: RetryPolicy, failures: int) -> int:
    """The wait after the `failures`-th failed attempt (from 1), in milliseconds.

    exponential: delay * 2^n, linear: delay * (n + 1), fixed: delay, where n = failures - 1 counts the retries made so
    far. An unknown strategy acts as fixed (`strategy_warning` tells its owner). Never above `BACKOFF_SECONDS_MAX`.
    """
    retries = failures - 1
    factor: int = {"exponential": 2**retries, "linear": retries + 1}.get(policy.backoff, 1)
    return round(min(policy.delay_seconds * factor, BACKOFF_SECONDS_MAX) * 1000)


def wait_ms(policy: RetryPolicy, failures: int, *, asked_ms: int | None, run_id: str) -> int:
    """The wait after the `failures`-th failed attempt of a run, when its target asked to wait `asked_ms`.

    With full jitter it is a part of the back-off behind what was asked for, drawn by run and failure: the same every
    time it is computed, and another one for every run.
    """
    backoff = backoff_ms(policy, failures)
    if policy.jitter != "full":
        return max(backoff, asked_ms or 0)
    drawn = int.from_bytes(blake2b(f"{run_id}#{failures}".encode(), digest_size=6).digest())
    return (asked_ms or 0) + (backoff * drawn >> 48)


def shortage_wait_ms(shortages: int) -> int:
    """The wait after this server failed to send for the `shortages`-th time (from 1)."""
    doublings = min(shortages - 1, 10)
    return min(SHORTAGE_DELAY_SECONDS << doublings, SHORTAGE_DELAY_SECONDS_MAX) * 1000


def refuses_retry(status: int, headers: Iterable[tuple[str, str]]) -> bool:
    """Whether the answer says that its target wants no further attempt."""
    if status == STOP_STATUS:
        return True
    return any(name.lower() == STOP_HEADER and value.strip().lower() == STOP_VALUE for name, value in headers)


def strategy_warning(backoff: str) -> str | None:
    """What to tell the owner of a job whose strategy is not one of ours; None when it is."""
    if backoff in STRATEGIES:
        return None
    return f"Unknown retry back-off {backoff!r}: it acts as 'fixed'. Known: exponential, linear, fixed."


def retry_after_ms(value: str, now: Instant) -> int | None:
    """The wait a `Retry-After` header asks for (RFC 9110 10.2.3: seconds or a date), in milliseconds.

    Between 0 and `RETRY_AFTER_SECONDS_MAX`; None when the value is neither form.
    """
    text = value.strip()
    if text.isascii() and text.isdigit():
        seconds = int(text) if len(text) <= 9 else RETRY_AFTER_SECONDS_MAX
        return min(seconds, RETRY_AFTER_SECONDS_MAX) * 1000
    try:
        date = parsedate_to_datetime(text)
        wait = round(date.replace(tzinfo=date.tzinfo or UTC).timestamp() * 1000) - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(wait, 0), RETRY_AFTER_SECONDS_MAX * 1000)


class RetryBudget:
    """How many retries each team may have: a share of its attempts, and a burst.

    A bucket of `BUDGET_BURST` tokens a team. Each retry takes one; they come back at `percent` of the rate at which the
    team's runs began over the last minute, and at `BUDGET_PER_SECOND_MIN` at least. A retry that finds none is not
    dropped: it takes one that is still to come, and is made that much later. A thousand jobs that fail in one second
    are so spread over minutes, and what fails for ever gets its share and no more.

    Kept by each engine node for what it executes. Instants may step back; then nothing flows for a while.
    """

    def __init__(self, percent: int) -> None:
        self._share = percent / 100
        self._teams: OrderedDict[str, _Bucket] = OrderedDict()

    def began(self, team_id: str, now: Instant) -> None:
        """A run of the team had its first attempt."""
        self._bucket(team_id, now).rate += 1 / BUDGET_SECONDS

    def wait_ms(self, team_id: str, now: Instant) -> int:
        """How much later than planned the next retry of the team would be made."""
        bucket = self._bucket(team_id, now)
        missing = 1 - bucket.tokens
        return 0 if missing <= 0 else math.ceil(missing / self._income(bucket) * 1000)

    def take(self, team_id: str, now: Instant) -> None:
        """A retry of the team is planned."""
        self._bucket(team_id, now).tokens -= 1

    def _bucket(self, team_id: str, now: Instant) -> _Bucket:
        """The team's bucket as it is now."""
        bucket = self._teams.get(team_id)
        if bucket is None:
            bucket = self._teams[team_id] = _Bucket(now)
            if len(self._teams) > BUDGET_TEAMS_MAX:
                self._teams.popitem(last=False)
            return bucket
        self._teams.move_to_end(team_id)
        seconds = (now - bucket.at) / 1000
        if seconds > 0:
            bucket.tokens = min(bucket.tokens + self._income(bucket) * seconds, BUDGET_BURST)
            bucket.rate *= math.exp(-seconds / BUDGET_SECONDS)
            bucket.at = now
        return bucket

    def _income(self, bucket: _Bucket) -> float:
        return max(bucket.rate * self._share, BUDGET_PER_SECOND_MIN)


class _Bucket:
    """`tokens` below zero are taken in advance. `rate`: runs begun a second, those of long ago counting less."""

    __slots__ = ("at", "rate", "tokens")

    def __init__(self, now: Instant) -> None:
        self.at = now
        self.rate = 0.0
        self.tokens = float(BUDGET_BURST)
