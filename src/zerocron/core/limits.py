"""How often something may be tried: buckets of allowances, one for each key, in bounded memory.

Owns the arithmetic of a bucket: it holds `burst` allowances, and what was taken comes back evenly over
`refill_seconds`. A full bucket is the same as none, so only those lately used are kept; beyond `keys_max` the one that
was used longest ago is forgotten. Seconds are monotonic and come from the caller.
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from collections.abc import Hashable, Sequence

from zerocron.core.errors import TooMany

KEYS_MAX = 20_000


class Buckets:
    """Buckets of one size."""

    def __init__(self, burst: int, refill_seconds: float, keys_max: int = KEYS_MAX) -> None:
        self._burst = burst
        self._per_second = burst / refill_seconds
        self._keys_max = keys_max
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def wait_seconds(self, key: Hashable, now: float) -> float:
        """How long until there is an allowance; 0 when there is one."""
        return max(0.0, (1 - self._now_left(key, now)) / self._per_second)

    def take(self, key: Hashable, now: float) -> None:
        """Take an allowance, which has to be there."""
        self._set(key, self._now_left(key, now) - 1, now)

    def give_back(self, key: Hashable, now: float) -> None:
        """What was taken was not used."""
        self._set(key, self._now_left(key, now) + 1, now)

    def _now_left(self, key: Hashable, now: float) -> float:
        left, at = self._left.get(key, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_second)

    def _set(self, key: Hashable, left: float, now: float) -> None:
        if left >= self._burst:
            self._left.pop(key, None)
            return
        self._left[key] = (left, now)
        self._left.move_to_end(key)
        if len(self._left) > self._keys_max:
            self._left.popitem(last=False)


Claims = Sequence[tuple[Buckets, Hashable]]


def take_each(claims: Claims, now: float) -> None:
    """Take one allowance of each, or of none. Raises TooMany."""
    wait = max((buckets.wait_seconds(key, now) for buckets, key in claims), default=0.0)
    if wait > 0:
        raise too_many(wait)
    for buckets, key in claims:
        buckets.take(key, now)


def give_each_back(claims: Claims, now: float) -> None:
    for buckets, key in claims:
        buckets.give_back(key, now)


def too_many(wait_seconds: float) -> TooMany:
    seconds = max(1, math.ceil(wait_seconds))
    if seconds < 120:
        return TooMany(f"There were too many attempts. Try again in {seconds} seconds.", seconds)
    return TooMany(f"There were too many attempts. Try again in {math.ceil(seconds / 60)} minutes.", seconds)


def network_of(address: str) -> str:
    """What counts as one client: an IPv4 address, or the /64 of an IPv6 one, of which a client has as many as it
    likes."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:45]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.IPv6Network((parsed, 64), strict=False).network_address)
    return str(parsed)
