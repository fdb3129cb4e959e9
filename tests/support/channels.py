"""A kind of channel that sends nothing: it remembers every message, and answers as it is told. Where its place is a
file, it writes down there what each event was.

As a program (`python -m tests.support.channels serve ...`) it is the command line on a server that has this one kind.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from zerocron.channels.contract import Accepted, ConfigField, Delivery, Envelope, Kind, Ways
from zerocron.core.errors import Invalid

Reply = Callable[[Envelope], Awaitable[Delivery]]


class FakeKind:
    """The kind `fake`. `replies`: for the first, second... message; the last one stays. Without any it accepts."""

    name: str = "fake"
    label: str = "Fake"
    fields: tuple[ConfigField, ...] = (
        ConfigField("place", "Where messages go.", example="a drawer"),
        ConfigField("token", "What opens it.", required=False, secret=True),
    )

    def __init__(self) -> None:
        self.sent: list[tuple[str, Envelope]] = []
        self.replies: list[Delivery | Reply] = []

    def check(self, config: Mapping[str, object]) -> dict[str, object]:
        strange = sorted(config.keys() - {"place", "token"})
        if strange:
            raise Invalid("There is no such field. Leave it out.", field=f"config.{strange[0]}")
        place = config.get("place")
        if not isinstance(place, str) or not place:
            raise Invalid("Say where messages go.", field="config.place")
        return {"place": place, "token": str(config.get("token", ""))}

    def destination(self, config: Mapping[str, object]) -> str:
        return f"the {config['place']}"

    async def deliver(self, config: Mapping[str, object], envelope: Envelope, ways: Ways) -> Delivery:
        place = str(config["place"])
        self.sent.append((place, envelope))
        if place.startswith("/"):
            _write_down(Path(place), envelope)
        if not self.replies:
            return Accepted("put there")
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return await reply(envelope) if callable(reply) else reply

    def kinds(self, place: str | None = None) -> list[str]:
        """What the messages were about, each event of a digest by itself; of one place or of all."""
        return [
            str(notice.kind) for where, envelope in self.sent if place in (None, where) for notice in envelope.notices
        ]


def _write_down(file: Path, envelope: Envelope) -> None:
    with file.open("a") as letters:
        letters.writelines(f"{notice.kind}\n" for notice in envelope.notices)


class FakeHook(FakeKind):
    """The kind `webhook`, so that the examples of the documents work: it takes a URL and calls nobody."""

    name: str = "webhook"
    label: str = "Webhook"
    fields: tuple[ConfigField, ...] = (
        ConfigField("url", "Where to POST.", example="https://example.com/hooks/alerts"),
    )

    def check(self, config: Mapping[str, object]) -> dict[str, object]:
        return super().check({"place": config.get("url")})


def fakes() -> tuple[FakeKind, dict[str, Kind]]:
    """The kind, and a registry of it."""
    kind = FakeKind()
    return kind, {"fake": kind}


if __name__ == "__main__":
    from zerocron.channels import registry

    registry.KINDS = fakes()[1]
    from zerocron.cli.main import run

    sys.exit(run(sys.argv[1:]))
