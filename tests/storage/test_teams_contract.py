"""Teams, who is in them, invitations and identities on both databases, also when two people act at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from sqlalchemy import Connection, insert, select, update
from tests.storage.samples import DAY, OTHER_TEAM_ID, a_job, an_id
from tests.support.clock import wait_until
from tests.support.people import AWAY, HOME, ISSUER, NOON, PASSWORD, ROUNDS, House, house_over

from zerocron.actions.one_time_links import HOUR_MS, new_link
from zerocron.actions.sign_ins import Opened
from zerocron.actions.team_limits import TeamLimits, note_defaults
from zerocron.actions.teams import LAST_OWNER, TEAMS_A_PERSON_MAX, Teams
from zerocron.channels.contract import Accepted, Again, Delivery, Refused, Ways
from zerocron.channels.letters import Letter
from zerocron.core.access import PERMISSIONS, Actor, Bearer, Role
from zerocron.core.errors import Conflict, Forbidden, NotFound, ZerocronError
from zerocron.core.model import DEFAULT_TEAM_ID, JobStatus
from zerocron.core.people import Method
from zerocron.core.team_limits import NO_LIMITS, Limits
from zerocron.core.tokens import digest
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import identities as identity_rows
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import limits as limit_rows
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import sign_ins as sign_in_rows
from zerocron.storage.ledger import teams as team_rows
from zerocron.storage.ledger.audit import Subject
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.one_time_links import Link, LinkKind
from zerocron.storage.ledger.people import Person
from zerocron.storage.ledger.people_tables import one_time_links
from zerocron.storage.ledger.tables import api_keys, jobs
from zerocron.storage.ledger.tables import teams as team_table
from zerocron.storage.ledger.teams import Team


def teams_of(house: House) -> Teams:
    """The verbs, as far as they need nothing of what a team has."""
    return Teams(
        ledger=house.ledger,
        clock=house.clock,
        entrance=house.entrance,
        limits=NO_LIMITS,
        belongings=cast(Any, None),
        keys=cast(Any, None),
    )


def bearer_of(person: Person, role: Role, team_id: str = DEFAULT_TEAM_ID) -> Bearer:
    """Who has signed in to look at that team."""
    return Bearer(
        team_id=team_id,
        actor=Actor("person", person.id, person.name),
        permissions=PERMISSIONS[role],
        person_id=person.id,
        sign_in_id=an_id(),
    )


def names_of(results: list[Any]) -> list[str]:
    return sorted(type(result).__name__ for result in results)


def invitation(connection: Connection, email: str = "bob@example.com", **given: Any) -> Link:
    fields: dict[str, Any] = {"team_id": DEFAULT_TEAM_ID, "email": email, "role": "editor"}
    return new_link(connection, LinkKind.INVITATION, given.pop("now", NOON), **fields | given)[0]


async def at_once(house: House, *acts: Callable[[Connection], object]) -> list[Any]:
    return await asyncio.gather(*(house.ledger.write(act) for act in acts), return_exceptions=True)


# teams


async def test_a_team_is_made_renamed_and_deleted(house: House) -> None:
    team = Team(an_id(), "Équipe 'ops' \u2603", NOON)

    def begin(connection: Connection) -> None:
        team_rows.insert(connection, team)
        team_rows.rename(connection, team.id, "Operations")
        assert team_rows.get(connection, team.id, lock=True) == dataclasses.replace(team, name="Operations")
        assert people_rows.team_name(connection, team.id) == "Operations"

    await house.ledger.write(begin)
    bob = await house.person("bob@example.com", team_id=team.id)
    opened = await house.sign_in("bob@example.com")
    key = {"id": "k" * 12, "team_id": team.id, "name": "deploy", "secret_hash": "h" * 64, "created_at": NOON}

    def end(connection: Connection) -> int:
        connection.execute(insert(api_keys), key)
        invitation(connection, team_id=team.id)
        return team_rows.delete(connection, team.id, NOON + 1)

    assert await house.ledger.write(end) == 1
    assert await house.ledger.write(lambda c: team_rows.delete(c, team.id, NOON + 2)) == 0, "it is revoked once"

    def look(connection: Connection) -> None:
        assert team_rows.get(connection, team.id) is None
        assert people_rows.team_name(connection, team.id) is None
        assert people_rows.memberships(connection, bob.id) == []
        assert team_rows.count_invitations(connection, team.id, NOON) == 0
        known = sign_in_rows.find(connection, digest(opened.token))
        assert known is not None
        assert (known.role, known.sign_in.ended_at) == (None, NOON + 1)
        assert team.id not in dict(limit_rows.teams_named(connection))

    await house.ledger.read(look)


async def test_a_deleted_team_is_unfinished_while_it_has_something(house: House) -> None:
    job = a_job(team_id=OTHER_TEAM_ID)

    def begin(connection: Connection) -> str | None:
        people_rows.hold_team(connection, OTHER_TEAM_ID, "Other", NOON)
        job_rows.insert(connection, job)
        return team_rows.unfinished(connection)

    assert await house.ledger.write(begin) is None, "it is not deleted"
    await house.ledger.write(lambda c: team_rows.delete(c, OTHER_TEAM_ID, NOON))
    assert await house.ledger.read(team_rows.unfinished) == OTHER_TEAM_ID
    gone = update(jobs).where(jobs.c.id == job.id).values(status=str(JobStatus.DELETED), next_run_at=None)
    await house.ledger.write(lambda c: c.execute(gone))
    assert await house.ledger.read(team_rows.unfinished) is None


async def test_a_person_who_makes_teams_at_once_is_in_no_more_than_one_may_be(house: House) -> None:
    ada = await house.person("ada@example.com", role=Role.OWNER)
    teams = teams_of(house)
    bearer = bearer_of(ada, Role.OWNER)
    for number in range(TEAMS_A_PERSON_MAX - 3):
        await teams.create(bearer, f"team {number}")
    results = await asyncio.gather(*(teams.create(bearer, "one more") for _ in range(6)), return_exceptions=True)
    assert names_of(results) == ["Conflict"] * 4 + ["tuple"] * 2
    assert len(await teams.of_bearer(bearer)) == TEAMS_A_PERSON_MAX


# members


async def test_members_are_listed_in_the_order_in_which_they_came(house: House) -> None:
    people = [await house.person(f"p{number}@example.com") for number in range(5)]
    house.clock.set(NOON + 1)
    people.append(await house.person("late@example.com", role=Role.VIEWER))
    await house.person("elsewhere@example.com", team_id=OTHER_TEAM_ID)
    await house.sign_in("late@example.com")

    def look(connection: Connection) -> list[Any]:
        first = team_rows.page_of_members(connection, DEFAULT_TEAM_ID, after=None, limit=4)
        after = (first[-1].joined_at, first[-1].person_id)
        return first + team_rows.page_of_members(connection, DEFAULT_TEAM_ID, after=after, limit=10)

    found = await house.ledger.read(look)
    assert [one.person_id for one in found] == [*sorted(person.id for person in people[:5]), people[5].id]
    assert [one.last_seen_at for one in found] == [None] * 5 + [NOON + 1]
    assert {one.has_totp for one in found} == {False}, "a bool on both databases"
    assert found[-1].role is Role.VIEWER
    now = house.clock.now()
    await house.ledger.write(lambda c: people_rows.change(c, people[0].id, now, totp_confirmed_at=now))
    assert next(one for one in await house.ledger.read(look) if one.person_id == people[0].id).has_totp is True


async def test_roles_are_asked_for_counted_and_changed(house: House) -> None:
    ada, bob = [await house.person(f"{name}@example.com", role=Role.OWNER) for name in ("ada", "bob")]

    def change(connection: Connection) -> None:
        assert team_rows.role_of(connection, DEFAULT_TEAM_ID, ada.id) is Role.OWNER
        assert team_rows.role_of(connection, OTHER_TEAM_ID, ada.id) is None
        assert team_rows.count_members(connection, DEFAULT_TEAM_ID, Role.OWNER) == 2
        team_rows.set_role(connection, DEFAULT_TEAM_ID, bob.id, Role.VIEWER)
        assert team_rows.count_members(connection, DEFAULT_TEAM_ID, Role.OWNER) == 1
        assert team_rows.count_members(connection, DEFAULT_TEAM_ID) == 2
        assert not people_rows.add_membership(connection, DEFAULT_TEAM_ID, bob.id, Role.OWNER, NOON)
        assert team_rows.role_of(connection, DEFAULT_TEAM_ID, bob.id) is Role.VIEWER

    await house.ledger.write(change)


async def test_who_is_taken_out_is_signed_out_of_this_team_alone(house: House) -> None:
    bob = await house.person("bob@example.com")
    here = await house.sign_in("bob@example.com")
    await house.ledger.write(lambda c: people_rows.hold_team(c, OTHER_TEAM_ID, "Other", NOON))
    await house.ledger.write(lambda c: people_rows.add_membership(c, OTHER_TEAM_ID, bob.id, Role.VIEWER, NOON))
    there = await house.sign_in("bob@example.com")
    await house.sign_ins.look_at(there.session.bearer, OTHER_TEAM_ID)
    await house.ledger.write(lambda c: team_rows.remove_member(c, DEFAULT_TEAM_ID, bob.id, NOON + 5))

    def ended(opened: Opened) -> Any:
        return lambda c: sign_in_rows.get(c, opened.session.bearer.sign_in_id or "").ended_at  # type: ignore[union-attr]

    assert [await house.ledger.read(ended(one)) for one in (here, there)] == [NOON + 5, None]


@pytest.mark.parametrize("act", ["leave", "take each other out", "make each other a viewer"])
async def test_of_two_owners_who_go_at_once_one_stays(house: House, ledger: Ledger, act: str) -> None:
    async with house_over(ledger, clock=house.clock) as other:
        nodes = [teams_of(house), teams_of(other)]
        for number in range(ROUNDS):
            team_id = an_id()
            people = [
                await house.person(f"{name}{number}@example.com", team_id=team_id, role=Role.OWNER) for name in "ab"
            ]
            bearers = [bearer_of(person, Role.OWNER, team_id) for person in people]
            acts: list[Awaitable[None]]
            if act == "leave":
                acts = [node.leave(bearer) for node, bearer in zip(nodes, bearers, strict=True)]
            elif act == "take each other out":
                acts = [nodes[0].remove(bearers[0], people[1].id), nodes[1].remove(bearers[1], people[0].id)]
            else:
                acts = [
                    nodes[0].set_role(bearers[0], people[1].id, Role.VIEWER),
                    nodes[1].set_role(bearers[1], people[0].id, Role.VIEWER),
                ]
            results = await asyncio.gather(*acts, return_exceptions=True)
            refused = [result for result in results if isinstance(result, ZerocronError)]
            assert len(refused) == 1, results
            assert isinstance(refused[0], (Conflict, Forbidden)), refused
            if act == "leave":
                assert refused[0].message == LAST_OWNER

            def owners(connection: Connection, team_id: str = team_id) -> int:
                return team_rows.count_members(connection, team_id, Role.OWNER)

            assert await ledger.read(owners) == 1


# invitations


async def test_invitations_are_listed_newest_first_with_who_invited(house: House) -> None:
    ada = await house.person("ada@example.com", role=Role.OWNER)

    def begin(connection: Connection) -> list[Link]:
        made = [invitation(connection, f"p{number}@example.com", now=NOON + number // 2) for number in range(5)]
        made.append(invitation(connection, "q@example.com", now=NOON + 9, created_by=ada.id, role="viewer"))
        invitation(connection, team_id=OTHER_TEAM_ID)
        invitation(connection, "old@example.com", now=NOON - 8 * DAY)
        new_link(connection, LinkKind.RESET, NOON, team_id=DEFAULT_TEAM_ID, email="r@example.com", role="editor")
        return made

    made = await house.ledger.write(begin)

    def look(connection: Connection) -> list[Any]:
        first = team_rows.page_of_invitations(connection, DEFAULT_TEAM_ID, NOON + 9, before=None, limit=3)
        before = (first[-1].created_at, first[-1].id)
        rest = team_rows.page_of_invitations(connection, DEFAULT_TEAM_ID, NOON + 9, before=before, limit=10)
        assert team_rows.count_invitations(connection, DEFAULT_TEAM_ID, NOON + 9) == 6
        return first + rest

    found = await house.ledger.read(look)
    assert [one.id for one in found] == [
        link.id for link in sorted(made, key=lambda one: (one.created_at, one.id), reverse=True)
    ]
    assert [one.invited_by for one in found] == [ada.name, *[None] * 5], "a key has no name, and is listed all the same"
    assert (found[0].role, found[1].role) == (Role.VIEWER, Role.EDITOR)


async def test_an_invitation_is_withdrawn_by_its_id_or_its_address(house: House) -> None:
    def act(connection: Connection) -> None:
        bob, eve, other = (
            invitation(connection),
            invitation(connection, "eve@example.com"),
            invitation(connection, team_id=OTHER_TEAM_ID),
        )
        invitation(connection)

        def withdraw(**what: str) -> str | None:
            return team_rows.withdraw_invitation(connection, DEFAULT_TEAM_ID, NOON + 1, **what)

        assert withdraw(link_id=other.id) is None, "it is another team's"
        assert withdraw(email="nobody@example.com") is None
        assert withdraw(link_id=eve.id) == "eve@example.com"
        assert withdraw(link_id=eve.id) is None
        assert withdraw(email="bob@example.com") == "bob@example.com"
        assert team_rows.count_invitations(connection, DEFAULT_TEAM_ID, NOON + 1) == 0, "both to the address"
        assert link_rows.find(connection, LinkKind.INVITATION, bob.token_hash, NOON + 1) is None
        assert link_rows.find(connection, LinkKind.INVITATION, other.token_hash, NOON + 1) == other
        assert [one.id for one in link_rows.invitations_of(connection, "bob@example.com", NOON + 1)] == [other.id]

    await house.ledger.write(act)


async def test_links_are_good_until_they_are_used_withdrawn_or_old(house: House) -> None:
    ada = await house.person("ada@example.com")

    def act(connection: Connection) -> None:
        link, _ = new_link(connection, LinkKind.RESET, NOON, person_id=ada.id)
        of_nobody, _ = new_link(connection, LinkKind.RESET, NOON)
        assert link_rows.find(connection, LinkKind.SETUP, link.token_hash, NOON) is None
        assert link_rows.find(connection, LinkKind.RESET, link.token_hash, NOON + HOUR_MS) is None
        assert link_rows.withdraw(connection, LinkKind.RESET, NOON, person_id=ada.id) == 1
        assert link_rows.withdraw(connection, LinkKind.RESET, NOON) == 1, "of everybody: the one that is left"
        assert not link_rows.is_good(connection, link.id, NOON)
        assert not link_rows.use(connection, link.id, NOON)
        assert not link_rows.use(connection, of_nobody.id, NOON)
        again, _ = new_link(connection, LinkKind.RESET, NOON)
        assert link_rows.is_good(connection, again.id, NOON + HOUR_MS - 1)
        assert not link_rows.is_good(connection, again.id, NOON + HOUR_MS)
        assert link_rows.use(connection, again.id, NOON + 1)
        assert not link_rows.is_good(connection, again.id, NOON + 1)
        link_rows.forget(connection, NOON + 1)
        assert link_rows.find(connection, LinkKind.RESET, again.token_hash, NOON) is None
        link_rows.forget(connection, NOON + 2)
        assert connection.scalar(select(one_time_links.c.id)) is None

    await house.ledger.write(act)


async def test_two_invitations_to_one_address_at_once_leave_one(house: House, ledger: Ledger) -> None:
    ada = await house.person("ada@example.com", role=Role.OWNER)
    async with house_over(ledger, clock=house.clock) as other:
        for number in range(ROUNDS):
            email = f"bob{number}@example.com"
            bearer = bearer_of(ada, Role.OWNER)
            made = await asyncio.gather(*(teams_of(node).invite(bearer, email, Role.EDITOR) for node in (house, other)))
            open_ = await ledger.read(
                lambda c, email=email: link_rows.invitations_of(c, email, NOON)  # type: ignore[misc]
            )
            assert len(open_) == 1
            assert open_[0].id in {one.invited.id for one in made}


async def test_one_request_that_two_nodes_get_at_once_makes_one_invitation_and_one_team(
    house: House, ledger: Ledger
) -> None:
    ada = await house.person("ada@example.com", role=Role.OWNER)
    bearer = bearer_of(ada, Role.OWNER)
    async with house_over(ledger, clock=house.clock) as other:
        for number in range(ROUNDS):
            invited = await asyncio.gather(
                *(
                    teams_of(node).invite(bearer, f"bob{number}@example.com", Role.EDITOR, f"key {number}")
                    for node in (house, other)
                ),
                return_exceptions=True,
            )
            assert names_of(invited) == ["Conflict", "Invitation"], "a link is shown only once"
            made = await asyncio.gather(
                *(teams_of(node).create(bearer, "Team", f"key {number}") for node in (house, other))
            )
            assert len({team.id for team, _, _ in made}) == 1
            assert sorted(is_new for _, _, is_new in made) == [False, True]


async def test_an_invitation_that_no_mail_took_is_shown_and_tried_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted: list[Letter] = []

    async def post(letter: Letter, _ways: Ways) -> Delivery:
        posted.append(letter)
        return Again("421 busy") if len(posted) in (1, 2) else Accepted()

    monkeypatch.setattr("zerocron.actions.mailing.post", post)
    async with house_over(ledger, mail=True) as house:
        ada = await house.person("ada@example.com", role=Role.OWNER)
        made = await teams_of(house).invite(bearer_of(ada, Role.OWNER), "bob@example.com", Role.EDITOR, "a form")
        assert made.path is not None
        assert made.path in posted[0].text
        with pytest.raises(Conflict, match="may be on its way"):
            await teams_of(house).invite(bearer_of(ada, Role.OWNER), "bob@example.com", Role.EDITOR, "a form")
        await house.clock.advance(15)
        await wait_until(lambda: len(posted) == 2 and house.entrance.mailing.waiting, "the second attempt")
        await house.clock.advance(60)
        await wait_until(lambda: len(posted) == 3 and not house.entrance.mailing.under_way, "the third attempt")
        await house.clock.advance(3_600)
        assert posted == [posted[0]] * 3
        taken = await teams_of(house).invite(bearer_of(ada, Role.OWNER), "eve@example.com", Role.EDITOR, "another")
        again = await teams_of(house).invite(bearer_of(ada, Role.OWNER), "eve@example.com", Role.EDITOR, "another")
        assert (taken.path, taken.is_new) == (None, True)
        assert (again.invited, again.path, again.is_new) == (taken.invited, None, False)
        assert len(posted) == 4


async def test_an_invitation_is_not_said_to_be_mailed_by_who_does_not_know(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its letter was refused, or its node was killed while it sent it."""

    async def refuse(_letter: Letter, _ways: Ways) -> Delivery:
        return Refused("550 no such user")

    async def die(_letter: Letter, _ways: Ways) -> Delivery:
        raise asyncio.CancelledError

    async with house_over(ledger, mail=True) as house:
        ada = bearer_of(await house.person("ada@example.com", role=Role.OWNER), Role.OWNER)
        for name, post in (("refused", refuse), ("killed", die)):
            monkeypatch.setattr("zerocron.actions.mailing.post", post)
            with contextlib.suppress(asyncio.CancelledError):
                shown = await teams_of(house).invite(ada, f"{name}@example.com", Role.EDITOR, name)
                assert shown.path is not None
            with pytest.raises(Conflict) as caught:
                await teams_of(house).invite(ada, f"{name}@example.com", Role.EDITOR, name)
            assert caught.value.code == "mail_not_known"


