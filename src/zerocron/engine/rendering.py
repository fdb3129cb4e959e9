"""The request of an attempt: what the job says, and the headers by which a target recognises run and attempt.

Owns what is sent, the values of secrets in their places included; pure. Must never decide when it is sent. What cannot
be sent as it is meant raises NotSent: a request goes out whole or not at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

from zerocron.core import placeholders
from zerocron.core.errors import Invalid
from zerocron.core.exchange import Failure, Outcome, Request, Timings
from zerocron.core.instants import to_rfc3339
from zerocron.core.model import BODY_BYTES_MAX, Definition, Instant, Run
from zerocron.core.placeholders import TooLong
from zerocron.core.requests import HEADER_VALUE_CHARACTERS_MAX, URL_CHARACTERS_MAX, check_header, split_url
from zerocron.core.secret import Secret, may_go_to
from zerocron.core.signing import signed_headers
from zerocron.engine.attempt import Attempt

Headers = list[tuple[str, str]]
NAMES_SHOWN_MAX = 5


class NotSent(Exception):
    """Why an attempt ends before a byte is sent: a kind of `core.exchange`, and a sentence without any value."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message

    def outcome(self) -> Outcome:
        return Outcome(None, Failure(self.kind, self.message), Timings(None, None, None, None, 0.0))


def first_few(names: Collection[str]) -> str:
    """Names for a message, which has room for some."""
    shown, more = sorted(names)[:NAMES_SHOWN_MAX], len(names) - NAMES_SHOWN_MAX
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def secrets_named(definition: Definition) -> frozenset[str]:
    """The names of the secrets that a request needs; for most jobs there are none."""
    return placeholders.names_of_request(definition.url, definition.headers, definition.body)


def render(attempt: Attempt, secrets: Mapping[str, Secret] | None = None) -> Request:
    """The request of an attempt, with the headers by which a target recognises run and attempt (promise 3).

    `secrets` by name: all that it needs; None leaves placeholders as they are written. Raises NotSent.
    """
    run, definition = attempt.run, attempt.definition
    headers = list(definition.headers)
    given = {name.lower() for name, _ in headers}
    if definition.body is not None and "content-type" not in given:
        headers.append(("Content-Type", _content_type(definition)))
    url, text = definition.url, definition.body
    secret_headers: frozenset[str] = frozenset()
    allowed_hosts: tuple[tuple[str, ...], ...] = ()
    if secrets is not None:
        allowed_hosts = _allowed_hosts(definition.url, secrets)
        secret_headers = frozenset(name.lower() for name, value in headers if placeholders.names_in(value))
        url, headers, text = _filled(definition, headers, secrets)
    headers += [
        ("Idempotency-Key", run.id),
        ("X-0cron-Run-Id", run.id),
        ("X-0cron-Attempt", str(run.attempt)),
        ("X-0cron-Scheduled-For", to_rfc3339(run.scheduled_for)),
        ("X-0cron-Job-Id", run.job_id),
        ("X-0cron-Job-Version", str(run.job_version)),
    ]
    return Request(
        definition.method,
        url,
        headers,
        None if text is None else text.encode(),
        definition.timeout_seconds,
        redirects=definition.redirects,
        secret_headers=secret_headers,
        allowed_hosts=allowed_hosts,
        verify_tls=definition.verify_tls,
    )


def sign(request: Request, run: Run, keys: Sequence[bytes], at: Instant) -> Request:
    """The request with the headers of Standard Webhooks."""
    signature = signed_headers(keys, message_id=run.id, timestamp_seconds=at // 1000, body=request.body)
    return dataclasses.replace(request, headers=[*request.headers, *signature])


def _filled(definition: Definition, headers: Headers, secrets: Mapping[str, Secret]) -> tuple[str, Headers, str | None]:
    """URL, headers and body with the values in their places."""

    def value_of(name: str) -> str:
        if name not in secrets:
            raise NotSent("secret_unknown", f"There is no secret {name}.")
        return secrets[name].reveal()

    try:
        url = placeholders.fill_url(definition.url, value_of, characters_max=URL_CHARACTERS_MAX)
    except ValueError:
        raise NotSent("secret_unusable", "A secret cannot be part of the scheme or host of a URL.") from None
    except TooLong:
        message = f"With its secrets the URL is longer than {URL_CHARACTERS_MAX:,} characters."
        raise NotSent("secret_unusable", message) from None
    filled = [(name, _filled_header(name, written, value_of)) for name, written in headers]
    if definition.body is None:
        return url, filled, None
    content_type = next(value for name, value in headers if name.lower() == "content-type")
    return url, filled, _filled_body(definition.body, content_type, value_of)


def _filled_header(name: str, written: str, value_of: Callable[[str], str]) -> str:
    try:
        value = placeholders.fill(written, value_of, characters_max=HEADER_VALUE_CHARACTERS_MAX)
        if value is not written:
            check_header(name, value)
    except (Invalid, TooLong):
        raise NotSent(
            "secret_unusable",
            f"The secret {first_few(placeholders.names_in(written))} does not fit into the header {name}: it holds a "
            "line break, another control character or a letter outside of Latin-1, or is too long.",
        ) from None
    return value


def _filled_body(written: str, content_type: str, value_of: Callable[[str], str]) -> str:
    try:
        body = placeholders.fill(
            written, value_of, placeholders.escape_for(content_type), characters_max=BODY_BYTES_MAX
        )
        if body is not written and len(body.encode()) > BODY_BYTES_MAX:
            raise TooLong
    except TooLong:
        message = f"With its secrets the body is longer than {BODY_BYTES_MAX:,} bytes."
        raise NotSent("secret_unusable", message) from None
    return body


def _allowed_hosts(url: str, secrets: Mapping[str, Secret]) -> tuple[tuple[str, ...], ...]:
    """The bounds of those that have some, all of which the URL's own host keeps. Raises NotSent."""
    bound = [secret for secret in secrets.values() if secret.allowed_hosts]
    if bound:
        host = split_url(url).host
        refused = [secret.name for secret in bound if not may_go_to(host, secret.allowed_hosts)]
        if refused:
            raise NotSent(
                "secret_host_refused",
                f"The secret {first_few(refused)} may not be sent to {host}: it is bound to other hosts. Change the "
                "URL of the job, or the allowed hosts of the secret. Nothing was sent.",
            )
    return tuple(secret.allowed_hosts for secret in bound)


def _content_type(definition: Definition) -> str:
    """What a body without a declared type is taken for: JSON when it looks like an object or a list, else text."""
    looks_like_json = (definition.body or "").lstrip()[:1] in ("{", "[")
    return "application/json" if looks_like_json else "text/plain; charset=utf-8"
