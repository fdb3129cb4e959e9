"""From the fields of a form to what the API is sent: lengths of time, tags, whom to tell.

Owns the forms that fields have on a page where the API wants another. What cannot be read goes on as it was typed, so
that the API says what is wrong with it; must never guess.
"""

from __future__ import annotations

from typing import Any

from zerocron.dashboard.asking import Answer, Problem
from zerocron.dashboard.forms import Form

UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
UNIT = "_unit"
"""A length has two fields: its number under the API's name, and its unit with this behind it."""


def refusal(detail: str, field: str, message: str) -> Problem:
    """What the API would say, said by a page about something that only the page knows."""
    return Problem(
        Answer(
            422, {"title": "Unprocessable Content", "detail": detail, "errors": [{"field": field, "message": message}]}
        )
    )


def seconds(form: Form, name: str) -> int | str | None:
    """A length in seconds; None when the field is empty, and what was typed when it is no number."""
    typed = form.get(name)
    if not typed:
        return None
    try:
        number = float(typed.replace(",", "."))
        return round(number * UNITS.get(form.get(name + UNIT), 1))
    except (ValueError, OverflowError):
        return typed


def length_fields(name: str, value: int | None, *, unit: str = "min") -> dict[str, str]:
    """The two fields of a length, in the largest unit that leaves no fraction."""
    if value is None:
        return {name: "", name + UNIT: unit}
    fitting = [unit for unit, size in UNITS.items() if value % size == 0] if value else ["s"]
    return {name: str(value // UNITS[fitting[-1]]), name + UNIT: fitting[-1]}


def tags(form: Form) -> list[str]:
    """Words with commas between them."""
    return [word for word in (part.strip() for part in form.get("tags").split(",")) if word]


WHOM = "whom"
"""The choice between all channels, some, and nobody."""


def told(form: Form, *, nobody_chosen: str) -> dict[str, Any]:
    """`notify`, as far as jobs and monitors have it in common. Raises Problem: some channels, but none of them.

    `nobody_chosen`: what to say then.
    """
    whom = form.get(WHOM, "all")
    channels: list[str] | None = None if whom == "all" else form.all("notify.channels") if whom == "some" else []
    if whom == "some" and not channels:
        raise refusal(nobody_chosen, "notify.channels", nobody_chosen)
    return {
        "channels": channels,
        "on": form.all("notify.on"),
        "remind_every": seconds(form, "notify.remind_every"),
    }


def told_fields(notify: dict[str, Any]) -> dict[str, Any]:
    """The fields for a `notify` as the API shows it."""
    channels = notify["channels"]
    return {
        WHOM: "all" if channels is None else "some" if channels else "nobody",
        "notify.channels": channels or [],
        "notify.on": notify["on"],
        **length_fields("notify.remind_every", notify["remind_every"], unit="h"),
    }


def typed(form: Form, *, lists: tuple[str, ...] = ()) -> dict[str, Any]:
    """All fields as they were typed, for showing them again; those of `lists` are lists of texts."""
    shown: dict[str, Any] = {name: form.raw(name) for name, _ in form.pairs()}
    return shown | {name: form.all(name) for name in lists}
