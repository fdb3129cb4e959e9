"""From what a person calls a job, a monitor or a channel to the thing: its id, its exact name, or how its id begins."""

from __future__ import annotations

import difflib
import re

from zerocron.cli.client import Client
from zerocron.cli.program import program
from zerocron.cli.show import Json
from zerocron.core.errors import Invalid, NotFound
from zerocron.core.model import is_uuid

PREFIX_CHARACTERS_MIN = 4
SHOWN_MAX = 10
_ID_PREFIX = re.compile(rf"[0-9a-f-]{{{PREFIX_CHARACTERS_MIN},36}}")
_SEARCH_CHARACTERS_MAX = 200


def find_job(client: Client, text: str) -> Json:
    """The job. Raises NotFound, and Invalid when several answer to that name."""
    return _find(client, text, "job")


def find_monitor(client: Client, text: str) -> Json:
    """The monitor. Raises NotFound, and Invalid when several answer to that name."""
    return _find(client, text, "monitor")


def find_channel(client: Client, text: str) -> Json:
    """The channel. Raises NotFound, and Invalid when several answer to that name."""
    return _find(client, text, "channel")


def _find(client: Client, text: str, noun: str) -> Json:
    folded = text.lower()
    if is_uuid(folded):
        return client.get(f"/v1/{noun}s/{folded}")
    named = [one for one in _search(client, text, noun) if one["name"] == text]
    if not named and _ID_PREFIX.fullmatch(folded):
        named = [one for one in _search(client, None, noun) if one["id"].startswith(folded)]
    if not named:
        raise _nothing(client, text, noun)
    if len(named) > 1:
        raise _several(named, text, noun)
    return named[0]


def _search(client: Client, text: str | None, noun: str) -> list[Json]:
    """Those whose name (or URL) holds the text; all of them without one."""
    wanted = None if text is None else text[:_SEARCH_CHARACTERS_MAX] or None
    if noun == "channel":  # of which there are few, so that the API searches none
        wanted = None
    items: list[Json] = client.pages(f"/v1/{noun}s", limit=None, q=wanted)["items"]
    return items


def _several(found: list[Json], text: str, noun: str) -> Invalid:
    error = Invalid(f"{len(found)} {noun}s answer to {text!r}. Name one by more of its id.")
    for one in found[:SHOWN_MAX]:
        error.add_note(f"{one['id']}  {one['name']}")
    if len(found) > SHOWN_MAX:
        error.add_note(f"and {len(found) - SHOWN_MAX} more")
    return error


def _nothing(client: Client, text: str, noun: str) -> NotFound:
    error = NotFound(f"There is no {noun} with the name or id {text!r}.")
    newest = client.pages(f"/v1/{noun}s", limit=1_000)["items"]
    names = {str(one["name"]).lower(): str(one["name"]) for one in newest}
    close = difflib.get_close_matches(text.lower(), names, n=3, cutoff=0.6)
    close += [lower for lower in names if text.lower() in lower and lower not in close]
    for lower in close[:3]:
        error.add_note(f"did you mean: {names[lower]}")
    if not close:
        error.add_note(f"See the {noun}s there are: {program()} {noun}s list")
    return error