async def test_who_accepts_two_invitations_at_once_has_one_account_and_loses_no_link(
    house: House, ledger: Ledger
) -> None:
    """Of two teams, in two browser tabs: one makes the account, the other is good for it afterwards."""
    await house.ledger.write(lambda c: people_rows.hold_team(c, DEFAULT_TEAM_ID, "One", NOON))
    await house.ledger.write(lambda c: people_rows.hold_team(c, OTHER_TEAM_ID, "Two", NOON))
    async with house_over(ledger, clock=house.clock) as other:
        for number in range(ROUNDS // 2):
            email = f"bob{number}@example.com"
            tokens = [
                await house.link(LinkKind.INVITATION, team_id=team_id, email=email, role="editor")
                for team_id in (DEFAULT_TEAM_ID, OTHER_TEAM_ID)
            ]

            def accept(node: House, token: str) -> Awaitable[object]:
                return node.entrance.invitations.accept(token, name="Bob", password=PASSWORD, code=None, visitor=HOME)

            results = await asyncio.gather(accept(house, tokens[0]), accept(other, tokens[1]), return_exceptions=True)
            left = [token for token, result in zip(tokens, results, strict=True) if isinstance(result, ZerocronError)]
            assert len(left) <= 1, results
            for token in left:
                await accept(house, token)

            def teams(connection: Connection, email: str = email) -> int:
                person = people_rows.find(connection, email)
                return 0 if person is None else len(people_rows.memberships(connection, person.id))

            assert await ledger.read(teams) == 2


# limits


async def test_the_operator_sees_every_team_with_what_it_may_have(house: House) -> None:
    verbs = TeamLimits(ledger=house.ledger, clock=house.clock, defaults=Limits(jobs_max=7))

    def begin(connection: Connection) -> None:
        for team_id, name in ((DEFAULT_TEAM_ID, "b"), (OTHER_TEAM_ID, "a")):
            people_rows.hold_team(connection, team_id, name, NOON)
            team_rows.rename(connection, team_id, name)
        job_rows.insert(connection, a_job())

    await house.ledger.write(begin)
    changed = await verbs.change("b", {"jobs_max": 0, "history_bytes_max": 10**15})
    assert changed.own == Limits(0, None, 10**15)
    assert (changed.limits, changed.usage.jobs) == (Limits(None, None, 10**15), 1)
    assert [(one.name, one.limits.jobs_max, one.usage.jobs) for one in await verbs.all()] == [
        ("a", 7, 0),
        ("b", None, 1),
    ]
    with pytest.raises(NotFound):
        await verbs.change("c", {"jobs_max": 1})


async def test_what_the_server_was_told_counts_before_what_a_command_was_told(house: House) -> None:
    verbs = TeamLimits(ledger=house.ledger, clock=house.clock, defaults=Limits(jobs_max=7))

    async def limits() -> Limits:
        return (await verbs.all())[0].limits

    assert await limits() == Limits(jobs_max=7)
    for told in (Limits(5, None, 10**15), NO_LIMITS, NO_LIMITS, Limits(jobs_max=9)):
        await note_defaults(house.ledger, told)
        assert await limits() == told


# identities


async def test_an_identity_is_one_persons_whoever_asks_for_it_later(house: House) -> None:
    ada, bob = await house.person("ada@example.com"), await house.person("bob@example.com")

    def bind(person: Person, subject: str, issuer: str = ISSUER) -> Callable[[Connection], bool]:
        return lambda connection: identity_rows.bind(connection, issuer, subject, person.id, NOON)

    acts = (bind(ada, "17"), bind(bob, "17"), bind(bob, "17", "https://other.example.com"), bind(bob, "18"))
    assert [await house.ledger.write(act) for act in acts] == [True, False, True, True]

    def look(connection: Connection) -> list[str | None]:
        return [
            identity_rows.find(connection, issuer, subject)
            for issuer, subject in (
                (ISSUER, "17"),
                ("https://other.example.com", "17"),
                (ISSUER, "18"),
                (ISSUER, "19"),
                (ISSUER.upper(), "17"),
            )
        ]

    assert await house.ledger.read(look) == [ada.id, bob.id, bob.id, None, None], "upper case is another one"
    for number in range(ROUNDS):
        subject = f"new {number}"
        assert sorted(await at_once(house, bind(ada, subject), bind(bob, subject))) == [False, True]
        owner = await house.ledger.read(
            lambda c, subject=subject: identity_rows.find(c, ISSUER, subject)  # type: ignore[misc]
        )
        assert owner in {ada.id, bob.id}


async def test_identities_are_listed_oldest_first_and_removed_by_who_has_them(house: House) -> None:
    ada, bob = await house.person("ada@example.com"), await house.person("bob@example.com")

    def act(connection: Connection) -> None:
        for number, subject in enumerate(("b", "a", "c")):
            assert identity_rows.bind(connection, ISSUER, subject, ada.id, NOON + number // 2)
        mine = identity_rows.of_person(connection, ada.id)
        assert [(one.issuer, one.subject, one.created_at) for one in mine] == [
            (ISSUER, "a", NOON),
            (ISSUER, "b", NOON),
            (ISSUER, "c", NOON + 1),
        ]
        assert identity_rows.of_person(connection, bob.id) == []
        assert not identity_rows.remove(connection, bob.id, mine[0])
        assert identity_rows.remove(connection, ada.id, mine[0])
        assert not identity_rows.remove(connection, ada.id, mine[0])
        assert identity_rows.of_person(connection, ada.id) == mine[1:]

    await house.ledger.write(act)


# people, sign-ins, the audit log


async def test_an_address_is_one_persons_also_of_two_at_once(house: House) -> None:
    template = await house.person("ada@example.com")
    for number in range(ROUNDS):
        email = f"new{number}@example.com"
        both = [dataclasses.replace(template, id=an_id(), email=email) for _ in range(2)]
        results = await at_once(house, *(lambda c, person=person: people_rows.insert(c, person) for person in both))
        assert sorted(results) == [False, True]


async def test_what_works_once_works_once_also_for_two_at_once(house: House) -> None:
    ada = await house.person("ada@example.com")
    for number in range(1, ROUNDS):
        code = f"{number:064d}"
        await house.ledger.write(
            lambda c, code=code: people_rows.replace_recovery_codes(c, ada.id, [code, code[::-1]])  # type: ignore[misc]
        )
        link = await house.ledger.write(lambda c: new_link(c, LinkKind.RESET, NOON)[0])
        for act in (
            lambda c, code=code: people_rows.use_recovery_code(c, ada.id, code, NOON),
            lambda c, number=number: people_rows.use_totp_step(c, ada.id, number),
            lambda c, link=link: link_rows.use(c, link.id, NOON),
        ):
            assert sorted(await at_once(house, act, act)) == [False, True]


async def test_a_person_is_held_while_somebody_changes_them(house: House) -> None:
    """Each adds a letter to what they saw; nobody's is lost."""
    ada = await house.person("ada@example.com")

    def add(connection: Connection) -> None:
        person = people_rows.hold(connection, ada.id)
        assert person is not None
        people_rows.change(connection, person.id, NOON, name=person.name + "x")

    await at_once(house, *[add] * 8)
    assert (await house.get(ada.id)).name == ada.name + "x" * 8
    assert await house.ledger.write(lambda c: people_rows.hold(c, an_id())) is None
    assert await house.ledger.read(people_rows.is_anybody_there) is True


async def test_sign_ins_are_found_ended_and_remember_when_and_where(house: House) -> None:
    bob = await house.person("bob@example.com")
    opened = [await house.sign_in("bob@example.com", visitor=visitor) for visitor in (HOME, HOME, AWAY)]
    ids = [one.session.bearer.sign_in_id or "" for one in opened]

    def act(connection: Connection) -> None:
        assert sorted(sign_in_rows.addresses(connection, bob.id)) == sorted([HOME.address, AWAY.address])
        assert sign_in_rows.last_team(connection, bob.id) == DEFAULT_TEAM_ID
        assert sign_in_rows.last_team(connection, an_id()) is None
        sign_in_rows.save_last_seen(connection, {ids[0]: NOON + 5, ids[1]: NOON - 5, "nobody": NOON})
        seen = [one.last_seen_at for each in ids if (one := sign_in_rows.get(connection, each)) is not None]
        assert seen == [NOON + 5, NOON, NOON], "it only ever becomes later"
        assert sign_in_rows.elevate(connection, ids[0], "t" * 64, NOON + 9)
        assert sign_in_rows.find(connection, digest(opened[0].token)) is None
        assert sign_in_rows.look_at(connection, ids[0], OTHER_TEAM_ID)
        assert not sign_in_rows.end(connection, an_id(), ids[0], NOON), "it is somebody else's"
        assert sign_in_rows.end(connection, bob.id, ids[0], NOON)
        assert not sign_in_rows.end(connection, bob.id, ids[0], NOON)
        assert not sign_in_rows.elevate(connection, ids[0], "u" * 64, NOON + 9)
        assert not sign_in_rows.look_at(connection, ids[0], OTHER_TEAM_ID)
        assert sign_in_rows.end_all(connection, bob.id, NOON, but=ids[2]) == 1
        rest = sign_in_rows.open_of(connection, bob.id, now=NOON, idle_since=NOON - 1, before=None, limit=9)
        assert [one.id for one in rest] == [ids[2]]
        assert rest[0].method == str(Method.PASSWORD)

    await house.ledger.write(act)


async def test_what_is_done_to_a_thing_of_a_team_is_recorded_by_its_kind(house: House) -> None:
    job = a_job(name="nightly")

    def act(connection: Connection) -> list[Any]:
        audit.record_of(connection, "job", job, "pause", Actor("key", "k1", "deploy"), NOON, after={"on": True})
        audit.record(
            connection, team_id=None, at=NOON, by=Actor("key", "k1", "x"), action="a.b", subject=Subject("s", "i", "n")
        )
        return audit.page(connection, DEFAULT_TEAM_ID, before=None, limit=9)

    (entry,) = await house.ledger.write(act)
    assert (entry.action, entry.subject_kind, entry.subject_id, entry.subject_name) == (
        "job.pause",
        "job",
        job.id,
        "nightly",
    )
    assert (entry.before, entry.after) == (None, {"on": True})


async def test_the_first_team_is_made_once_by_many_at_once(house: House) -> None:
    results = await at_once(house, *[lambda c: people_rows.hold_team(c, DEFAULT_TEAM_ID, "Team", NOON)] * 5)
    assert results == [None] * 5
    assert await house.ledger.read(lambda c: len(c.execute(select(team_table.c.id)).all())) == 1
