"""Secrets on both databases: sealed for their row only, sealed anew without a gap, opened by the right keys alone."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable
from typing import Any

import pytest
from sqlalchemy import Connection, select, update
from tests.storage.samples import NOON, OTHER_TEAM_ID, an_id
from tests.support.clock import ManualClock, wait_until

from zerocron.actions.secrets import NO_KEY, Secrets, check_master_keys
from zerocron.core import sealing
from zerocron.core.errors import Conflict, Invalid, NotFound, Unavailable
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.sealing import Keyring, MasterKey
from zerocron.core.secret import SECRETS_MAX
from zerocron.engine.reads import READ_TRIES
from zerocron.engine.rendering import NotSent
from zerocron.engine.unsealing import Unsealer
from zerocron.storage.ledger import secrets as secret_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.secrets import DataKeyRow, SecretRow
from zerocron.storage.ledger.tables import data_keys, secrets

OLD, NEW, OTHER = (MasterKey(bytes(range(start, start + 32))) for start in (0, 50, 100))
CANARY = "canary-8c1e-value"
TEAM = DEFAULT_TEAM_ID


class Killed(BaseException):
    """The process is gone."""


class Away:
    """A ledger that does not answer."""

    async def read(self, _transaction: object) -> object:
        raise Unavailable("The database is away.")

    write = read


class House:
    """The verbs and the engine's reader over one ledger, with these master keys."""

    def __init__(self, ledger: Ledger, *keys: MasterKey, stop_at: str = "") -> None:
        self.ledger = ledger
        self.clock = ManualClock(NOON)
        self.keyring = Keyring(keys)
        self._stop_at = stop_at
        self.verbs = Secrets(ledger=ledger, clock=self.clock, keyring=self.keyring, stop_point=self._stop)
        self.reader = Unsealer(ledger=ledger, clock=self.clock, keyring=self.keyring)

    def _stop(self, name: str) -> None:
        if name == self._stop_at:
            raise Killed

    async def put(self, name: str, value: str, *, team_id: str = TEAM, hosts: list[str] | None = None) -> SecretRow:
        return await self.verbs.put(team_id, name, value, hosts)

    async def value(self, name: str, team_id: str = TEAM) -> str:
        return (await self.reader.secrets(team_id, frozenset([name])))[name].reveal()

    async def rows(self, team_id: str = TEAM) -> list[SecretRow]:
        return await self.ledger.read(lambda c: secret_rows.page(c, team_id, after="", limit=SECRETS_MAX))

    async def keys(self, team_id: str = TEAM) -> list[DataKeyRow]:
        return await self.ledger.write(lambda c: secret_rows.hold_data_keys(c, team_id))

    async def dump(self) -> str:
        """All that the two tables hold."""
        return await self.ledger.read(
            lambda c: repr([c.execute(select(table)).all() for table in (secrets, data_keys)])
        )


async def not_sent(asked: Awaitable[object]) -> NotSent:
    with pytest.raises(NotSent) as refusal:
        await asked
    return refusal.value


async def test_a_secret_is_kept_sealed_and_comes_back_for_a_request_only(ledger: Ledger) -> None:
    house = House(ledger, OLD)
    made = await house.put("API_KEY", CANARY, hosts=["API.example.com"])
    assert (made.created_at, made.updated_at, made.last_used_at) == (NOON, NOON, None)
    [kept] = await house.rows()
    assert kept == made
    found = (await house.reader.secrets(TEAM, frozenset(["API_KEY"])))["API_KEY"]
    assert (found.reveal(), found.allowed_hosts) == (CANARY, ("api.example.com",))
    dump = await house.dump()
    assert CANARY not in dump
    assert base64.b64encode(CANARY.encode()).decode()[:-3] not in dump


async def test_the_same_value_twice_is_different_bytes(ledger: Ledger) -> None:
    house = House(ledger, OLD)
    first, second = await house.put("A", CANARY), await house.put("A", CANARY)
    other = await house.put("B", CANARY)
    assert len({first.sealed, second.sealed, other.sealed}) == 3
    assert first.id == second.id != other.id
    [key] = await house.keys()
    assert key.uses == 3


