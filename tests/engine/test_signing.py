"""The keys a node signs with: read once for a while, gone when they expire, never guessed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.house import WatchedLedger
from tests.storage.samples import DAY, NOON, sqlite_ledger
from tests.support.clock import ManualClock

from zerocron.actions.keys import Keys
from zerocron.actions.secrets import Secrets
from zerocron.actions.signing import Signing
from zerocron.core.errors import Unavailable, Unclear
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.sealing import Keyring, new_master_key, read_master_keys
from zerocron.core.signing import read_key
from zerocron.engine import signing as signers
from zerocron.engine.rendering import NotSent
from zerocron.engine.signing import Signer

OTHER_TEAM = "00000000-0000-7000-8000-00000000beef"


class Desk:
    def __init__(self, ledger: WatchedLedger) -> None:
        self.ledger = ledger
        self.clock = ManualClock(NOON, busy=lambda: ledger.at_work > 0)
        self.keyring = read_master_keys(new_master_key(), source="test")
        secrets = Secrets(ledger=ledger, clock=self.clock, keyring=self.keyring)
        self.signing = Signing(ledger=ledger, clock=self.clock, secrets=secrets)
        self.signer = Signer(ledger=ledger, clock=self.clock, keyring=self.keyring)

    async def rotate(self) -> bytes:
        _, text = await self.signing.rotate(DEFAULT_TEAM_ID)
        return read_key(text)

    async def keys(self) -> list[bytes]:
        return list(await self.signer.keys(DEFAULT_TEAM_ID))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with sqlite_ledger(tmp_path) as ledger:
        yield Desk(WatchedLedger(ledger))


async def test_both_keys_sign_for_a_day_and_then_the_new_one_alone(desk: Desk) -> None:
    first = await desk.rotate()
    assert await desk.keys() == [first]
    await desk.clock.advance(signers.REMEMBERED_SECONDS + 1)
    second = await desk.rotate()
    assert await desk.keys() == [second, first]
    await desk.clock.advance(DAY / 1000 - 1)
    assert await desk.keys() == [second, first]
    await desk.clock.advance(1)
    assert await desk.keys() == [second]


async def test_a_rotation_reaches_a_node_within_seconds(desk: Desk) -> None:
    first = await desk.rotate()
    assert await desk.keys() == [first]
    await desk.rotate()
    assert await desk.keys() == [first], "a burst of signed requests is one query"
    await desk.clock.advance(signers.REMEMBERED_SECONDS + 0.1)
    assert len(await desk.keys()) == 2


async def test_without_a_key_nothing_is_signed(desk: Desk) -> None:
    with pytest.raises(NotSent, match="there is no signing key") as refusal:
        await desk.keys()
    assert refusal.value.kind == "not_signed"


async def test_a_node_with_another_master_key_does_not_sign_and_shows_nothing(desk: Desk) -> None:
    await desk.rotate()
    for keyring in (read_master_keys(new_master_key(), source="test"), Keyring()):
        stranger = Signer(ledger=desk.ledger, clock=desk.clock, keyring=keyring)
        with pytest.raises(NotSent, match="cannot be opened with this server's master key") as refusal:
            await stranger.keys(DEFAULT_TEAM_ID)
        assert refusal.value.kind == "secret_unavailable"
        assert not refusal.value.outcome().failure.permanent, "another node, or this one when it was mended, can"  # type: ignore[union-attr]


async def test_attempts_that_ask_at_the_same_time_share_a_query(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await desk.rotate()
    reads = 0
    read = desk.ledger.read

    async def counted(transaction: Any) -> Any:
        nonlocal reads
        reads += 1
        return await read(transaction)

    monkeypatch.setattr(desk.ledger, "read", counted)
    asked = [desk.keys() for _ in range(50)]
    other = [desk.signer.keys(OTHER_TEAM) for _ in range(50)]
    found = await asyncio.gather(*asked, *other, return_exceptions=True)
    assert found[:50] == [[first]] * 50
    assert {type(refusal) for refusal in found[50:]} == {NotSent}
    assert reads <= 2


async def test_a_key_that_does_not_open_keeps_nobody_else_from_theirs(desk: Desk) -> None:
    first = await desk.rotate()
    stranger = read_master_keys(new_master_key(), source="test")
    secrets = Secrets(ledger=desk.ledger, clock=desk.clock, keyring=stranger)
    await Signing(ledger=desk.ledger, clock=desk.clock, secrets=secrets).rotate(OTHER_TEAM)
    found = await asyncio.gather(
        *(desk.signer.keys(team_id) for team_id in (DEFAULT_TEAM_ID, OTHER_TEAM, DEFAULT_TEAM_ID)),
        return_exceptions=True,
    )
    assert [found[0], found[2]] == [[first], [first]]
    assert isinstance(found[1], NotSent)


async def test_without_anything_known_a_ledger_that_is_away_is_no_refusal(desk: Desk) -> None:
    await desk.rotate()
    desk.ledger.is_away = True
    asked = asyncio.create_task(desk.keys())
    await desk.clock.advance(60)
    with pytest.raises(Unavailable):
        await asked


async def test_a_rotation_whose_answer_was_lost_is_looked_up(desk: Desk) -> None:
    """Else a key would sign that nobody has."""
    first = await desk.rotate()
    await desk.clock.advance(1)
    desk.ledger.lose_answer = lambda _result: "committed"
    second = await desk.rotate()
    desk.ledger.lose_answer = lambda _result: "rolled back"
    with pytest.raises(Unclear):
        await desk.rotate()
    desk.ledger.heal()
    assert await desk.keys() == [second, first]


async def test_an_api_key_whose_answer_was_lost_is_looked_up(desk: Desk) -> None:
    keys = Keys(ledger=desk.ledger, clock=desk.clock)
    desk.ledger.lose_answer = lambda _result: "committed"
    _, token = await keys.create(DEFAULT_TEAM_ID, "made all the same")
    desk.ledger.lose_answer = lambda _result: "rolled back"
    with pytest.raises(Unclear):
        await keys.create(DEFAULT_TEAM_ID, "never made")
    desk.ledger.heal()
    assert (await keys.recognise(f"Bearer {token.text}")).team_id == DEFAULT_TEAM_ID
    assert [key.name for key in await keys.page(DEFAULT_TEAM_ID, after="", limit=9)] == ["made all the same"]


async def test_what_is_known_goes_on_signing_while_the_ledger_is_away(desk: Desk) -> None:
    first = await desk.rotate()
    assert await desk.keys() == [first]
    desk.ledger.is_away = True
    await desk.clock.advance(60)
    assert await desk.keys() == [first]


def _contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir() if path.is_file()]


async def test_no_key_is_in_the_ledger_as_it_is(desk: Desk, tmp_path: Path) -> None:
    _, text = await desk.signing.rotate(DEFAULT_TEAM_ID)
    files = b"".join(_contents(tmp_path))
    for form in (text.encode(), text.removeprefix("whsec_").encode(), read_key(text), read_key(text).hex().encode()):
        assert form not in files
