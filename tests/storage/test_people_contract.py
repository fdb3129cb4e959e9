"""People on both databases: the first owner, second factors, lost passwords, invitations (D 48, 50, 51, 57)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from sqlalchemy import Connection, update
from tests.storage.samples import OTHER_TEAM_ID
from tests.support.clock import wait_until
from tests.support.people import AWAY, HOME, MASTER, PASSWORD, House, house_over

from zerocron.actions.mailing import AGAIN_AFTER_SECONDS
from zerocron.actions.one_time_links import HOUR_MS, new_reset_link
from zerocron.actions.secrets import NO_KEY, check_master_keys
from zerocron.actions.sign_ins import CODE_NEEDED, REFUSED, Opened, Visitor
from zerocron.channels.contract import Accepted, Again, Delivery, Refused, Ways
from zerocron.channels.letters import Letter
from zerocron.core.access import SERVER, Actor, Bearer, Permission, Role
from zerocron.core.errors import Conflict, Forbidden, Invalid, NotFound, TooMany, Unauthorized, Unavailable
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.sealing import Keyring, MasterKey
from zerocron.core.second_factor import STEP_MS
from zerocron.core.tokens import digest
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.one_time_links import LinkKind
from zerocron.storage.ledger.tables import teams

NEW_PASSWORD = "other words in a row"


async def fails(asked: Awaitable[object], kind: type[Exception], words: str = ".") -> Any:
    with pytest.raises(kind, match=words) as refusal:
        await asked
    return refusal.value


def person_id(opened: Opened) -> str:
    return opened.session.bearer.person_id or ""


# the first owner


async def test_there_is_nobody_until_the_first_owner_and_then_it_is_closed(house: House) -> None:
    assert await house.entrance.people.is_setup_open()
    tokens = [await house.setup_token(), await house.setup_token()]
    opened = await house.set_up(tokens[0])
    assert not await house.entrance.people.is_setup_open()
    assert (opened.session.role, opened.session.bearer.team_id) == (Role.OWNER, DEFAULT_TEAM_ID)
    for token in tokens:
        await fails(house.set_up(token, "eve@example.com"), NotFound, "does not work")
    await fails(house.setup_token(), Conflict, "has its owner already")
    assert ("setup.use", "person", HOME.address) in await house.audited()


async def test_once_somebody_is_there_however_they_came_a_set_up_link_makes_no_owner(house: House) -> None:
    token = await house.setup_token()
    await house.person("bob@example.com")
    await fails(house.set_up(token), NotFound, "does not work")


async def test_of_two_that_set_up_at_once_one_is_the_owner(house: House, ledger: Ledger) -> None:
    async with house_over(ledger, clock=house.clock) as other:
        tokens = [await house.setup_token(), await other.setup_token()]
        results = await asyncio.gather(
            house.set_up(tokens[0], "ada@example.com"),
            other.set_up(tokens[1], "eve@example.com"),
            return_exceptions=True,
        )
        assert sorted(type(result).__name__ for result in results) == ["NotFound", "Opened"]


async def test_a_set_up_link_works_for_an_hour_and_is_renewed(house: House) -> None:
    token = await house.setup_token()
    assert token not in await house.dump()
    assert digest(token) in await house.dump()
    house.clock.set(house.clock.now() + HOUR_MS)
    await fails(house.set_up(token), NotFound, "does not work")
    await fails(house.set_up("nonsense"), NotFound, "does not work")
    await fails(house.set_up(await house.link(LinkKind.RESET)), NotFound)
    await house.set_up(await house.setup_token())


async def test_what_the_first_owner_gives_is_checked_before_the_link_is_used(house: House) -> None:
    token = await house.setup_token()
    people_verbs = house.entrance.people
    good: dict[str, Any] = {
        "email": "ada@example.com",
        "name": "Ada",
        "password": PASSWORD,
        "language": "en",
        "timezone": "UTC",
        "visitor": HOME,
    }
    for field, value in (("email", "ada"), ("password", "password1"), ("timezone", "Europe/Pariss")):
        refusal = await fails(people_verbs.set_up(token, **{**good, field: value}), Invalid)
        assert [fault.field for fault in refusal.fields] == [field]
    await people_verbs.set_up(token, **good)


async def test_links_are_tried_a_bounded_number_of_times(house: House) -> None:
    for _ in range(30):
        await fails(house.set_up("x" * 43, visitor=AWAY), NotFound)
    token = await house.setup_token()
    await fails(house.set_up(token, visitor=AWAY), TooMany)
    await house.set_up(token, visitor=HOME)


# second factors


async def test_a_second_factor_counts_once_it_is_confirmed_and_its_seed_is_sealed(house: House) -> None:
    opened = await house.set_up()
    factors, bearer = house.entrance.second_factors, opened.session.bearer
    await fails(factors.confirm(bearer, "123456"), Conflict, "nothing|no second factor")
    await fails(factors.renew_recovery_codes(bearer), Conflict)
    await fails(factors.remove(bearer), NotFound)
    begun = await factors.begin(bearer)
    again = await factors.begin(bearer)
    await house.sign_in()  # it does not count yet
    await fails(factors.confirm(bearer, house.code(begun.secret)), Invalid, "wrong, or it was used")
    codes = await factors.confirm(bearer, house.code(again.secret))
    await fails(factors.begin(bearer), Conflict, "already")
    dump = await house.dump()
    for secret in (again.secret, *codes, *(code.replace("-", "") for code in codes)):
        assert secret not in dump
    refusal = await fails(house.sign_in(), Unauthorized)
    assert refusal.code == CODE_NEEDED
    house.clock.set(house.clock.now() + STEP_MS)
    await house.sign_in(code=house.code(again.secret))


async def test_a_code_works_once_in_its_step_or_the_next(house: House) -> None:
    seed, _ = await house.with_totp(await house.set_up())
    await fails(house.sign_in(code=house.code(seed)), Unauthorized, REFUSED)  # confirming it used it up
    house.clock.set(house.clock.now() + 3 * STEP_MS)
    await fails(house.sign_in(code=house.code(seed, +1)), Unauthorized)
    await fails(house.sign_in(code=house.code(seed, -2)), Unauthorized)
    late = house.code(seed, -1)
    await house.sign_in(code=late)
    await fails(house.sign_in(code=late), Unauthorized)
    await house.clock.advance(3_600)
    current = house.code(seed)
    results = await asyncio.gather(*(house.sign_in(code=current) for _ in range(2)), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Opened", "Unauthorized"]
    assert ("sign-in.refuse", "server", HOME.address) in await house.audited()


async def test_recovery_codes_work_once_each_until_there_are_new_ones(house: House) -> None:
    opened = await house.set_up()
    _, codes = await house.with_totp(opened)
    await house.sign_in(code=codes[0].upper())
    await fails(house.sign_in(code=codes[0]), Unauthorized)
    await house.clock.advance(3_600)
    again = await house.sign_in(code=codes[1])
    new = await house.entrance.second_factors.renew_recovery_codes(again.session.bearer)
    await fails(house.sign_in(code=codes[2]), Unauthorized)
    await house.sign_in(code=new[0])
    await house.entrance.second_factors.remove(again.session.bearer)
    await house.sign_in()


async def test_codes_may_be_guessed_five_times_an_hour(house: House) -> None:
    seed, codes = await house.with_totp(await house.set_up())
    house.clock.set(house.clock.now() + STEP_MS)
    for _ in range(5):
        await fails(house.sign_in(code="000000", visitor=AWAY), Unauthorized)
    await fails(house.sign_in(code=house.code(seed), visitor=AWAY), TooMany)
    await house.sign_in(code=codes[0], visitor=HOME)


async def test_a_code_proves_who_one_is_as_the_password_does(house: House) -> None:
    opened = await house.set_up()
    seed, _ = await house.with_totp(opened)
    house.clock.set(house.clock.now() + STEP_MS)
    code = house.code(seed)
    elevated = await house.sign_ins.elevate(opened.session.bearer, None, code)
    for _ in range(5):
        await fails(house.sign_ins.elevate(elevated.session.bearer, None, code), Unauthorized)
    await fails(house.sign_ins.elevate(elevated.session.bearer, None, code), TooMany)
    await house.sign_ins.elevate(elevated.session.bearer, PASSWORD, None)


async def test_without_a_master_key_there_are_no_second_factors(ledger: Ledger) -> None:
    async with house_over(ledger, keys=()) as house:
        opened = await house.set_up()
        await fails(house.entrance.second_factors.begin(opened.session.bearer), Conflict, NO_KEY[:30])


async def test_a_rotation_seals_second_factors_anew(house: House, ledger: Ledger) -> None:
    new = MasterKey(bytes(range(50, 82)))
    ada = await house.set_up()
    seed, _ = await house.with_totp(ada)
    before = await house.get(person_id(ada))
    async with house_over(ledger, clock=house.clock, keys=(new, MASTER)) as both:
        await both.secrets.rotate(by=SERVER)
    after = await house.get(person_id(ada))
    assert after.totp_data_key_id != before.totp_data_key_id
    assert before.totp_data_key_id is not None
    assert before.totp_data_key_id not in await house.dump()
    await check_master_keys(ledger, Keyring([new]), "")
    async with house_over(ledger, clock=house.clock, keys=(new,)) as only_new:
        only_new.clock.set(only_new.clock.now() + STEP_MS)
        await only_new.sign_in(code=only_new.code(seed))


async def test_a_seed_that_was_moved_to_another_person_does_not_open(house: House) -> None:
    seed, codes = await house.with_totp(await house.set_up())
    bob = await house.person("bob@example.com")
    ada = await house.ledger.read(lambda c: people_rows.find(c, "ada@example.com"))
    assert ada is not None
    stolen = {name: getattr(ada, name) for name in ("totp_sealed", "totp_data_key_id", "totp_confirmed_at")}
    await house.ledger.write(lambda c: people_rows.change(c, bob.id, 0, **stolen))
    house.clock.set(house.clock.now() + STEP_MS)
    await fails(house.sign_in("bob@example.com", code=house.code(seed)), Conflict, "damaged")
    await fails(house.secrets.rotate(by=SERVER), Conflict, "second factor of a person is damaged")
    await fails(house.sign_in("bob@example.com", code=codes[0]), Unauthorized)


async def test_a_key_has_no_second_factor_and_no_password(house: House) -> None:
    await house.set_up()
    key = Bearer(DEFAULT_TEAM_ID, Actor("key", "k", "a key"), frozenset(Permission), key_id="k")
    factors, verbs = house.entrance.second_factors, house.entrance.people
    for asked in (
        factors.begin(key),
        factors.confirm(key, "123456"),
        factors.remove(key),
        factors.renew_recovery_codes(key),
        verbs.edit(key, name="x", language=None, timezone=None),
        verbs.change_password(key, None, NEW_PASSWORD),
        house.sign_ins.end(key),
        house.sign_ins.end_others(key),
        house.sign_ins.elevate(key, PASSWORD, None),
        house.sign_ins.look_at(key, DEFAULT_TEAM_ID),
    ):
        await fails(asked, Forbidden, "an API key is none")


# passwords


async def test_a_password_is_changed_by_who_knows_it(house: House) -> None:
    opened = await house.set_up()
    bearer, verbs = opened.session.bearer, house.entrance.people
    for current, new, field in (
        ("another password", NEW_PASSWORD, "current_password"),
        (None, NEW_PASSWORD, "current_password"),
        (PASSWORD, "password1", "new_password"),
        (PASSWORD, "adalovelace", "new_password"),
    ):
        refusal = await fails(verbs.change_password(bearer, current, new), Invalid)
        assert [fault.field for fault in refusal.fields] == [field]
    await verbs.change_password(bearer, PASSWORD, NEW_PASSWORD)
    await fails(house.sign_in(), Unauthorized)
    await house.sign_in(password=NEW_PASSWORD)
    assert ("password.change", "person", HOME.address) in await house.audited()


async def test_who_has_no_password_yet_sets_one_without(house: House) -> None:
    opened = await house.set_up()
    await house.ledger.write(lambda c: people_rows.change(c, person_id(opened), 0, password_hash=None))
    await house.entrance.people.change_password(opened.session.bearer, None, NEW_PASSWORD)
    await house.sign_in(password=NEW_PASSWORD)


async def test_guessing_the_password_of_now_has_an_end(house: House) -> None:
    opened = await house.set_up()
    for _ in range(10):
        await fails(house.entrance.people.change_password(opened.session.bearer, "a guess", NEW_PASSWORD), Invalid)
    await fails(house.entrance.people.change_password(opened.session.bearer, PASSWORD, NEW_PASSWORD), TooMany)


async def test_what_a_person_says_of_themselves_is_edited_and_audited(house: House) -> None:
    opened = await house.set_up()
    edit = house.entrance.people.edit
    edited = await edit(opened.session.bearer, name="Ada", language="fr", timezone="Europe/Paris")
    assert (edited.name, edited.language, edited.timezone) == ("Ada", "fr", "Europe/Paris")
    assert (await house.sign_ins.recognise(opened.token)).actor.name == "Ada"
    await fails(edit(opened.session.bearer, name=None, language="de", timezone=None), Invalid, "en, fr, es")
    await edit(opened.session.bearer, name="Ada", language=None, timezone=None)
    assert [action for action, _, _ in await house.audited()].count("person.edit") == 1


# lost passwords


class Postbox:
    """Takes the letters that would be mailed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.letters: list[Letter] = []
        self.refusals: list[Delivery] = []
        """What is said to the next attempts instead of taking them."""
        monkeypatch.setattr("zerocron.actions.mailing.post", self._post)

    async def _post(self, letter: Letter, _ways: Ways) -> Delivery:
        self.letters.append(letter)
        return self.refusals.pop(0) if self.refusals else Accepted()

    def token(self) -> str:
        """That of the link in the newest letter."""
        [line] = [
            line for line in self.letters[-1].text.splitlines() if line.startswith("https://cron.example.com/reset/")
        ]
        return line.rpartition("/")[2]


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Postbox:
    return Postbox(monkeypatch)


