"""One request to a service and what its answer means where services agree.

Owns the way through `ways.send`: no redirects, one deadline, 2xx and nothing else is success, and what is told of an
answer is short and holds no secret of the configuration. What a service means by its own errors is in its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import orjson

from zerocron.channels.contract import SEND_TIMEOUT_SECONDS, Accepted, Again, Delivery, Refused, Ways
from zerocron.channels.text import one_line
from zerocron.core.exchange import Failure, Request, Response
from zerocron.core.redaction import Redactor
from zerocron.core.retry import RETRY_AFTER_SECONDS_MAX, retry_after_ms
from zerocron.core.secret import Secret

ECHO_UNITS_MAX = 200
ANSWER_BYTES_MAX = 16_384
"""Of an answer that is looked at."""

SECRET_CHARACTERS_MIN = 6
"""A shorter part of a configuration is found in any text, and is no secret."""

_MASK = re.compile(r"\[secret hidden\d+\]")
JSON_HEADERS = (("Content-Type", "application/json; charset=utf-8"),)


async def post(
    ways: Ways, url: str, body: bytes, headers: Sequence[tuple[str, str]] = JSON_HEADERS, *, who: str
) -> Response | Delivery:
    """The answer; or, where there was none, what that means. `who` is the service in the reason."""
    request = Request("POST", url, headers, body, SEND_TIMEOUT_SECONDS, redirects=0)
    outcome = await ways.send(request)
    if outcome.response is not None:
        return outcome.response
    assert outcome.failure is not None
    return unanswered(outcome.failure, who)


def unanswered(failure: Failure, who: str) -> Again | Refused:
    """No answer to judge. Names and addresses come and go, and operators change what may be called: only what is wrong
    by itself is refused."""
    reason = f"{who} was not reached: {failure.message}"
    return Refused(reason) if failure.permanent and failure.kind != "address_refused" else Again(reason)


def accepted(response: Response, detail: str = "") -> Accepted | None:
    """Only 2xx is success."""
    if not 200 <= response.status <= 299:
        return None
    return Accepted(f"{response.status} {detail}".strip())


def may_pass(status: int) -> bool:
    """Whether a status that is no success says nothing about the message itself: busy, broken, or a redirect."""
    return status in (408, 425, 429) or not 400 <= status <= 499


def again(response: Response, reason: str, ways: Ways) -> Again:
    """Later; when, if the answer says so."""
    asked = next((value for name, value in response.headers if name.lower() == "retry-after"), None)
    return Again(reason, None if asked is None else retry_after_ms(asked, ways.now()))


def seconds_ms(value: object) -> int | None:
    """Seconds in an answer's JSON as milliseconds, bounded; None for what is no length of time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return round(min(value, RETRY_AFTER_SECONDS_MAX) * 1000)


def json_of(response: Response) -> Mapping[str, object]:
    """The object in an answer; empty where there is none."""
    try:
        found = orjson.loads(response.body[:ANSWER_BYTES_MAX])
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def echo(text: str | bytes, secrets: Iterable[str]) -> str:
    """What somebody's server said, to be shown: short, one line, without what is secret in any usual encoding."""
    whole = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    hidden = [secret for secret in secrets if len(secret) >= SECRET_CHARACTERS_MIN]
    redactor = Redactor([Secret(f"hidden{number}", secret) for number, secret in enumerate(hidden)])
    masked = redactor.text(whole[:ANSWER_BYTES_MAX], cut=len(whole) > ANSWER_BYTES_MAX)
    return one_line(_MASK.sub("…", masked), ECHO_UNITS_MAX)


def said(who: str, response: Response, words: str) -> str:
    """`Slack answered 404 (no_service).`"""
    return f"{who} answered {response.status} ({words})." if words else f"{who} answered {response.status}."
