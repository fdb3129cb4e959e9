"""What an attempt needs before it can be sent: its secrets, its signing keys, its request.

Owns the steps unseal -> render -> sign, for the executor and for whoever tries a request before it becomes a job. Must
never send anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from zerocron.core.errors import Unavailable
from zerocron.core.exchange import Request
from zerocron.core.model import Instant
from zerocron.core.redaction import Redactor
from zerocron.core.secret import Secret
from zerocron.engine.attempt import Attempt
from zerocron.engine.rendering import NotSent, render, secrets_named, sign

Secrets = Callable[[str, frozenset[str]], Awaitable[Mapping[str, Secret]]]
"""The secrets of a team by these names, or NotSent, Unavailable."""

SigningKeys = Callable[[str], Awaitable[Sequence[bytes]]]
"""The keys of a team that sign, the newest first, or NotSent, Unavailable."""

LEDGER_AWAY = NotSent("local_resources", "What the request needs could not be read from the database in time.")
"""No failure of the job: the attempt does not count, and is made again."""


class Prepared(NamedTuple):
    """All that a request needs, so that nothing but the clock stands between the last look and the first byte."""

    request: Request
    redactor: Redactor | None = None
    keys: Sequence[bytes] = ()
    refusal: NotSent | None = None

    def to_send(self, attempt: Attempt, at: Instant, *, allow_insecure_tls: bool) -> Request:
        """The request as it leaves at that instant."""
        request = self.request
        if not (request.verify_tls or allow_insecure_tls):
            request = dataclasses.replace(request, verify_tls=True)  # the operator has taken the permission back
        return sign(request, attempt.run, self.keys, at) if attempt.definition.sign else request


async def prepare(attempt: Attempt, *, secrets: Secrets, signing_keys: SigningKeys) -> Prepared:
    """Whatever takes long or waits for the ledger comes before the last look at slot and session."""
    team_id, definition = attempt.run.team_id, attempt.definition
    names = secrets_named(definition)
    if not (names or definition.sign):
        return Prepared(render(attempt))
    try:
        opened = await secrets(team_id, names) if names else None
        keys = await signing_keys(team_id) if definition.sign else ()
        return Prepared(render(attempt, opened), Redactor(opened.values()) if opened else None, keys)
    except NotSent as refusal:
        return Prepared(render(attempt), refusal=refusal)
    except Unavailable:
        return Prepared(render(attempt), refusal=LEDGER_AWAY)