@pytest.fixture
async def mailing(ledger: Ledger, postbox: Postbox) -> AsyncIterator[House]:
    async with house_over(ledger, mail=True) as it:
        yield it


async def ask(house: House, email: str = "ada@example.com") -> None:
    """Ask for a link, and let the letter be written, if one is."""
    await house.entrance.resets.ask(email, AWAY)
    await settled(house)


async def settled(house: House) -> None:
    await wait_until(lambda: not house.entrance.mailing.under_way, "the letters that are under way")


async def test_a_lost_password_is_replaced_by_a_link_that_was_mailed(mailing: House, postbox: Postbox) -> None:
    opened = await mailing.set_up()
    await mailing.ledger.write(lambda c: people_rows.change(c, person_id(opened), 0, language="fr"))
    await ask(mailing, "Ada@Example.com")
    [letter] = postbox.letters
    assert (letter.to, letter.subject) == ("ada@example.com", "Un nouveau mot de passe pour 0cron")
    token = postbox.token()
    assert token not in await mailing.dump()
    resets = mailing.entrance.resets
    refusal = await fails(resets.use(token, "password1", None, AWAY), Invalid)
    assert [fault.field for fault in refusal.fields] == ["new_password"]
    await resets.use(token, NEW_PASSWORD, None, AWAY)
    await fails(resets.use(token, NEW_PASSWORD, None, AWAY), NotFound, "does not work")
    await fails(mailing.sign_ins.recognise(opened.token), Unauthorized)
    await mailing.sign_in(password=NEW_PASSWORD)
    assert {"password.reset", "password.reset-link"} <= {action for action, _, _ in await mailing.audited()}


