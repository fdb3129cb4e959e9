"""How long to wait before the next attempt.

Owns the back-off formulas of the first 0cron and nothing else; whether there is a next attempt is decided in
`core.lifecycle`.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from zerocron.core.model import Instant, RetryPolicy

ATTEMPTS_MAX = 10
DELAY_SECONDS_MAX = 86_400
BACKOFF_SECONDS_MAX = 86_400
"""A wait is never longer than a day, however often the delay doubles."""

RETRY_AFTER_SECONDS_MAX = 3_600
"""A target may ask us to wait, for an hour at most."""

STRATEGIES = ("exponential", "linear", "fixed")


def backoff_ms(policy: RetryPolicy, failures: int) -> int:
    """The wait after the `failures`-th failed attempt (from 1), in milliseconds.

    exponential: delay * 2^n, linear: delay * (n + 1), fixed: delay, where n = failures - 1 counts the retries made so
    far. An unknown strategy acts as fixed (`strategy_warning` tells its owner). Never above `BACKOFF_SECONDS_MAX`.
    """
    retries = failures - 1
    factor: int = {"exponential": 2**retries, "linear": retries + 1}.get(policy.backoff, 1)
    return round(min(policy.delay_seconds * factor, BACKOFF_SECONDS_MAX) * 1000)


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
