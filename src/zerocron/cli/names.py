"""From what a person calls a job to the job: its id, its exact name, or the beginning of its id."""

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
    folded = text.lower()
    if is_uuid(folded):
        return client.get(f"/v1/jobs/{folded}")
    named = [job for job in _search(client, text) if job["name"] == text]
    if not named and _ID_PREFIX.fullmatch(folded):
        named = [job for job in _search(client, None) if job["id"].startswith(folded)]
    if not named:
        raise _nothing(client, text)
    if len(named) > 1:
        raise _several(named, text)
    return named[0]


def _search(client: Client, text: str | None) -> list[Json]:
    """Jobs whose name or URL holds the text; all of them without one."""
    wanted = None if text is None else text[:_SEARCH_CHARACTERS_MAX] or None
    items: list[Json] = client.pages("/v1/jobs", limit=None, q=wanted)["items"]
    return items


def _several(jobs: list[Json], text: str) -> Invalid:
    error = Invalid(f"{len(jobs)} jobs answer to {text!r}. Name one by more of its id.")
    for job in jobs[:SHOWN_MAX]:
        error.add_note(f"{job['id']}  {job['name']}")
    if len(jobs) > SHOWN_MAX:
        error.add_note(f"and {len(jobs) - SHOWN_MAX} more")
    return error


def _nothing(client: Client, text: str) -> NotFound:
    error = NotFound(f"There is no job with the name or id {text!r}.")
    newest = client.pages("/v1/jobs", limit=1_000)["items"]
    names = {str(job["name"]).lower(): str(job["name"]) for job in newest}
    close = difflib.get_close_matches(text.lower(), names, n=3, cutoff=0.6)
    close += [lower for lower in names if text.lower() in lower and lower not in close]
    for lower in close[:3]:
        error.add_note(f"did you mean: {names[lower]}")
    if not close:
        error.add_note(f"See the jobs there are: {program()} jobs list")
    return error
