"""A team's pages: who sees what, what is sent, and what is shown but once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.dashboard.support import Element, Pages

from zerocron.dashboard.site import Site
from zerocron.dashboard.specimens.account import ELEVATED
from zerocron.dashboard.specimens.kinds import SESSION, page_of, session
from zerocron.dashboard.specimens.team import AUDIT, INVITATION, INVITED, KEYS, MADE_KEY, MEMBERS, SIGNING_KEY, TEAM
from zerocron.dashboard.views.team import changes_of

CERTAIN = {"GET /v1/session": ELEVATED}
GRACE = MEMBERS["items"][1]["person_id"]
ADMIN = session(permissions=["read", "write", "trigger", "ping-admin", "admin"], elevated_until="2027-03-10T14:41:00Z")
VIEWER = session(permissions=["read"])
ACTORS = {"GET /v1/members": MEMBERS, "GET /v1/api-keys": page_of(KEYS["items"])}
REFUSED = (409, {"title": "Conflict", "detail": "A team has at least one owner."})


def form_of(tree: Element, action: str) -> Element:
    return next(each for each in tree.all("form") if each.get("action") == action)


# --- members


async def test_a_viewer_sees_who_is_there_and_nothing_to_press() -> None:
    site = Pages.over({"GET /v1/session": VIEWER, "GET /v1/members": MEMBERS})

    main = (await site.get("/members")).tree.one("main")

    assert "Grace Ndiaye" in main.text
    assert [each.get("href") for each in main.all("a")] == ["/members/leave"]
    assert main.all("form") == []
    assert site.api.questions("/v1/invitations") == []


async def test_an_admin_cannot_touch_owners_or_make_one() -> None:
    answers = {"GET /v1/session": ADMIN, "GET /v1/members": MEMBERS, "GET /v1/invitations": page_of([])}
    site = Pages.over(answers)

    main = (await site.get("/members")).tree.one("main")
    assert main.all("a", href=f"/members/{SESSION['person']['id']}") == []
    main.one("a", href=f"/members/{GRACE}")
    roles = [each.get("value") for each in (await site.get("/members/invite")).tree.all("input", name="role")]
    assert roles == ["admin", "editor", "viewer"]


@pytest.mark.parametrize(
    "path",
    [
        "/members/invite",
        f"/members/{GRACE}",
        f"/members/invitations/{INVITATION['id']}/withdraw",
        "/keys/new",
        "/keys/k3v9q0x2m1za/revoke",
        "/settings/signing-key",
        "/settings/delete",
    ],
)
async def test_who_one_is_is_asked_before_a_form_is_filled(path: str) -> None:
    answers = {
        "GET /v1/members": MEMBERS,
        "GET /v1/invitations": page_of([INVITATION]),
        "GET /v1/api-keys": page_of(KEYS["items"]),
        "GET /v1/team": TEAM,
        "GET /v1/signing-key": SIGNING_KEY,
    }
    asked = await Pages.over(answers).get(path)
    assert asked.status == 403
    assert ("next", path) in form_of(asked.tree, "/confirm").fields()

    assert (await Pages.over({**answers, **CERTAIN}).get(path)).status == 200


@pytest.mark.parametrize(
    "path", ["/members/invite", f"/members/{GRACE}", "/keys/new", "/settings/signing-key", "/settings/delete"]
)
async def test_nobody_fills_a_form_that_would_be_refused(path: str) -> None:
    viewer = {**VIEWER, "elevated_until": "2027-03-10T14:41:00Z"}
    answers = {"GET /v1/session": viewer, "GET /v1/members": MEMBERS, "GET /v1/team": TEAM}

    answer = await Pages.over(answers).get(path)

    assert answer.status == 403
    assert "does not allow it" in answer.tree.one("main").text
    assert answer.tree.one("main").all("form") == []


async def test_an_invitation_is_mailed_or_its_link_is_shown_once() -> None:
    site = Pages.over({**CERTAIN, "POST /v1/invitations": (201, {**INVITED, "url": None, "is_mailed": True})})
    fields = [("email", "edsger@example.com"), ("role", "editor")]

    assert (await site.post("/members/invite", fields)).location == "/members?done=invited"
    assert site.api.sent()[0].body == {"email": "edsger@example.com", "role": "editor"}

    site.api.answers["POST /v1/invitations"] = (201, INVITED)
    assert (await site.post("/members/invite", fields)).tree.one("code").text == INVITED["url"]


async def test_what_was_wrong_with_an_invitation_is_beside_its_field() -> None:
    told = {"title": "Unprocessable Content", "detail": "No.", "errors": [{"field": "email", "message": "No address."}]}
    site = Pages.over({**CERTAIN, "POST /v1/invitations": (422, told)})

    answer = await site.post("/members/invite", [("email", "edsger"), ("role", "viewer")])

    assert answer.status == 422
    fields = dict(form_of(answer.tree, "/members/invite").fields())
    assert fields.pop("once")
    assert fields == {"email": "edsger", "role": "viewer"}
    assert answer.tree.one(id="email-error").text == "No address."


async def test_a_role_is_changed_and_a_member_removed() -> None:
    place = f"/v1/members/{GRACE}"
    site = Pages.over({**CERTAIN, "GET /v1/members": MEMBERS, f"PATCH {place}": {}, f"DELETE {place}": (204, None)})
    fields = form_of((await site.get(f"/members/{GRACE}")).tree, f"/members/{GRACE}").fields()
    assert fields == [("role", "admin")]

    assert (await site.post(f"/members/{GRACE}", [("role", "viewer")])).location == "/members?done=saved"
    assert (await site.post(f"/members/{GRACE}/remove")).location == "/members?done=left"
    assert [(each.method, each.body) for each in site.api.sent()] == [("PATCH", {"role": "viewer"}), ("DELETE", None)]


async def test_who_cannot_be_removed_is_told_why_not() -> None:
    site = Pages.over({**CERTAIN, "GET /v1/members": MEMBERS, f"DELETE /v1/members/{GRACE}": REFUSED})

    answer = await site.post(f"/members/{GRACE}/remove")

    assert answer.status == 409
    assert "at least one owner" in answer.tree.one(role="alert").text


async def test_who_leaves_is_signed_out_or_told_why_not() -> None:
    site = Pages.over({"POST /v1/team/leave": REFUSED})
    assert "at least one owner" in (await site.post("/members/leave")).tree.one(role="alert").text

    site.api.answers["POST /v1/team/leave"] = (204, None)
    assert (await site.post("/members/leave")).location == "/sign-in?done=left_team"


async def test_an_invitation_is_withdrawn_also_when_it_is_gone() -> None:
    site = Pages.over({**CERTAIN, f"DELETE /v1/invitations/{INVITATION['id']}": (204, None)})

    for invitation_id in (INVITATION["id"], "gone-meanwhile"):
        answer = await site.post(f"/members/invitations/{invitation_id}/withdraw")
        assert answer.location == "/members?done=withdrawn"


# --- API keys


async def test_a_key_has_what_was_ticked_and_ends_when_it_was_said() -> None:
    site = Pages.over({**CERTAIN, "POST /v1/api-keys": (201, MADE_KEY)})
    fields = form_of((await site.get("/keys/new")).tree, "/keys/new").fields()
    assert [value for name, value in fields if name == "scopes"] == ["read", "trigger", "write", "ping-admin"]

    answer = await site.post(
        "/keys/new", [("name", "Pipeline"), ("scopes", "read"), ("scopes", "trigger"), ("days", "30")]
    )

    assert site.api.sent()[0].body == {
        "name": "Pipeline",
        "scopes": ["read", "trigger"],
        "expires_at": "2027-04-09T14:32:07Z",
    }
    assert answer.status == 200
    assert answer.tree.all("code")[0].text == MADE_KEY["key"]
    assert f"Bearer {MADE_KEY['key']}" in answer.tree.text


@pytest.mark.parametrize(("days", "expires_at"), [("", None), ("365", "2028-03-09T14:32:07Z"), ("9999999999", None)])
async def test_how_long_a_key_is_good(days: str, expires_at: str | None) -> None:
    site = Pages.over({**CERTAIN, "POST /v1/api-keys": (201, MADE_KEY)})

    await site.post("/keys/new", [("name", "Pipeline"), ("scopes", "read"), ("days", days)])

    assert site.api.sent()[0].body["expires_at"] == expires_at


async def test_nobody_is_offered_what_they_may_not_do() -> None:
    site = Pages.over({"GET /v1/session": {**ADMIN, "permissions": ["read", "admin"]}})

    tree = (await site.get("/keys/new")).tree

    assert [each.get("value") for each in tree.all("input", name="scopes")] == ["read", "admin"]


async def test_a_refused_key_keeps_what_was_ticked() -> None:
    answer = await Pages.of("key-refused").specimen("key-refused")

    assert answer.status == 422
    assert form_of(answer.tree, "/keys/new").typed() == [("name", "Pipeline"), ("days", "30")]
    assert answer.tree.one(id="scopes-error").text == "Give at least 1."


async def test_keys_are_revoked_after_one_question() -> None:
    site = Pages.over(
        {**CERTAIN, "GET /v1/api-keys": page_of(KEYS["items"]), "DELETE /v1/api-keys/k3v9q0x2m1za": (204, None)}
    )

    asked = await site.get("/keys/k3v9q0x2m1za/revoke")
    assert "Deployment pipeline" in asked.tree.one("h1").text
    assert site.api.sent() == []
    assert (await site.get("/keys/not-there/revoke")).status == 404

    assert (await site.post("/keys/k3v9q0x2m1za/revoke")).location == "/keys?done=revoked"
    assert (await site.post("/keys/gone-meanwhile/revoke")).location == "/keys?done=revoked"


async def test_a_key_is_found_on_a_later_page() -> None:
    site = Pages.over({**CERTAIN, "GET /v1/api-keys": KEYS})  # which goes on for ever

    assert (await site.get("/keys/not-there/revoke")).status == 404
    assert len(site.api.questions("/v1/api-keys")) == 20


# --- the audit log


async def test_the_audit_log_is_asked_for_what_was_chosen() -> None:
    site = Pages.over({"GET /v1/audit": AUDIT, **ACTORS})

    tree = (await site.get("/audit?action=job.edit&subject_id=a-job&actor_id=k3v9q0x2m1za&cursor=on&foreign=1")).tree

    assert site.api.questions("/v1/audit")[0].query == {
        "action": "job.edit",
        "actor_id": "k3v9q0x2m1za",
        "subject_id": "a-job",
        "limit": "50",
        "cursor": "on",
    }
    tree.one("a", href="/v1/audit.csv?action=job.edit&actor_id=k3v9q0x2m1za&subject_id=a-job")
    asked = "action=job.edit&actor_id=k3v9q0x2m1za&subject_id=a-job"
    assert tree.one("a", rel="next").get("href") == f"/audit?{asked}&cursor=more&chunk=2"
    tree.one("a", href="/audit?action=job.edit&actor_id=k3v9q0x2m1za")
    chosen = [each for each in tree.one("select", id="action").all("option") if "selected" in each.attributes]
    assert [each.get("value") for each in chosen] == ["job.edit"]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("server", "0cron"),
        ("k3v9q0x2m1za", "Deployment pipeline"),
        (GRACE, "Grace Ndiaye"),
        ("k0gone000000", "k0gone000000"),
        ("", "All"),
    ],
)
async def test_it_is_seen_what_one_of_the_team_did_or_who_is_there_no_more(asked: str, name: str) -> None:
    tree = (await Pages.over({"GET /v1/audit": AUDIT, **ACTORS}).get(f"/audit?actor_id={asked}")).tree
    choice = tree.one("select", id="actor_id")
    [chosen] = [each for each in choice.all("option") if "selected" in each.attributes] or choice.all("option")[:1]
    assert (chosen.get("value"), chosen.text) == (asked, name)
    assert [group.get("label") for group in choice.all("optgroup")] == ["People", "API keys"]


async def test_what_changed_is_shown_field_by_field() -> None:
    tree = (await Pages.over({"GET /v1/audit": AUDIT, **ACTORS}).get("/audit")).tree

    first = tree.one("tbody", id="rows-1").all("tr")[0]
    assert [each.text for each in first.all("del")] == ["every day at 7am", "30"]
    assert [each.text for each in first.all("ins")] == ["every weekday at 7am", "60"]
    assert "Job changed" in first.text
    secret = tree.one("tbody", id="rows-1").all("tr")[2]
    assert "(not recorded)" not in secret.text
    assert "never written down" in secret.text
    unknown = tree.one("tbody", id="rows-1").all("tr")[6]
    assert unknown.one("code").text == "weather.change"


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (None, None, []),
        ({"a": 1.5}, {"a": 2.0}, [("a", "1.5", "2")]),
        ({"a": None}, {"a": False, "b": "x"}, [("a", None, "false"), ("b", None, "x")]),
        ({"tags": ["x", "y"]}, {"tags": []}, [("tags", "x, y", None)]),
        ({"rules": [{"é": 1}]}, None, [("rules", '[{"é": 1}]', None)]),
    ],
)
def test_fields_are_told_as_people_write_them(before: Any, after: Any, changes: Any) -> None:
    assert changes_of(before, after) == changes


# --- settings


async def test_the_name_of_a_team_is_saved() -> None:
    site = Pages.over({"GET /v1/team": TEAM, "GET /v1/signing-key": SIGNING_KEY, "PATCH /v1/team": TEAM})
    fields = form_of((await site.get("/settings")).tree, "/settings").fields()

    assert (await site.post("/settings", fields)).location == "/settings?done=saved"
    assert site.api.sent()[0].body == {"name": "Bakery"}


async def test_a_viewer_sees_the_settings_and_nothing_to_press() -> None:
    main = (await Pages.of("settings-seen").specimen("settings-seen")).tree.one("main")

    assert main.all("a") + main.all("form") == []
    assert "137 of 137" in main.text
    assert "Full." in main.text


async def test_a_new_signing_key_is_shown_once() -> None:
    site = Pages.over({**CERTAIN, "POST /v1/signing-key/rotate": {**SIGNING_KEY, "key": "whsec_QUFB"}})

    assert (await site.post("/settings/signing-key")).tree.one("code").text == "whsec_QUFB"


async def test_a_team_is_deleted_by_its_name_only() -> None:
    site = Pages.over({**CERTAIN, "GET /v1/team": TEAM, "DELETE /v1/team": (204, None)})

    refused = await site.post("/settings/delete", [("name", "bakery")])
    assert refused.status == 422
    refused.tree.one(id="name-error")
    assert site.api.sent() == []

    assert (await site.post("/settings/delete", [("name", "Bakery")])).location == "/sign-in?done=team_deleted"
    [sent] = site.api.sent()
    assert (sent.method, sent.query) == ("DELETE", {"name": "Bakery"})


async def test_the_first_team_is_not_offered_for_deletion() -> None:
    answers = {"GET /v1/team": TEAM, "GET /v1/signing-key": SIGNING_KEY}
    assert (await Pages.over(answers).get("/settings")).tree.all("a", href="/settings/delete")

    first = {**answers, "GET /v1/team": {**TEAM, "id": "00000000-0000-7000-8000-000000000001"}}
    assert not (await Pages.over(first).get("/settings")).tree.all("a", href="/settings/delete")


@pytest.mark.parametrize(
    ("page", "made"),
    [
        ("/keys/new", "/v1/api-keys"),
        ("/settings/signing-key", "/v1/signing-key/rotate"),
        ("/members/invite", "/v1/invitations"),
        ("/account/teams/new", "/v1/teams"),
    ],
)
async def test_what_a_form_makes_is_asked_for_once_for_each_form(page: str, made: str) -> None:
    pages = Pages.over({"GET /v1/session": ADMIN})
    forms = [(await pages.get(page)).tree.one("form", action=page).fields() for _ in range(2)]
    for fields in (forms[0], forms[0], forms[1]):
        await pages.post(page, fields)
    first, again, other = [each.once for each in pages.api.questions(made)]
    assert first == again != other
    assert dict(forms[0])["once"] not in first, "what the key is made of is not kept"


async def test_a_form_for_a_key_that_is_sent_again_a_while_later_is_the_same_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is sent says until when the key is good, which the form says in days."""
    pages = Pages.over({"GET /v1/session": ADMIN})
    fields = (await pages.get("/keys/new")).tree.one("form", action="/keys/new").fields()
    for day in (1, 2):
        monkeypatch.setattr(Site, "now", lambda _site, day=day: datetime(2027, 1, day, tzinfo=UTC))
        await pages.post("/keys/new", fields)
    first, again = pages.api.questions("/v1/api-keys")
    assert first.body["expires_at"] != again.body["expires_at"]
    assert first.once == again.once
