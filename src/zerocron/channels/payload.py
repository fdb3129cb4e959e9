"""A message as data: the JSON of a webhook, and the fields that a template may name. docs/notifications.md shows both.

Owns names that receivers rely on: they are only added to. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import orjson

from zerocron.channels.contract import Envelope
from zerocron.channels.text import one_line
from zerocron.channels.wording import FACT_UNITS_MAX, NAME_UNITS_MAX, Entry, Message, name_of, page_of, text_of, word
from zerocron.core.instants import to_rfc3339
from zerocron.core.model import Instant
from zerocron.core.notice import Notice
from zerocron.core.placeholders import in_json

DIGEST = "digest"
"""The `type` of several events in one message."""

EVENTS_MAX = 100
"""In one digest; further ones are counted."""

TEMPLATE_CHARACTERS_MAX = 10_000
PLACEHOLDERS_MAX = 50
"""In one template."""

_PLACEHOLDER = re.compile(r"\$\{([a-z_]{1,32})\}")


def body_of(envelope: Envelope) -> dict[str, object]:
    """The JSON object of a message."""
    message = word(envelope)
    newest = envelope.notices[-1]
    if not message.is_digest:
        return {
            "type": str(newest.kind),
            "timestamp": to_rfc3339(newest.at),
            "data": _event(newest, message.entries[0], envelope.base_url),
        }
    events = [
        {"type": str(notice.kind), "timestamp": to_rfc3339(notice.at), "data": _event(notice, entry, envelope.base_url)}
        for notice in envelope.notices[:EVENTS_MAX]
        for entry in word(Envelope(envelope.alert_id, (notice,), envelope.base_url)).entries
    ]
    data = {"title": message.title, "events": events, "more": message.total - len(events)}
    return {"type": DIGEST, "timestamp": to_rfc3339(newest.at), "data": data}


def _event(notice: Notice, entry: Entry, base_url: str) -> dict[str, object]:
    return {
        "event_id": notice.event_id,
        "title": entry.title,
        "reason": entry.lead or None,
        "subject": {
            "kind": notice.kind.partition(".")[0],
            "id": notice.subject_id,
            "name": name_of(notice),
            "url": page_of(notice, base_url),
            "schedule": one_line(notice.schedule, FACT_UNITS_MAX) or None,
            "timezone": notice.timezone,
            "tags": [one_line(tag, NAME_UNITS_MAX) for tag in notice.tags],
        },
        "run_id": notice.run_id,
        "scheduled_for": _instant(notice.slot),
        "since": _instant(notice.since),
        "next_at": _instant(notice.next_at),
        "count": notice.count,
        "duration_ms": notice.duration_ms,
        "output": entry.output,
        "reminder": notice.reminder,
    }


def _instant(at: Instant | None) -> str | None:
    return None if at is None else to_rfc3339(at)


# What a template may name. Of a digest the fields of one event are those of its newest.
_FIELDS: Mapping[str, Callable[[Envelope, Message], object]] = {
    "alert_id": lambda envelope, _: envelope.alert_id,
    "event_id": lambda envelope, _: envelope.notices[-1].event_id,
    "type": lambda envelope, message: DIGEST if message.is_digest else str(envelope.notices[-1].kind),
    "timestamp": lambda envelope, _: to_rfc3339(envelope.notices[-1].at),
    "tone": lambda _, message: str(message.tone),
    "title": lambda _, message: message.title,
    "text": lambda _, message: text_of(message),
    "reason": lambda _, message: message.entries[-1].lead,
    "output": lambda _, message: message.entries[-1].output or "",
    "subject_kind": lambda envelope, _: envelope.notices[-1].kind.partition(".")[0],
    "subject_id": lambda envelope, _: envelope.notices[-1].subject_id,
    "subject_name": lambda envelope, _: name_of(envelope.notices[-1]),
    "url": lambda envelope, _: page_of(envelope.notices[-1], envelope.base_url) or envelope.base_url,
    "schedule": lambda envelope, _: one_line(envelope.notices[-1].schedule, FACT_UNITS_MAX),
    "tags": lambda envelope, _: one_line(", ".join(envelope.notices[-1].tags), FACT_UNITS_MAX),
    "run_id": lambda envelope, _: envelope.notices[-1].run_id or "",
    "scheduled_for": lambda envelope, _: _instant(envelope.notices[-1].slot) or "",
    "since": lambda envelope, _: _instant(envelope.notices[-1].since) or "",
    "next_at": lambda envelope, _: _instant(envelope.notices[-1].next_at) or "",
    "count": lambda envelope, _: envelope.notices[-1].count,
    "total": lambda _, message: message.total,
}
PLACEHOLDERS = tuple(_FIELDS)


def check_template(template: str) -> None:
    """Raises ValueError with what is wrong: a template is JSON whatever the values of its placeholders are."""
    if len(template) > TEMPLATE_CHARACTERS_MAX:
        raise ValueError(f"A template has at most {TEMPLATE_CHARACTERS_MAX:,} characters.")
    names = _PLACEHOLDER.findall(template)
    if len(names) > PLACEHOLDERS_MAX:
        raise ValueError(f"A template has at most {PLACEHOLDERS_MAX} placeholders.")
    for name in names:
        if name not in _FIELDS:
            raise ValueError(f"There is no placeholder ${{{name}}}; there are {', '.join(PLACEHOLDERS)}.")
    if "${" in _PLACEHOLDER.sub("", template):
        raise ValueError(f"A placeholder is written ${{name}}, with one of {', '.join(PLACEHOLDERS)}.")
    numbers = ("count", "total")
    sample = _PLACEHOLDER.sub(lambda found: "7" if found[1] in numbers else "x", template)
    try:
        orjson.loads(sample)
    except orjson.JSONDecodeError as error:
        raise ValueError(
            f"A template is JSON with placeholders inside of its texts ({error.msg} in line {error.lineno}); only "
            "${count} and ${total} may stand without quotes."
        ) from None


def fill_template(template: str, envelope: Envelope) -> bytes:
    """The template with every placeholder replaced, each value escaped as part of a text in JSON."""
    message = word(envelope)
    return _PLACEHOLDER.sub(lambda found: in_json(str(_FIELDS[found[1]](envelope, message))), template).encode()
