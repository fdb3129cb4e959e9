"""Instants as text: RFC 3339 in UTC, as the API and our request headers write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from zerocron.core.model import Instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=4096)
def to_rfc3339(instant: Instant) -> str:
    """`2027-01-01T09:00:00Z`, with milliseconds only where there are some."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{instant % 1000:03d}Z" if instant % 1000 else f"{text}Z"


def from_rfc3339(text: str) -> Instant:
    """Raises ValueError for anything but a full date and time with an offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("an instant needs an offset, such as 2027-01-01T09:00:00Z")
    return (moment - _EPOCH) // timedelta(milliseconds=1)