async def test_asking_tells_nobody_who_there_is(
    mailing: House, postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mailing.set_up()
    asked: list[str] = []
    for name in ("read", "write"):
        monkeypatch.setattr(mailing.ledger, name, _noting(asked, name, getattr(mailing.ledger, name)))
    for email in ("ada@example.com", "nobody@example.com"):
        await mailing.entrance.resets.ask(email, AWAY)
        assert asked == [], "the answer is given before anything is looked up"
    await settled(mailing)
    assert asked == ["write", "write"]
    assert [letter.to for letter in postbox.letters] == ["ada@example.com"]


def _noting(noted: list[str], name: str, original: Any) -> Any:
    async def note(transaction: Any) -> Any:
        noted.append(name)
        return await original(transaction)

    return note


async def test_nobody_gets_more_than_a_few_letters_an_hour(mailing: House, postbox: Postbox) -> None:
    await mailing.set_up()
    for _ in range(10):
        await ask(mailing)
    assert len(postbox.letters) == 3
    for _ in range(20):
        await ask(mailing, "x")
    await fails(ask(mailing), TooMany)
    await mailing.clock.advance(3_600)
    await ask(mailing)
    assert len(postbox.letters) == 4


async def test_the_newest_link_alone_works_and_for_an_hour(mailing: House, postbox: Postbox) -> None:
    await mailing.set_up()
    await ask(mailing)
    first = postbox.token()
    await ask(mailing)
    await fails(mailing.entrance.resets.use(first, NEW_PASSWORD, None, AWAY), NotFound)
    mailing.clock.set(mailing.clock.now() + HOUR_MS)
    await fails(mailing.entrance.resets.use(postbox.token(), NEW_PASSWORD, None, AWAY), NotFound)
    await ask(mailing)
    await mailing.entrance.people.change_password((await mailing.sign_in()).session.bearer, PASSWORD, NEW_PASSWORD)
    await fails(mailing.entrance.resets.use(postbox.token(), PASSWORD, None, AWAY), NotFound)


async def test_of_two_that_use_a_link_at_once_one_does(mailing: House, postbox: Postbox) -> None:
    await mailing.set_up()
    await ask(mailing)
    uses = [mailing.entrance.resets.use(postbox.token(), f"{NEW_PASSWORD} {n}", None, AWAY) for n in range(3)]
    results = await asyncio.gather(*uses, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["NoneType", "NotFound", "NotFound"]


async def test_a_new_password_does_not_skip_the_second_factor(mailing: House, postbox: Postbox) -> None:
    seed, codes = await mailing.with_totp(await mailing.set_up())
    mailing.clock.set(mailing.clock.now() + STEP_MS)
    await ask(mailing)
    use = mailing.entrance.resets.use
    refusal = await fails(use(postbox.token(), NEW_PASSWORD, None, AWAY), Unauthorized)
    assert refusal.code == CODE_NEEDED
    await fails(use(postbox.token(), NEW_PASSWORD, "000000", AWAY), Unauthorized, REFUSED)
    await use(postbox.token(), NEW_PASSWORD, mailing.code(seed), AWAY)
    refusal = await fails(mailing.sign_in(password=NEW_PASSWORD), Unauthorized)
    assert refusal.code == CODE_NEEDED
    await ask(mailing)
    for _ in range(3):
        await fails(use(postbox.token(), PASSWORD, "000000", HOME), Unauthorized)
    await use(postbox.token(), PASSWORD, codes[0], HOME)
    await ask(mailing)
    await fails(use(postbox.token(), NEW_PASSWORD, "000000", Visitor("192.0.2.77", "")), Unauthorized)
    await fails(use(postbox.token(), NEW_PASSWORD, codes[1], Visitor("192.0.2.78", "")), TooMany)


async def test_a_link_is_for_its_person_and_not_for_who_is_disabled(mailing: House, postbox: Postbox) -> None:
    ada = await mailing.set_up()
    bob = await mailing.person("bob@example.com")
    await ask(mailing)
    await mailing.entrance.resets.use(postbox.token(), NEW_PASSWORD, None, AWAY)
    await mailing.sign_in("bob@example.com")
    assert (await mailing.get(bob.id)).password_hash == bob.password_hash
    await ask(mailing)
    await mailing.ledger.write(lambda c: people_rows.change(c, person_id(ada), 0, status="disabled"))
    await fails(mailing.entrance.resets.use(postbox.token(), PASSWORD, None, AWAY), NotFound)
    await ask(mailing)
    assert len(postbox.letters) == 2


async def test_without_a_mail_server_the_operator_makes_the_link(house: House, postbox: Postbox) -> None:
    await house.set_up()
    assert not house.entrance.mailing.can_mail
    await ask(house)
    assert postbox.letters == []

    def make(email: str) -> Any:
        return house.ledger.write(lambda connection: new_reset_link(connection, email, house.clock.now()))

    token = (await make("ADA@example.com")).rpartition("/")[2]
    await house.entrance.resets.use(token, NEW_PASSWORD, None, AWAY)
    await fails(make("nobody@example.com"), NotFound, "Nobody with this address")
    await fails(make("nonsense"), Invalid)


async def test_who_lost_the_second_factor_too_is_helped_by_who_can_read_the_data(house: House) -> None:
    _, codes = await house.with_totp(await house.set_up())

    def make(connection: Connection) -> str:
        return new_reset_link(connection, "ada@example.com", house.clock.now(), remove_totp=True)

    token = (await house.ledger.write(make)).rpartition("/")[2]
    await house.entrance.resets.use(token, NEW_PASSWORD, None, AWAY)
    opened = await house.sign_in(password=NEW_PASSWORD)
    await house.with_totp(opened)
    await fails(house.sign_in(password=NEW_PASSWORD, code=codes[0]), Unauthorized)
    assert ("totp.remove", "server", "") in await house.audited()


async def test_a_letter_that_cannot_be_sent_harms_nobody(
    mailing: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await mailing.set_up()

    async def broken(_letter: Letter, _ways: Ways) -> Delivery:
        raise RuntimeError("no")

    monkeypatch.setattr("zerocron.actions.mailing.post", broken)
    await ask(mailing)
    assert "letter_failed" in capsys.readouterr().out


async def pass_time(house: House, seconds: float) -> None:
    """Let that much pass, and let be done what was waited for."""
    await house.clock.advance(seconds)
    await settled(house)


async def test_a_letter_that_no_mail_server_takes_is_tried_five_times_in_a_quarter_of_an_hour(
    mailing: House, postbox: Postbox, capsys: pytest.CaptureFixture[str]
) -> None:
    await mailing.set_up()
    postbox.refusals = [Again("421 busy")] * 9
    await ask(mailing)
    tries = [len(postbox.letters)]
    for seconds in AGAIN_AFTER_SECONDS:
        await pass_time(mailing, seconds - 1)
        assert len(postbox.letters) == tries[-1], "not before its time"
        await pass_time(mailing, 1)
        tries.append(len(postbox.letters))
    assert tries == [1, 2, 3, 4, 5]
    assert len({letter.id for letter in postbox.letters}) == 1, "it is the same letter: a mailbox shows one"
    await pass_time(mailing, 3_600)
    assert (len(postbox.letters), mailing.entrance.mailing.waiting) == (5, 0)
    told = capsys.readouterr().out
    assert "letter_given_up" in told
    assert postbox.token() not in told


async def test_a_letter_that_waits_outlasts_a_ledger_that_is_away(
    mailing: House, postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mailing.set_up()
    postbox.refusals = [Again("421 busy")]
    await ask(mailing)

    async def away(_transaction: object) -> None:
        raise Unavailable("The database cannot be used now.")

    with monkeypatch.context() as patch:
        patch.setattr(mailing.ledger, "read", away)
        await pass_time(mailing, AGAIN_AFTER_SECONDS[0])
        assert len(postbox.letters) == 1
    await pass_time(mailing, AGAIN_AFTER_SECONDS[1])
    assert (len(postbox.letters), mailing.entrance.mailing.waiting) == (2, 0)


async def test_a_letter_is_tried_again_as_late_as_the_mail_server_asks_within_bounds(
    mailing: House, postbox: Postbox
) -> None:
    await mailing.set_up()
    postbox.refusals = [Again("451 later", 100_000), Again("451 much later", 86_400_000)]
    await ask(mailing)
    for seconds, tries in ((99, 1), (1, 2), (599, 2), (1, 3)):
        await pass_time(mailing, seconds)
        assert len(postbox.letters) == tries
    await mailing.entrance.resets.use(postbox.token(), NEW_PASSWORD, None, AWAY)


async def test_what_the_mail_server_refuses_for_good_is_not_tried_again(mailing: House, postbox: Postbox) -> None:
    await mailing.set_up()
    postbox.refusals = [Again("busy"), Refused("550 no such mailbox")]
    await ask(mailing)
    await pass_time(mailing, 1_000)
    assert len(postbox.letters) == 2


async def test_a_link_that_is_worth_nothing_any_more_is_not_mailed(mailing: House, postbox: Postbox) -> None:
    await mailing.set_up()
    postbox.refusals = [Again("busy"), Again("busy")]
    await ask(mailing)
    await ask(mailing)  # a newer one takes its place
    assert mailing.entrance.mailing.waiting == 2
    await pass_time(mailing, 1_000)
    assert [letter.id for letter in postbox.letters[2:]] == [postbox.letters[1].id]
    await mailing.entrance.resets.use(postbox.token(), NEW_PASSWORD, None, AWAY)


async def test_asking_is_answered_the_same_whether_or_not_there_is_a_letter_to_try_again(
    mailing: House, postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mailing.set_up()
    monkeypatch.setattr("zerocron.actions.mailing.UNDER_WAY_MAX", 2)
    monkeypatch.setattr("zerocron.actions.mailing.WAITING_MAX", 2)
    people = [await mailing.person(f"p{number}@example.com") for number in range(4)]
    postbox.refusals = [Again("busy")] * 4
    for person in people:
        await ask(mailing, person.email)
    assert mailing.entrance.mailing.waiting == 2, "bounded, however many there are to write to"
    for email in ("nobody@example.com", "ada@example.com"):
        await ask(mailing, email)
    assert len(postbox.letters) == 5, "those that wait keep no others from being sent"


async def test_what_waits_for_another_attempt_does_not_hold_up_the_end(mailing: House, postbox: Postbox) -> None:
    await mailing.set_up()
    postbox.refusals = [Again("busy")]
    await ask(mailing)
    async with asyncio.timeout(10):
        await mailing.entrance.close()
    assert (mailing.entrance.mailing.waiting, mailing.entrance.mailing.under_way) == (0, 0)
    await ask(mailing)
    assert len(postbox.letters) == 1


# invitations


async def invitation(house: House, email: str = "bob@example.com", role: Role = Role.EDITOR, team_id: str = "") -> str:
    return await house.link(LinkKind.INVITATION, email=email, role=str(role), team_id=team_id or DEFAULT_TEAM_ID)


def accept(house: House, token: str, **given: Any) -> Any:
    fields: dict[str, Any] = {"name": None, "password": None, "code": None, "visitor": AWAY}
    return house.entrance.invitations.accept(token, **fields | given)


async def test_an_invitation_makes_the_account_of_its_address(house: House) -> None:
    await house.set_up()
    token = await invitation(house)
    seen = await house.entrance.invitations.look(token, AWAY)
    assert (seen.team, seen.email, seen.role, seen.has_account) == ("Team", "bob@example.com", Role.EDITOR, False)
    assert seen.invited_by is None, "it was no person who made it"
    assert seen.expires_at == house.clock.now() + 7 * 24 * HOUR_MS
    refusals: list[tuple[dict[str, str], str]] = [
        ({}, "name"),
        ({"name": "Bob"}, "password"),
        ({"name": "Bob", "password": "password1"}, "password"),
    ]
    for given, field in refusals:
        refusal = await fails(accept(house, token, **given), Invalid)
        assert [fault.field for fault in refusal.fields] == [field]
    opened = await accept(house, token, name="Bob", password=PASSWORD)
    assert (opened.session.person.email, opened.session.role) == ("bob@example.com", Role.EDITOR)
    await house.sign_ins.recognise(opened.token)
    await fails(accept(house, token, name="Eve", password=PASSWORD), NotFound, "does not work")
    await fails(house.entrance.invitations.look(token, AWAY), NotFound)
    assert ("invitation.accept", "person", AWAY.address) in await house.audited()


async def test_an_invitation_names_the_person_who_made_it(house: House) -> None:
    ada = await house.set_up()
    token = await house.link(
        LinkKind.INVITATION, team_id=DEFAULT_TEAM_ID, email="bob@example.com", role="editor", created_by=person_id(ada)
    )
    assert (await house.entrance.invitations.look(token, AWAY)).invited_by == "Ada Lovelace"


async def test_who_has_an_account_proves_that_it_is_theirs(house: House) -> None:
    ada = await house.set_up()
    seed, _ = await house.with_totp(ada)
    await house.person("bob@example.com", team_id=OTHER_TEAM_ID)
    house.clock.set(house.clock.now() + STEP_MS)
    token = await invitation(house, "ada@example.com", Role.VIEWER, OTHER_TEAM_ID)
    assert (await house.entrance.invitations.look(token, AWAY)).has_account
    await fails(accept(house, token, name="Eve", password=NEW_PASSWORD), Unauthorized, REFUSED)
    refusal = await fails(accept(house, token, password=PASSWORD), Unauthorized)
    assert refusal.code == CODE_NEEDED
    opened = await accept(house, token, password=PASSWORD, code=house.code(seed))
    assert (opened.session.bearer.team_id, opened.session.role) == (OTHER_TEAM_ID, Role.VIEWER)
    assert {team.role for team in opened.session.teams} == {Role.OWNER, Role.VIEWER}


async def test_who_is_signed_in_already_needs_the_link_alone_and_others_do_not_profit(house: House) -> None:
    await house.set_up()
    await house.person("bob@example.com", team_id=OTHER_TEAM_ID)
    bob, ada = await house.sign_in("bob@example.com"), await house.sign_in()
    token = await invitation(house)
    await fails(accept(house, token, bearer=ada.session.bearer), Unauthorized)
    session = await accept(house, token, bearer=bob.session.bearer)
    assert (session.bearer.team_id, session.role) == (DEFAULT_TEAM_ID, Role.EDITOR)
    await fails(accept(house, token, bearer=bob.session.bearer), NotFound)


async def test_an_invitation_changes_no_role_that_somebody_has(house: House) -> None:
    ada = await house.set_up()
    session = await accept(house, await invitation(house, "ada@example.com", Role.VIEWER), bearer=ada.session.bearer)
    assert session.role == Role.OWNER


async def test_an_invitation_ends_after_seven_days_with_its_team_or_when_it_is_withdrawn(house: House) -> None:
    await house.set_up()
    withdrawn, of_team, old = [await invitation(house) for _ in range(3)]
    link = await house.ledger.read(
        lambda c: link_rows.find(c, LinkKind.INVITATION, digest(withdrawn), house.clock.now())
    )
    assert link is not None
    assert await house.ledger.write(lambda c: link_rows.use(c, link.id, house.clock.now()))
    await fails(accept(house, withdrawn, name="Bob", password=PASSWORD), NotFound)
    await house.ledger.write(lambda c: c.execute(update(teams).values(deleted_at=1)))
    await fails(accept(house, of_team, name="Bob", password=PASSWORD), NotFound, "does not work")
    await fails(house.entrance.invitations.look(of_team, AWAY), NotFound)
    assert await house.ledger.read(lambda c: people_rows.find(c, "bob@example.com")) is None
    await house.ledger.write(lambda c: c.execute(update(teams).values(deleted_at=None)))
    house.clock.set(house.clock.now() + 7 * 24 * HOUR_MS)
    await fails(accept(house, old, name="Bob", password=PASSWORD), NotFound)


async def test_of_two_that_accept_at_once_one_comes_in(house: House) -> None:
    await house.set_up()
    token = await invitation(house)
    results = await asyncio.gather(
        *(accept(house, token, name="Bob", password=PASSWORD) for _ in range(3)), return_exceptions=True
    )
    assert sorted(type(result).__name__ for result in results) == ["NotFound", "NotFound", "Opened"]


async def test_looking_at_invitations_has_an_end(house: House) -> None:
    for _ in range(30):
        await fails(house.entrance.invitations.look("x" * 43, AWAY), NotFound)
    await fails(house.entrance.invitations.look("x" * 43, AWAY), TooMany)


async def test_old_links_are_forgotten(house: House) -> None:
    token = await house.setup_token()
    now = house.clock.now()
    await house.ledger.write(lambda c: link_rows.forget(c, now + HOUR_MS))
    assert digest(token) in await house.dump()
    await house.ledger.write(lambda c: link_rows.forget(c, now + HOUR_MS + 1))
    assert digest(token) not in await house.dump()
