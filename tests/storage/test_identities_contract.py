"""Linking and taking off who one is at an issuer, on both databases, also when two do it at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from sqlalchemy import Connection
from tests.storage.samples import OTHER_TEAM_ID
from tests.support.people import HOME, ISSUER, ROUNDS, House, house_over

from zerocron.actions.identities import IDENTITIES_MAX, Identities
from zerocron.core.access import Bearer, Role
from zerocron.core.errors import Conflict
from zerocron.core.people import Method
from zerocron.core.single_sign_on import Refusal, SignInRefused
from zerocron.storage.ledger import identities as identity_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import sign_ins as sign_in_rows
from zerocron.storage.ledger.database import Ledger


def identities_of(house: House, issuer: str | None = ISSUER) -> Identities:
    return Identities(ledger=house.ledger, clock=house.clock, sign_ins=house.sign_ins, issuer_url=issuer)


async def somebody(house: House, name: str, *, password: bool = False, method: Method = Method.OIDC) -> Bearer:
    """A person who has signed in, by an issuer unless told otherwise."""
    person = await house.person(f"{name}@example.com", team_id=OTHER_TEAM_ID, role=Role.VIEWER)
    if not password:
        now = house.clock.now()
        await house.ledger.write(lambda c: people_rows.change(c, person.id, now, password_hash=None))

    def open_one(connection: Connection) -> Bearer:
        current = people_rows.get(connection, person.id)
        assert current is not None
        return house.sign_ins.open(connection, current, method, HOME, house.clock.now()).session.bearer

    return await house.ledger.write(open_one)


def link(house: House, bearer: Bearer, subject: str) -> Awaitable[None]:
    now = house.clock.now()
    return house.ledger.write(lambda c: identities_of(house).link(c, bearer, ISSUER, subject, now))


async def refusals(*acts: Awaitable[None]) -> list[Refusal]:
    """Of acts at once; what is no refusal is raised."""
    found = await asyncio.gather(*acts, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, SignInRefused):
            raise each
    return [each.refusal for each in found if isinstance(each, SignInRefused)]


async def test_of_two_people_who_link_one_identity_at_once_one_has_it(house: House) -> None:
    ada, bob = await somebody(house, "ada"), await somebody(house, "bob")
    for number in range(ROUNDS):
        subject = f"shared {number}" if number < IDENTITIES_MAX // 2 else "shared 0"
        assert await refusals(link(house, ada, subject), link(house, bob, subject)) == [Refusal.TAKEN]
    owners = [len(await identities_of(house).mine(each)) for each in (ada, bob)]
    assert sum(owners) == IDENTITIES_MAX // 2


async def test_a_person_who_links_many_at_once_has_no_more_than_one_may(house: House) -> None:
    ada = await somebody(house, "ada")
    acts = [link(house, ada, f"me {number}") for number in range(IDENTITIES_MAX + 3)]
    assert await refusals(*acts) == [Refusal.TOO_MANY_LINKED] * 3
    assert len(await identities_of(house).mine(ada)) == IDENTITIES_MAX


async def test_of_two_that_are_taken_off_at_once_the_last_way_in_stays(house: House, ledger: Ledger) -> None:
    async with house_over(ledger, clock=house.clock) as other:
        for number in range(ROUNDS // 2):
            ada = await somebody(house, f"ada{number}")
            for subject in ("a", "b"):
                await link(house, ada, f"{subject}{number}")
            mine = await identities_of(house).mine(ada)
            assert [one.is_last_way_in for one in mine] == [False, False]
            results = await asyncio.gather(
                *(identities_of(node).remove(ada, one.id) for node, one in zip((house, other), mine, strict=True)),
                return_exceptions=True,
            )
            assert sorted(type(result).__name__ for result in results) == ["Conflict", "NoneType"]
            [left] = await identities_of(house).mine(ada)
            assert left.is_last_way_in


async def test_what_else_one_comes_in_by_lets_the_last_identity_go(house: House) -> None:
    for name, options in (("ada", {"password": True}), ("bob", {"method": Method.TRUSTED_HEADER})):
        bearer = await somebody(house, name, **options)
        await link(house, bearer, name)
        [one] = await identities_of(house).mine(bearer)
        assert not one.is_last_way_in
        await identities_of(house).remove(bearer, one.id)
        assert await identities_of(house).mine(bearer) == []


async def test_without_its_issuer_an_identity_is_no_way_in_and_stays_for_its_return(house: House) -> None:
    ada = await somebody(house, "ada")
    await link(house, ada, "a")
    await house.ledger.write(
        lambda c: identity_rows.bind(c, "https://old.example.com", "a", ada.person_id or "", house.clock.now())
    )
    mine = await identities_of(house, None).mine(ada)
    assert [(one.is_in_use, one.is_last_way_in) for one in mine] == [(False, True)] * 2
    with pytest.raises(Conflict):
        await identities_of(house, None).remove(ada, mine[0].id)
    assert [one.is_in_use for one in await identities_of(house).mine(ada)] == [True, False]


async def test_a_sign_in_that_ended_while_its_browser_was_at_the_issuer_links_nothing(house: House) -> None:
    ada = await somebody(house, "ada")
    assert ada.person_id is not None
    person_id = ada.person_id
    await house.ledger.write(lambda c: sign_in_rows.end_all(c, person_id, house.clock.now()))
    assert await refusals(link(house, ada, "thief")) == [Refusal.EXPIRED]
    assert await identities_of(house).mine(ada) == []