async def test_a_new_value_is_used_at_once_and_bounds_stay_unless_given(ledger: Ledger) -> None:
    house, node = House(ledger, OLD), House(ledger, OLD)
    await house.put("A", CANARY, hosts=["a.example"])
    assert await node.value("A") == CANARY
    await house.clock.advance(5)
    changed = await house.put("A", "another value")
    assert (changed.created_at, changed.updated_at) == (NOON, NOON + 5_000)
    assert changed.allowed_hosts == ("a.example",)
    assert await node.value("A") == "another value"
    assert (await house.put("A", "another value", hosts=[])).allowed_hosts == ()


async def test_secrets_of_teams_do_not_meet(ledger: Ledger) -> None:
    house = House(ledger, OLD)
    await house.put("A", CANARY)
    await house.put("A", "of the others", team_id=OTHER_TEAM_ID)
    assert await house.value("A") == CANARY
    assert await house.value("A", OTHER_TEAM_ID) == "of the others"
    with pytest.raises(NotFound):
        await house.verbs.delete(an_id(), "A")
    await house.verbs.delete(OTHER_TEAM_ID, "A")
    assert await house.value("A") == CANARY
    assert {key.team_id for key in await house.keys()} == {TEAM}


async def test_an_unknown_secret_is_named(ledger: Ledger) -> None:
    house = House(ledger, OLD)
    await house.put("A", CANARY)
    refusal = await not_sent(house.reader.secrets(TEAM, frozenset(["A", "B", "C"])))
    assert refusal.kind == "secret_unknown"
    assert refusal.message.startswith("There is no secret B, C.")
    await house.verbs.delete(TEAM, "A")
    assert (await not_sent(house.value("A"))).kind == "secret_unknown"


@pytest.mark.parametrize("moved", ["name", "team", "key", "content"])
async def test_a_row_that_was_tampered_with_is_not_sent(ledger: Ledger, moved: str) -> None:
    house = House(ledger, OLD)
    mine, other = await house.put("A", CANARY), await house.put("B", "another value")
    theirs = await house.put("A", "of the others", team_id=OTHER_TEAM_ID)
    change: dict[str, dict[str, Any]] = {
        "name": {"sealed": other.sealed},
        "team": {"sealed": theirs.sealed},
        "key": {"data_key_id": theirs.data_key_id},
        "content": {"sealed": mine.sealed[:-6] + "AAAAA="},
    }

    def tamper(connection: Connection) -> None:
        connection.execute(update(secrets).where(secrets.c.id == mine.id).values(change[moved]))

    await ledger.write(tamper)
    refusal = await not_sent(house.value("A"))
    assert refusal.kind == "secret_unavailable"
    assert not {CANARY, "another value", "of the others"} & set(refusal.message.split())
    assert await house.value("B") == "another value"


async def test_a_team_has_so_many_secrets_and_no_more(ledger: Ledger) -> None:
    house = House(ledger, OLD)
    first = await house.put("S0", CANARY)

    def fill(connection: Connection) -> None:
        for number in range(1, SECRETS_MAX - 1):
            row = {**vars_of(first), "id": an_id(), "name": f"S{number}"}
            secret_rows.insert(connection, SecretRow(**row))

    await ledger.write(fill)
    results = await asyncio.gather(*(house.put(f"T{n}", CANARY) for n in range(5)), return_exceptions=True)
    refused = [result for result in results if isinstance(result, Conflict)]
    assert len(refused) == 4
    assert len(await house.rows()) == SECRETS_MAX
    await house.put("S0", "may still be changed")


def vars_of(row: SecretRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in SecretRow.__slots__}


async def test_bad_input_is_refused_before_anything_is_written(ledger: Ledger) -> None:
    house = House(ledger, OLD)
    for name, value, hosts in (("a", CANARY, None), ("A", "short", None), ("A", CANARY, ["a/b"])):
        with pytest.raises(Invalid):
            await house.put(name, value, hosts=hosts)
    assert await house.dump() == "[[], []]"


