"""The pages of secrets: a value goes to the API and comes back nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dashboard.support import Asked, Pages

from zerocron.dashboard.specimens.kinds import page_of, session
from zerocron.dashboard.specimens.monitors import VIEWER
from zerocron.dashboard.specimens.secrets import PROVED, SECRETS, job
from zerocron.dashboard.views.secrets import JOBS_LOOKED_AT_MAX, PAGE

VALUE = "first line\nand a second, that must not come back"
AGAIN = (403, {"title": "Forbidden", "detail": "Prove who you are.", "code": "reauthenticate"})
KNOWN: dict[str, Any] = {"GET /v1/session": PROVED, "GET /v1/secrets": SECRETS}


def fields(name: str | None = "NEW_KEY", hosts: str = "") -> list[tuple[str, str]]:
    typed = [("value", VALUE.replace("\n", "\r\n")), ("allowed_hosts", hosts)]
    return typed if name is None else [("name", name), *typed]


async def test_a_new_secret_is_sent_as_it_was_typed() -> None:
    pages = Pages.over({**KNOWN, "PUT /v1/secrets/NEW_KEY": {}})
    answer = await pages.post("/secrets/new", fields(hosts="api.example.com, *.example.com\r\n\r\n10.0.0.1"))

    hosts = ["api.example.com", "*.example.com", "10.0.0.1"]
    assert pages.api.sent() == [Asked("PUT", "/v1/secrets/NEW_KEY", {}, {"value": VALUE, "allowed_hosts": hosts})]
    assert (answer.status, answer.location) == (303, "/secrets/NEW_KEY?done=saved")


@pytest.mark.parametrize("path", ["/secrets/new", "/secrets/STRIPE_KEY/replace"])
@pytest.mark.parametrize("status", [409, 422])
async def test_a_value_does_not_come_back_after_a_refusal(path: str, status: int) -> None:
    wrong = {
        "title": "No",
        "detail": "It cannot be kept.",
        "errors": [{"field": "value", "message": "A secret has at least 8 characters."}],
    }
    name = "NEW_KEY" if path.endswith("new") else "STRIPE_KEY"
    pages = Pages.over({**KNOWN, f"PUT /v1/secrets/{name}": (status, wrong)})
    shown = await pages.post(path, fields(hosts="api.example.com"))

    assert shown.status == status
    assert "must not come back" not in shown.html
    form = shown.tree.one("main").one("form")
    assert dict(form.fields())["value"] == ""
    assert dict(form.fields())["allowed_hosts"] == "api.example.com"
    assert form.one("span", id="value-error").text == "A secret has at least 8 characters."


async def test_a_new_secret_replaces_none() -> None:
    pages = Pages.over(KNOWN)
    shown = await pages.post("/secrets/new", fields("STRIPE_KEY"))

    assert (shown.status, pages.api.sent()) == (422, [])
    assert "already" in shown.tree.one("span", id="name-error").text
    assert "must not come back" not in shown.html


@pytest.mark.parametrize("name", ["", "../api-keys", "A/B", "lower", "rotate"])
async def test_a_name_that_is_none_is_shown_again(name: str) -> None:
    refused = (422, {"title": "No", "detail": "No.", "errors": [{"field": "name", "message": "Write capitals."}]})
    asked = "PUT /v1/secrets/ " if not name or "/" in name else f"PUT /v1/secrets/{name}"
    pages = Pages.over({**KNOWN, asked: refused})
    shown = await pages.post("/secrets/new", fields(name))

    assert shown.status == 422
    assert shown.tree.one("input", id="name").get("value") == name
    assert shown.tree.one("span", id="name-error").text == "Write capitals."


async def test_a_new_value_keeps_or_lifts_the_hosts_that_the_form_shows() -> None:
    pages = Pages.over({**KNOWN, "PUT /v1/secrets/STRIPE_KEY": {}})
    form = (await pages.get("/secrets/STRIPE_KEY/replace")).tree.one("main").one("form")
    assert dict(form.fields()) == {"value": "", "allowed_hosts": "api.stripe.com\n*.stripe.com"}
    await pages.post("/secrets/STRIPE_KEY/replace", fields(None, "api.stripe.com\n*.stripe.com"))
    await pages.post("/secrets/STRIPE_KEY/replace", fields(None))

    assert [each.body["allowed_hosts"] for each in pages.api.sent()] == [["api.stripe.com", "*.stripe.com"], []]


@pytest.mark.parametrize(
    "until",
    [None, "2027-03-10T14:32:06Z", "2027-03-10T14:33:00Z"],
    ids=["never", "too long ago", "over before it is typed"],
)
@pytest.mark.parametrize(
    "path", ["/secrets/new", "/secrets/STRIPE_KEY/replace", "/secrets/STRIPE_KEY/delete", "/secrets/rotate"]
)
async def test_who_one_is_is_asked_before_anything_is_typed(path: str, until: str | None) -> None:
    pages = Pages.over({**KNOWN, "GET /v1/session": session(elevated_until=until)})
    shown = await pages.get(path)

    assert shown.status == 403
    tree = shown.tree
    assert tree.one("form", action="/confirm").one("input", name="next").get("value") == path
    assert not tree.all("textarea")


async def test_a_proof_that_ran_out_meanwhile_shows_no_value() -> None:
    pages = Pages.over({**KNOWN, "PUT /v1/secrets/NEW_KEY": AGAIN})
    shown = await pages.post("/secrets/new", fields())

    assert shown.tree.one("form", action="/confirm").one("input", name="next").get("value") == "/secrets/new"
    assert "must not come back" not in shown.html


@pytest.mark.parametrize(
    "place",
    [
        {"url": "https://api.stripe.com/${secrets.STRIPE_KEY}"},
        {"headers": {"Authorization": "Bearer ${secrets.STRIPE_KEY}"}},
        {"body": '{"key": "${secrets.STRIPE_KEY}"}'},
    ],
    ids=["url", "header", "body"],
)
async def test_jobs_that_name_a_secret_are_found(place: dict[str, Any]) -> None:
    jobs = page_of([job(1, "names it", **place), job(2, "another", body="${secrets.STRIPE_KEY_2} STRIPE_KEY")])
    pages = Pages.over({**KNOWN, "GET /v1/jobs": jobs})

    for path in ("/secrets/STRIPE_KEY", "/secrets/STRIPE_KEY/delete"):
        listed = (await pages.get(path)).tree.one("ul", class_="users")
        assert [each.text for each in listed.all("a")] == ["names it"]


async def test_the_search_for_jobs_ends_and_says_how_far_it_went() -> None:
    pages = Pages.over({**KNOWN, "GET /v1/jobs": page_of([job(1, "another")] * PAGE, "more")})
    shown = await pages.get("/secrets/STRIPE_KEY")

    assert len(pages.api.questions("/v1/jobs")) == JOBS_LOOKED_AT_MAX // PAGE
    assert "Looked for in the 1,000 newest jobs only" in shown.tree.text
    assert "No job names it." not in shown.tree.text


async def test_a_secret_that_is_not_there() -> None:
    pages = Pages.over({**KNOWN, "GET /v1/secrets": page_of(SECRETS["items"], "more")})

    assert (await pages.get("/secrets/MISSING")).status == 404
    assert len(pages.api.questions("/v1/secrets")) == 3


async def test_a_secret_is_deleted_after_one_question() -> None:
    pages = Pages.over({**KNOWN, "DELETE /v1/secrets/STRIPE_KEY": (204, None), "GET /v1/jobs": page_of([])})
    assert (await pages.get("/secrets/STRIPE_KEY/delete")).tree.all("form", action="/secrets/STRIPE_KEY/delete")
    assert pages.api.sent() == []
    answer = await pages.post("/secrets/STRIPE_KEY/delete")

    assert pages.api.sent() == [Asked("DELETE", "/v1/secrets/STRIPE_KEY", {})]
    assert answer.location == "/secrets?done=deleted"


async def test_all_secrets_are_sealed_anew_by_admins_alone() -> None:
    pages = Pages.over({**KNOWN, "POST /v1/secrets/rotate": {"secrets": 3}})
    assert "3 secrets were sealed anew." in (await pages.post("/secrets/rotate")).tree.text

    editor = {**PROVED, "permissions": ["read", "write", "trigger", "ping-admin"]}
    pages = Pages.over({**KNOWN, "GET /v1/session": editor})
    assert (await pages.get("/secrets/rotate")).status == 403
    assert not (await pages.get("/secrets")).tree.all("a", href="/secrets/rotate")

    elsewhere = {**PROVED, "team": {**PROVED["team"], "id": PROVED["teams"][1]["id"]}}
    pages = Pages.over({**KNOWN, "GET /v1/session": elsewhere})
    assert not (await pages.get("/secrets")).tree.all("a", href="/secrets/rotate"), "it is about all teams"
    assert (await pages.get("/secrets/rotate")).location == "/secrets"


@pytest.mark.parametrize("path", ["/secrets/new", "/secrets/STRIPE_KEY/replace", "/secrets/STRIPE_KEY/delete"])
async def test_who_lacks_the_right_is_told_calmly(path: str) -> None:
    shown = await Pages.over({**KNOWN, "GET /v1/session": VIEWER}).get(path)

    assert (shown.status, shown.tree.one("h1").text) == (403, "Not yours to change")
