"""Envelopes to show and to test with: what happens every day, and what somebody hostile would name a job."""

from __future__ import annotations

from dataclasses import replace

from zerocron.channels.contract import Envelope
from zerocron.core.notice import EventKind, Notice

BASE_URL = "https://cron.example.com"
ALERT_ID = "0199b7f2-6c1e-7d43-9a55-0d5c7f2be1aa"
SLOT = 1_799_996_400_000  # 2027-01-15T07:00:00Z
AT = SLOT + 2_000
HOUR = 3_600_000

FAILED = Notice(
    event_id="7d0a1f56-5b0c-5a1e-8f0a-2f6f0a3c9d11",
    kind=EventKind.JOB_FAILED,
    team_id="team",
    at=AT,
    subject_id="0199b7f2-0000-7000-8000-00000000000a",
    subject_name="nightly report",
    timezone="Europe/Paris",
    schedule="Every day at 08:00",
    reason="The target answered 500; the job's rule wants 2xx.",
    since=AT - 48 * HOUR,
    slot=SLOT,
    next_at=SLOT + 24 * HOUR,
    count=3,
    run_id="0199b7f2-0000-7000-8000-0000000000ff",
    duration_ms=1_845,
    output='{"error": "disk full", "free": "0 B"}',
    tags=("billing", "prod"),
)
DOWN = Notice(
    event_id="0b9a7a0e-98a4-5f3d-9d2c-9a3f4e2b7c22",
    kind=EventKind.MONITOR_DOWN,
    team_id="team",
    at=SLOT + 300_000,
    subject_id="0199b7f2-0000-7000-8000-00000000000b",
    subject_name="db backup",
    timezone="Europe/Paris",
    schedule="Every hour",
    reason="No ping came within the grace period of 5 minutes.",
    since=SLOT - HOUR + 12_000,
    slot=SLOT,
    output="dumped 3 of 12 tables",
)

HOSTILE_NAMES = (
    "@everyone @here",
    "<!channel> <@U0123> <https://evil.example|click>",
    "*bold* _it_ ~no~ `code` ||spoiler||",
    "</b><script>alert(1)</script><a href='https://evil.example'>x</a>",
    "line\r\nBcc: everyone@example.com\r\n\r\nbody",
    "\u202egnp.exe\u2066 \u200b\u0000\x1b[31mred\x1b[0m",
    "N" * 10_000,
    "👩‍👩‍👧‍👦" * 2_000,
    "e\u0301" * 5_000,
    "&amp;" * 3_000,
    "[text](https://evil.example) # heading > quote - list",
    "```\nout of the fence\n```",
    "{name} {count} ${title} ${secrets.KEY} %s",
    "\n\r\t \u2028\u2029",
    "\ud800 lone",
)


def of(*notices: Notice, more: int = 0, base_url: str = BASE_URL) -> Envelope:
    return Envelope(alert_id=ALERT_ID, notices=notices, base_url=base_url, more=more)


def hostile(name: str) -> Notice:
    """The same text everywhere where a text of other people's stands."""
    return replace(FAILED, subject_name=name, reason=name, schedule=name, output=name, tags=(name, name))
