"""What a kind of channel is: one file that checks a configuration and sends a message by it.

Owns the shapes between the notifier (`zerocron.engine.notifier`, which decides when and how often) and the kinds (which
know one service each). A kind must never retry, remember, or read the ledger; it makes one attempt and says what came
of it. Requests go through `zerocron.outbound`, mail through the same guard of addresses.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from zerocron.core.addresses import AllowList
from zerocron.core.exchange import Failure, Outcome, Request
from zerocron.core.mail import Mail
from zerocron.core.notice import Notice

SEND_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message: an event, or several that were held back and are told together (a digest).

    `alert_id`: the same at every try, so that a receiver can tell a repetition. `notices`: at least one, oldest first;
    `more`: how many further ones are only counted. `base_url`: for links to a page, without a slash at the end.
    """

    alert_id: str
    notices: tuple[Notice, ...]
    base_url: str
    attempt: int = 1
    more: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """The service took the message. `detail`: what it said, for the record, such as `250 queued as 7F3`."""

    detail: str = ""


@dataclass(frozen=True, slots=True)
class Again:
    """It may work later. `retry_after_ms`: as the service asked; None leaves it to the notifier's back-off."""

    reason: str
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """It will not work again. `disables`: neither will any other message by this channel (410, an invalid token)."""

    reason: str
    disables: bool = False


Delivery = Accepted | Again | Refused
Send = Callable[[Request], Awaitable[Outcome]]


class Dial(Protocol):
    """`zerocron.outbound.Outbound.dial`: a connected socket past the guard of addresses, for mail."""

    async def __call__(
        self, host: str, port: int, *, allow: AllowList, timeout_seconds: float
    ) -> socket.socket | Failure: ...


@dataclass(frozen=True, slots=True)
class Ways:
    """The doors a kind may use, and what the operator has set. `mail`: None where no mail server is set up.

    `dial`: needed where `mail` is set.
    """

    send: Send
    now: Callable[[], int] = field(repr=False)  # the ledger's time in ms
    mail: Mail | None = None  # the operator's own mail server
    apprise_allowed: bool = False
    dial: Dial | None = None


class Kind(Protocol):
    """One kind of channel. `name` is what users write; `fields` tell the API, the CLI and the page what to ask for."""

    name: str
    label: str
    fields: tuple[ConfigField, ...]

    def check(self, config: Mapping[str, object]) -> dict[str, object]:
        """The configuration as it is kept, sealed, as JSON. Raises core.errors.Invalid that names `config.<name>`."""
        ...

    def destination(self, config: Mapping[str, object]) -> str:
        """Where it leads, for people to recognise: never a secret (`#ops`, `o…@example.com`, `hooks.example.com/…`)."""
        ...

    async def deliver(self, config: Mapping[str, object], envelope: Envelope, ways: Ways) -> Delivery:
        """Make one attempt, within SEND_TIMEOUT_SECONDS. Raises nothing for what a service or the network does."""
        ...


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One field of a configuration. `secret` ones are never shown again."""

    name: str
    help: str
    required: bool = True
    secret: bool = False
    example: str = ""