async def test_without_a_master_key_no_secret_is_taken_and_none_is_sent(ledger: Ledger) -> None:
    bare = House(ledger)
    for verb in (bare.put("A", CANARY), bare.verbs.rotate()):
        with pytest.raises(Conflict) as refusal:
            await verb
        assert refusal.value.message == NO_KEY
    await House(ledger, OLD).put("A", CANARY)
    assert (await not_sent(bare.value("A"))).kind == "secret_unavailable"
    other = House(ledger, OTHER)
    assert (await not_sent(other.value("A"))).kind == "secret_unavailable"
    with pytest.raises(Conflict, match="a master key"):
        await other.put("B", CANARY)


async def test_two_nodes_make_the_first_key_of_a_team_once(ledger: Ledger) -> None:
    nodes = [House(ledger, OLD) for _ in range(4)]
    await asyncio.gather(*(node.put(f"S{number}", f"value of {number}") for number, node in enumerate(nodes)))
    assert [(key.generation, key.uses) for key in await nodes[0].keys()] == [(1, 4)]
    for number in range(4):
        assert await nodes[3].value(f"S{number}") == f"value of {number}"


# sealing anew


async def test_after_a_rotation_nothing_needs_the_old_keys(ledger: Ledger) -> None:
    old = House(ledger, OLD)
    before = [await old.put("A", CANARY), await old.put("B", "another value", team_id=OTHER_TEAM_ID)]
    both = House(ledger, NEW, OLD)
    assert await both.value("A") == CANARY
    assert await both.verbs.rotate() == 2
    [row], [key] = await both.rows(), await both.keys()
    assert (key.generation, key.master_key_id, key.uses) == (2, NEW.id, 1)
    assert row.data_key_id == key.id != before[0].data_key_id
    assert row.sealed != before[0].sealed
    assert row.updated_at == before[0].updated_at, "its value is the same"
    new = House(ledger, NEW)
    await check_master_keys(ledger, new.keyring, "")
    assert await new.value("A") == CANARY
    assert await new.value("B", OTHER_TEAM_ID) == "another value"
    assert (await not_sent(old.value("A"))).kind == "secret_unavailable"
    gone = {item.data_key_id for item in before}
    assert not [item for item in gone if item in await new.dump()], "no row names the old keys"


@pytest.mark.parametrize("stop_at", ["inside-rotate", "between-teams"])
async def test_a_rotation_that_is_killed_is_repeated(ledger: Ledger, stop_at: str) -> None:
    old = House(ledger, OLD)
    await old.put("A", CANARY)
    await old.put("A", "of the others", team_id=OTHER_TEAM_ID)
    with pytest.raises(Killed):
        await House(ledger, NEW, OLD, stop_at=stop_at).verbs.rotate()
    both = House(ledger, NEW, OLD)
    await check_master_keys(ledger, both.keyring, "")
    for team_id, value in ((TEAM, CANARY), (OTHER_TEAM_ID, "of the others")):
        assert await both.value("A", team_id) == value
        assert len(await both.keys(team_id)) == 1, "each team is as it was or as it is to be"
    masters = [(await both.keys(team_id))[0].master_key_id for team_id in (TEAM, OTHER_TEAM_ID)]
    assert masters == [OLD.id if stop_at == "inside-rotate" else NEW.id, OLD.id]
    assert await both.verbs.rotate() == 2
    new = House(ledger, NEW)
    assert [await new.value("A"), await new.value("A", OTHER_TEAM_ID)] == [CANARY, "of the others"]


async def test_secrets_are_put_and_sent_while_a_rotation_goes_on(ledger: Ledger) -> None:
    house, other = House(ledger, NEW, OLD), House(ledger, NEW, OLD)
    await House(ledger, OLD).put("A", CANARY)
    rotations = [house.verbs.rotate() for _ in range(5)]
    puts = [other.put(f"S{number}", f"value of {number}") for number in range(20)]
    reads = [other.value("A") for _ in range(20)]
    results = await asyncio.gather(*rotations, *puts, *reads)
    assert set(results[-20:]) == {CANARY}
    new = House(ledger, NEW)
    assert await new.verbs.rotate() == 21
    for number in range(20):
        assert await new.value(f"S{number}") == f"value of {number}"
    assert len(await new.keys()) == 1


