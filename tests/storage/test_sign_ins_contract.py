"""Signing in on both databases: who gets in, for how long, what ends it, and how often one may try."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from argon2 import PasswordHasher
from sqlalchemy import update
from tests.storage.samples import OTHER_TEAM_ID
from tests.support.people import AWAY, HOME, PASSWORD, House, house_over

from zerocron.actions.hashing import Hashing
from zerocron.actions.sign_ins import ABSOLUTE_MS, ELEVATED_MS, ENDED, IDLE_MS, REFUSED, Opened, Visitor
from zerocron.core.access import Permission, Role
from zerocron.core.errors import Forbidden, NotFound, TooMany, Unauthorized
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.tokens import digest
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import sign_ins as sign_in_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.people_tables import members
from zerocron.storage.ledger.tables import teams


async def refused(asked: Awaitable[object]) -> str:
    with pytest.raises(Unauthorized) as refusal:
        await asked
    return refusal.value.message


async def tries_of(guess: Callable[[int], Awaitable[object]]) -> int:
    """How often one may guess until no more guesses are taken."""
    for number in range(200):
        try:
            await refused(guess(number))
        except TooMany:
            return number
    raise AssertionError("there is no limit")


def from_address(number: int) -> Visitor:
    return Visitor(f"198.51.100.{number}", "curl/8.14")


# who gets in


async def test_a_person_signs_in_and_is_recognised_by_the_token(house: House) -> None:
    await house.set_up()
    opened = await house.sign_in(" ADA@example.com ")
    bearer = await house.sign_ins.recognise(opened.token)
    assert bearer == opened.session.bearer.__class__(
        team_id=DEFAULT_TEAM_ID,
        actor=bearer.actor,
        permissions=frozenset(Permission),
        person_id=opened.session.bearer.person_id,
        sign_in_id=opened.session.bearer.sign_in_id,
        is_elevated=True,
    )
    assert (bearer.actor.kind, bearer.actor.name) == ("person", "Ada Lovelace")
    session = await house.sign_ins.session(bearer)
    assert (session.team_name, session.role, session.sign_in) == ("Team", Role.OWNER, opened.session.sign_in)


async def test_who_is_not_there_and_who_is_wrong_get_the_same_answer_for_the_same_work(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.set_up()
    disabled = await house.person("bob@example.com")
    await house.ledger.write(lambda c: people_rows.change(c, disabled.id, 0, status="disabled"))
    nobody_yet = await house.person("eve@example.com")
    await house.ledger.write(lambda c: people_rows.change(c, nobody_yet.id, 0, password_hash=None))
    work: list[str] = []

    def counted(name: str, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def count(*arguments: Any, **options: Any) -> Any:
            work.append(name)
            return await original(*arguments, **options)

        return count

    monkeypatch.setattr(Hashing, "_run", counted("hash", Hashing._run))
    monkeypatch.setattr(house.ledger, "read", counted("read", house.ledger.read))
    answers = {}
    for name, email, password in (
        ("wrong", "ada@example.com", "another password"),
        ("unknown", "carol@example.com", PASSWORD),
        ("no address", "x", PASSWORD),
        ("disabled", "bob@example.com", PASSWORD),
        ("without a password", "eve@example.com", PASSWORD),
        ("too long", "ada@example.com", PASSWORD * 100),
    ):
        work.clear()
        message = await refused(house.sign_in(email, password))
        answers[name] = (message, *work)
    assert set(answers.values()) == {(REFUSED, "read", "hash")}, answers


async def test_what_is_waited_for_is_no_entry_of_the_audit_log(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a known person has one: who had to wait for it would know that there is such a person."""
    await house.set_up()
    may_write = asyncio.Event()
    write = house.ledger.write

    async def slow(transaction: Any) -> Any:
        await may_write.wait()
        return await write(transaction)

    monkeypatch.setattr(house.ledger, "write", slow)
    assert await refused(house.sign_in(password="another password", visitor=AWAY)) == REFUSED
    may_write.set()
    await house.sign_ins.close()
    assert ("sign-in.refuse", "server", AWAY.address) in await house.audited()


async def test_an_unknown_person_leaves_nothing_behind(house: House) -> None:
    await house.set_up()
    before = await house.dump()
    await refused(house.sign_in("canary@example.com"))
    await house.sign_ins.close()
    assert await house.dump() == before


