"""Envelopes to show and to test with: what happens every day, and what somebody hostile would name a job."""

from __future__ import annotations

from dataclasses import replace

from docs.specimens import ALERT_ID, BASE_URL, DOWN, FAILED, HOUR, SLOT

from zerocron.channels.contract import Envelope
from zerocron.core.notice import Notice

__all__ = ["ALERT_ID", "AT", "BASE_URL", "DOWN", "FAILED", "HOSTILE_NAMES", "HOUR", "SLOT", "hostile", "of"]

AT = FAILED.at

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