async def test_a_key_is_made_or_replaced_by_one_at_a_time(ledger: Ledger) -> None:
    """Else one would seal with a key that is nowhere kept, or not find the key that another has just made."""
    house = House(ledger, OLD)
    await house.put("A", CANARY)
    before = await house.keys()

    def make_again(connection: Connection) -> None:
        house.verbs._add_key(connection, TEAM, 1, 0, NOON)

    with pytest.raises(Conflict, match="at the same moment"):
        await ledger.write(make_again)
    assert await house.keys() == before
    for _ in range(10):
        await asyncio.gather(
            *(house.verbs.rotate() for _ in range(3)), *(house.put(f"S{n}", f"value of {n}") for n in range(4))
        )
        assert len(await house.keys()) == 1
        assert await house.value("A") == CANARY


async def test_a_damaged_secret_stops_a_rotation_and_is_named(ledger: Ledger) -> None:
    house = House(ledger, OLD)
    await house.put("A", CANARY)
    await house.put("B", CANARY)

    def damage(connection: Connection) -> None:
        connection.execute(update(secrets).where(secrets.c.name == "B").values(sealed="AQ=="))

    await ledger.write(damage)
    with pytest.raises(Conflict, match="The secret B is damaged"):
        await house.verbs.rotate()
    assert await house.value("A") == CANARY
    await house.put("B", "anew and whole")
    assert await house.verbs.rotate() == 2


