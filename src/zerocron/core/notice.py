"""What people are told: an event, with its facts as they were when it happened.

Owns the shapes that travel from the transaction of a change, through the outbox, to a channel. Must never word anything
(`zerocron.channels.wording` does) and never hold a secret: texts in here are masked already.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from zerocron.core.model import Instant

OUTPUT_CHARACTERS_MAX = 2_000
REASON_CHARACTERS_MAX = 500


class EventKind(StrEnum):
    """What happened. The first part names the kind of its subject; it is the `type` of a webhook's payload, too."""

    JOB_FAILED = "job.failed"
    JOB_RECOVERED = "job.recovered"
    JOB_DISABLED = "job.disabled"
    JOB_MISSED = "job.missed"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_LATE = "job.late"
    MONITOR_DOWN = "monitor.down"
    MONITOR_UP = "monitor.up"
    MONITOR_LATE = "monitor.late"
    CHANNEL_DISABLED = "channel.disabled"  # a channel refused for good: told by the team's other ones
    OUTAGE = "server.outage"  # 0cron itself could not take pings for a while
    TEST = "channel.test"


@dataclass(frozen=True, slots=True)
class Notice:
    """The facts of one event.

    `event_id`: a UUID, the same for all channels and tries. `subject_*`: the job, monitor or channel it is about.
    `since`: when this state of affairs began (the first failure in a row, the last ping). `slot`: the instant of the
    schedule that it is about. `reason`: one sentence in the subject's language. `count`: how often in a row. `output`:
    the last output, masked, at most OUTPUT_CHARACTERS_MAX. `reminder`: the same was told before.
    """

    event_id: str
    kind: EventKind
    team_id: str
    at: Instant
    subject_id: str
    subject_name: str
    language: str = "en"
    timezone: str = "UTC"
    schedule: str = ""  # in words, such as "Every day at 09:00"
    reason: str | None = None
    since: Instant | None = None
    slot: Instant | None = None
    next_at: Instant | None = None
    count: int = 1
    run_id: str | None = None
    duration_ms: int | None = None
    output: str | None = None
    reminder: bool = False
    tags: tuple[str, ...] = ()