async def test_a_hash_of_other_parameters_is_replaced_when_its_person_signs_in(house: House) -> None:
    opened = await house.set_up()
    person_id = opened.session.bearer.person_id or ""
    weak = PasswordHasher(time_cost=1, memory_cost=8_192, parallelism=1).hash(PASSWORD)
    await house.ledger.write(lambda c: people_rows.change(c, person_id, 0, password_hash=weak))
    await refused(house.sign_in(password="another password"))
    assert (await house.get(person_id)).password_hash == weak
    await house.sign_in()
    now = (await house.get(person_id)).password_hash or ""
    assert now.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    await house.sign_in()
    assert (await house.get(person_id)).password_hash == now


async def test_a_password_that_changes_meanwhile_lets_nobody_in(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = await house.set_up()
    person_id = opened.session.bearer.person_id or ""
    matches = Hashing.matches

    async def and_then_it_changes(self: Hashing, password_hash: str | None, password: str) -> bool:
        is_right = await matches(self, password_hash, password)
        await house.ledger.write(lambda c: people_rows.change(c, person_id, 0, password_hash="another"))
        return is_right

    monkeypatch.setattr(Hashing, "matches", and_then_it_changes)
    assert await refused(house.sign_in()) == REFUSED


async def test_one_looks_at_the_team_of_the_last_time_if_it_is_still_ones_own(house: House) -> None:
    first = await house.set_up()
    ada = first.session.bearer.person_id or ""
    await house.person("bob@example.com", team_id=OTHER_TEAM_ID)
    await house.ledger.write(
        lambda c: people_rows.add_membership(c, OTHER_TEAM_ID, ada, Role.VIEWER, house.clock.now() + 1)
    )
    assert (await house.sign_in()).session.bearer.team_id == DEFAULT_TEAM_ID
    house.clock.set(house.clock.now() + 1)
    second = await house.sign_in()
    session = await house.sign_ins.look_at(second.session.bearer, OTHER_TEAM_ID)
    assert (session.bearer.team_id, session.role) == (OTHER_TEAM_ID, Role.VIEWER)
    assert (await house.sign_ins.recognise(second.token)).permissions == {Permission.READ}
    assert (await house.sign_ins.recognise(first.token)).team_id == DEFAULT_TEAM_ID
    assert (await house.sign_in()).session.bearer.team_id == OTHER_TEAM_ID
    await house.ledger.write(lambda c: c.execute(update(teams).where(teams.c.id == OTHER_TEAM_ID).values(deleted_at=1)))
    assert (await house.sign_in()).session.bearer.team_id == DEFAULT_TEAM_ID
    with pytest.raises(NotFound):
        await house.sign_ins.look_at(first.session.bearer, OTHER_TEAM_ID)
    await house.ledger.write(lambda c: c.execute(members.delete().where(members.c.person_id == ada)))
    with pytest.raises(Forbidden, match="in no team"):
        await house.sign_in()


# for how long


async def test_the_ledger_holds_no_token_and_each_sign_in_has_its_own(house: House) -> None:
    opened = [await house.set_up(), await house.sign_in(), await house.sign_in()]
    tokens = {one.token for one in opened}
    dump = await house.dump()
    assert len(tokens) == 3
    for token in tokens:
        assert len(token) == 43, "256 bits"
        assert token not in dump
        assert token not in repr(opened)
        assert digest(token) in dump


async def test_a_sign_in_that_is_not_used_ends_and_one_that_is_ends_all_the_same(house: House) -> None:
    used, idle = await house.set_up(), await house.sign_in()
    start = house.clock.now()
    house.clock.set(start + IDLE_MS - 1)
    await house.sign_ins.recognise(used.token)
    await house.sign_ins.save_use()
    house.clock.set(start + IDLE_MS)
    await house.clock.advance(1)
    assert await refused(house.sign_ins.recognise(idle.token)) == ENDED
    while house.clock.now() < start + ABSOLUTE_MS - IDLE_MS:
        house.clock.set(house.clock.now() + IDLE_MS // 2)
        await house.clock.advance(1)
        await house.sign_ins.recognise(used.token)
    house.clock.set(start + ABSOLUTE_MS - 2)
    assert (await house.sign_ins.recognise(used.token)).is_elevated is False
    house.clock.set(start + ABSOLUTE_MS)
    assert await refused(house.sign_ins.recognise(used.token)) == ENDED


async def test_use_on_one_node_counts_on_the_others(house: House, ledger: Ledger) -> None:
    async with house_over(ledger, clock=house.clock) as other:
        opened = await house.set_up()
        start = house.clock.now()
        house.clock.set(start + IDLE_MS - 1)
        await other.sign_ins.recognise(opened.token)
        await other.sign_ins.save_use()
        house.clock.set(start + IDLE_MS + 1)
        await house.clock.advance(1)
        await house.sign_ins.recognise(opened.token)


async def test_elevation_takes_a_proof_lasts_ten_minutes_and_changes_the_token(house: House) -> None:
    await house.set_up()
    opened = await house.sign_in()
    start = house.clock.now()
    house.clock.set(start + ELEVATED_MS)
    await house.clock.advance(1)
    bearer = await house.sign_ins.recognise(opened.token)
    assert not bearer.is_elevated
    for password, code in (("another password", None), (None, None), (None, "123456"), ("", "")):
        assert await refused(house.sign_ins.elevate(bearer, password, code)) == REFUSED
    elevated = await house.sign_ins.elevate(bearer, PASSWORD, None)
    assert elevated.token != opened.token
    assert await refused(house.sign_ins.recognise(opened.token)) == ENDED
    assert (await house.sign_ins.recognise(elevated.token)).is_elevated
    assert elevated.session.sign_in is not None
    assert elevated.session.sign_in.elevated_until == house.clock.now() + ELEVATED_MS
    house.clock.set(house.clock.now() + ELEVATED_MS)
    assert not (await house.sign_ins.recognise(elevated.token)).is_elevated


async def test_a_proof_may_be_tried_so_often_by_who_is_signed_in_and_costs_nobody_else(house: House) -> None:
    await house.set_up()
    stolen, own = await house.sign_in(), await house.sign_in()
    for _ in range(10):
        await refused(house.sign_ins.elevate(stolen.session.bearer, "another password", None))
    with pytest.raises(TooMany):
        await house.sign_ins.elevate(stolen.session.bearer, PASSWORD, None)
    await house.sign_ins.elevate(own.session.bearer, PASSWORD, None)


# what ends it


async def sign_out(house: House, opened: Opened) -> None:
    await house.sign_ins.end(opened.session.bearer)


async def sign_out_elsewhere(house: House, opened: Opened) -> None:
    await house.sign_ins.end(opened.session.bearer, opened.session.bearer.sign_in_id)


async def sign_out_of_the_others(house: House, opened: Opened) -> None:
    other = await house.sign_in()
    assert await house.sign_ins.end_others(other.session.bearer) == 1


async def change_the_password(house: House, opened: Opened) -> None:
    other = await house.sign_in()
    await house.entrance.people.change_password(other.session.bearer, PASSWORD, "other words in a row")


async def set_up_a_second_factor(house: House, opened: Opened) -> None:
    await house.with_totp(await house.sign_in())


async def take_off_the_second_factor(house: House, opened: Opened) -> None:
    other = await house.sign_in()
    seed, _ = await house.with_totp(other)
    house.clock.set(house.clock.now() + 60_000)
    again = await house.sign_in(code=house.code(seed))
    await house.entrance.second_factors.remove(other.session.bearer)
    assert await refused(house.sign_ins.recognise(again.token))


async def disable(house: House, opened: Opened) -> None:
    person_id = opened.session.bearer.person_id
    await house.ledger.write(lambda c: people_rows.change(c, person_id or "", 0, status="disabled"))


async def take_out_of_the_team(house: House, opened: Opened) -> None:
    person_id = opened.session.bearer.person_id
    await house.ledger.write(lambda c: c.execute(members.delete().where(members.c.person_id == person_id)))


async def delete_the_team(house: House, _opened: Opened) -> None:
    await house.ledger.write(lambda c: c.execute(update(teams).values(deleted_at=1)))


@pytest.mark.parametrize(
    "end",
    [
        sign_out,
        sign_out_elsewhere,
        sign_out_of_the_others,
        change_the_password,
        set_up_a_second_factor,
        take_off_the_second_factor,
        disable,
        take_out_of_the_team,
        delete_the_team,
    ],
)
async def test_what_ends_a_sign_in_ends_it_on_every_node_within_a_second(
    house: House, ledger: Ledger, end: Callable[[House, Opened], Awaitable[None]]
) -> None:
    async with house_over(ledger, clock=house.clock) as other:
        opened = await house.set_up()
        await other.sign_ins.recognise(opened.token)
        await end(house, opened)
        await house.clock.advance(1)
        assert await refused(other.sign_ins.recognise(opened.token)) == ENDED
        assert await refused(house.sign_ins.recognise(opened.token)) == ENDED


async def test_here_it_ends_at_once_and_the_one_that_did_it_goes_on(house: House) -> None:
    opened, own = await house.set_up(), await house.sign_in()
    for one in (opened, own):
        await house.sign_ins.recognise(one.token)
    await house.entrance.people.change_password(own.session.bearer, PASSWORD, "other words in a row")
    assert await refused(house.sign_ins.recognise(opened.token)) == ENDED
    await house.sign_ins.recognise(own.token)
    assert await refused(house.sign_in()) == REFUSED
    await house.sign_in(password="other words in a row")


async def test_nobody_ends_the_sign_in_of_another_person(house: House) -> None:
    ada = await house.set_up()
    await house.person("bob@example.com")
    bob = await house.sign_in("bob@example.com")
    with pytest.raises(NotFound, match="There is no such sign-in"):
        await house.sign_ins.end(bob.session.bearer, ada.session.bearer.sign_in_id)
    assert await house.sign_ins.end_others(bob.session.bearer) == 0
    await house.sign_ins.recognise(ada.token)
    assert [one.id for one in await house.sign_ins.page(bob.session.bearer, before=None, limit=10)] == [
        bob.session.bearer.sign_in_id
    ]


async def test_the_list_shows_what_is_good_the_newest_first_page_by_page(house: House) -> None:
    opened = [await house.set_up()]
    for _ in range(4):
        house.clock.set(house.clock.now() + 1_000)
        opened.append(await house.sign_in())
    ids = [one.session.bearer.sign_in_id or "" for one in opened]
    await house.sign_ins.end(opened[1].session.bearer)
    bearer = opened[0].session.bearer
    first = await house.sign_ins.page(bearer, before=None, limit=2)
    rest = await house.sign_ins.page(bearer, before=(first[-1].created_at, first[-1].id), limit=10)
    assert [one.id for one in first + rest] == [ids[4], ids[3], ids[2], ids[0]]
    house.clock.set(house.clock.now() + IDLE_MS)
    assert await house.sign_ins.page(bearer, before=None, limit=10) == []


async def test_what_ended_long_ago_is_forgotten(house: House) -> None:
    old, good = await house.set_up(), await house.sign_in()
    await house.sign_ins.end(old.session.bearer)
    now = house.clock.now()
    await house.ledger.write(lambda c: sign_in_rows.forget(c, now))
    assert digest(old.token) in await house.dump()
    await house.ledger.write(lambda c: sign_in_rows.forget(c, now + 1))
    dump = await house.dump()
    assert digest(old.token) not in dump
    assert digest(good.token) in dump
    await house.ledger.write(lambda c: sign_in_rows.forget(c, now + ABSOLUTE_MS + 1))
    assert digest(good.token) not in await house.dump()


# how often one may try


async def test_guesses_from_elsewhere_run_dry_and_do_not_lock_out_who_signed_in_before(house: House) -> None:
    await house.set_up()
    tries = await tries_of(lambda number: house.sign_in(password="a guess of mine", visitor=from_address(number)))
    assert tries == 20, "of one account, from wherever"
    with pytest.raises(TooMany):
        await house.sign_in(visitor=from_address(250))
    await house.sign_in(visitor=HOME)
    await house.clock.advance(3_600 / 20)
    await house.sign_in(visitor=from_address(250))
    for _ in range(9):
        await refused(house.sign_in(password="a guess of mine", visitor=from_address(250)))


async def test_an_unknown_person_runs_dry_alike(house: House) -> None:
    assert await tries_of(lambda number: house.sign_in("nobody@example.com", visitor=from_address(number))) == 20
    with pytest.raises(TooMany) as refusal:
        await house.sign_in("nobody@example.com", visitor=from_address(250))
    assert refusal.value.retry_after_seconds == 180


async def test_one_address_may_try_so_many_accounts(house: House) -> None:
    await house.set_up()
    assert await tries_of(lambda number: house.sign_in(f"person{number}@example.com", visitor=AWAY)) == 30
    with pytest.raises(TooMany):
        await house.sign_in(visitor=AWAY)
    await house.sign_in(visitor=HOME)


async def test_at_home_one_may_try_so_often_too(house: House) -> None:
    await house.set_up()
    for _ in range(10):
        await refused(house.sign_in(password="a guess of mine"))
    with pytest.raises(TooMany):
        await house.sign_in()
    await house.clock.advance(90)
    for _ in range(30):
        await house.sign_in()  # what succeeds costs nothing


async def test_tries_at_once_are_counted_before_they_are_compared(house: House) -> None:
    await house.set_up()
    guesses = [house.sign_in(password=f"a guess of mine {number}", visitor=AWAY) for number in range(60)]
    results = await asyncio.gather(*guesses, return_exceptions=True)
    assert [type(result).__name__ for result in results].count("Unauthorized") == 20