async def test_a_worn_key_is_told_of_and_then_refused(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("zerocron.actions.secrets.USES_ALARM", 3)
    monkeypatch.setattr("zerocron.actions.secrets.USES_MAX", 4)
    house = House(ledger, OLD)
    alarms = []
    for _ in range(4):
        await house.put("A", CANARY)
        alarms.append("data_key_worn" in capsys.readouterr().out)
    assert alarms == [False, False, True, True]
    with pytest.raises(Conflict, match="0cron secrets rotate"):
        await house.put("A", CANARY)
    await house.verbs.rotate()
    await house.put("A", "a new value")


# the check at start


async def test_a_ledger_is_joined_with_the_key_that_it_knows(ledger: Ledger) -> None:
    await check_master_keys(ledger, Keyring(), "")  # nobody has a key, and nothing needs one
    await check_master_keys(ledger, Keyring([OLD]), "")
    await check_master_keys(ledger, Keyring([OLD]), "")
    await check_master_keys(ledger, Keyring([NEW, OLD]), "")
    for keyring, words in ((Keyring(), "this node has none. Do it."), (Keyring([NEW]), f"id {OLD.id}")):
        with pytest.raises(Conflict, match=words):
            await check_master_keys(ledger, keyring, "Do it.")


async def test_of_two_nodes_with_different_keys_one_is_refused(ledger: Ledger) -> None:
    results = await asyncio.gather(
        check_master_keys(ledger, Keyring([OLD]), ""),
        check_master_keys(ledger, Keyring([NEW]), ""),
        return_exceptions=True,
    )
    assert sorted(type(result).__name__ for result in results) == ["Conflict", "NoneType"]


async def test_every_key_that_a_secret_needs_has_to_be_there(ledger: Ledger) -> None:
    """The mark may say otherwise, as after a rotation that was killed."""
    await check_master_keys(ledger, Keyring([OLD]), "")
    await House(ledger, NEW, OLD).put("A", CANARY)
    with pytest.raises(Conflict, match=NEW.id):
        await check_master_keys(ledger, Keyring([OLD]), "")
    with pytest.raises(Conflict, match=OLD.id):
        await check_master_keys(ledger, Keyring([NEW]), "")
    await check_master_keys(ledger, Keyring([OLD, NEW]), "")


# the engine's reader


async def test_who_asks_at_the_same_time_shares_a_query(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(ledger, OLD)
    for number in range(3):
        await house.put(f"S{number}", f"value of {number}")
    queries = 0
    original = secret_rows.of_names

    def counted(connection: Connection, wanted: Any) -> Any:
        nonlocal queries
        queries += 1
        return original(connection, wanted)

    monkeypatch.setattr(secret_rows, "of_names", counted)
    values = await asyncio.gather(*(house.value(f"S{number % 3}") for number in range(300)))
    assert values == [f"value of {number % 3}" for number in range(300)]
    assert queries <= 3
    await house.reader.close()


async def test_an_answer_is_never_older_than_the_question(ledger: Ledger) -> None:
    house = House(ledger, OLD)
    await house.put("A", "value number 0")

    async def reads(number: int) -> None:
        await house.put("A", f"value number {number}")
        assert await house.value("A") == f"value number {number}"

    background = [asyncio.create_task(house.value("A")) for _ in range(50)]
    for number in range(1, 20):
        await reads(number)
    await asyncio.gather(*background)


async def test_when_secrets_were_used_is_written_down(ledger: Ledger) -> None:
    house = House(ledger, OLD)
    await house.put("A", CANARY)
    await house.put("B", CANARY)
    await house.clock.advance(1)
    await house.value("A")
    assert [row.last_used_at for row in await house.rows()] == [None, None]
    await house.reader.save_use()
    await house.reader.save_use()
    assert [row.last_used_at for row in await house.rows()] == [NOON + 1_000, None]
    await house.put("A", "a new value")
    assert [row.last_used_at for row in await house.rows()] == [NOON + 1_000, None]


async def test_use_that_cannot_be_written_down_is_kept_for_the_next_time(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(ledger, OLD)
    await house.put("A", CANARY)
    await house.value("A")
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "write", Away().write)
        with pytest.raises(Unavailable):
            await house.reader.save_use()
    await house.reader.save_use()
    assert [row.last_used_at for row in await house.rows()] == [NOON]


async def test_an_attempt_that_is_given_up_does_not_disturb_the_others(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(ledger, OLD)
    await house.put("A", CANARY)
    reads, answer = house.reader._reads, asyncio.Event()
    query = reads._query

    async def held(wanted: Any) -> Any:
        await answer.wait()
        return await query(wanted)

    monkeypatch.setattr(reads, "_query", held)
    asked = [asyncio.create_task(house.value("A")) for _ in range(3)]
    await wait_until(lambda: reads._reading is not None, "the question")
    asked[1].cancel()
    answer.set()
    await house.reader.close()
    assert await asyncio.gather(*asked[::2]) == [CANARY, CANARY]
    house.reader._ledger = Away()  # type: ignore[assignment]
    answer.clear()
    left = [asyncio.create_task(reads.get(frozenset([(TEAM, "A")]))) for _ in range(2)]
    await wait_until(lambda: reads._reading is not None, "the question")
    left[0].cancel()
    answer.set()
    results = await asyncio.gather(*left, return_exceptions=True)
    assert [type(result).__name__ for result in results] == ["CancelledError", "Unavailable"]
    await house.reader.close()


async def test_of_many_unknown_secrets_a_few_are_named(ledger: Ledger) -> None:
    refusal = await not_sent(House(ledger, OLD).reader.secrets(TEAM, frozenset(f"K_{n:03}" for n in range(400))))
    assert refusal.kind == "secret_unknown"
    assert "There is no secret K_000, K_001, K_002, K_003, K_004 and 395 more. " in refusal.message


async def test_opened_keys_are_remembered_within_bounds(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zerocron.engine.unsealing.KEYS_KEPT_MAX", 2)
    house = House(ledger, OLD)
    teams = [an_id() for _ in range(5)]
    for team_id in teams:
        await house.put("A", f"of the team {team_id}", team_id=team_id)
    for team_id in teams * 2:
        assert await house.value("A", team_id) == f"of the team {team_id}"
        assert len(house.reader._keys) <= 2


async def test_a_ledger_that_stays_away_is_asked_a_few_times(ledger: Ledger) -> None:
    class Hasty(ManualClock):
        async def sleep(self, seconds: float) -> None:
            waits.append(seconds)

    waits: list[float] = []
    reader = Unsealer(ledger=Away(), clock=Hasty(NOON), keyring=Keyring([OLD]))  # type: ignore[arg-type]
    with pytest.raises(Unavailable):
        await reader.secrets(TEAM, frozenset(["A"]))
    assert len(waits) == READ_TRIES - 1
    await reader.close()


def test_the_bounds_fit_the_columns() -> None:
    _, wrapped = OLD.new_data_key(an_id(), TEAM)
    assert len(wrapped) <= 200
    assert len(OLD.id) == 16
    assert sealing.FORMAT == 1
