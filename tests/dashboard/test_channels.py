"""The pages of channels and alerts: what forms send, what comes of a test, and that no setting is shown again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dashboard.support import Asked, Pages

from zerocron.dashboard.specimens.channels import ALERTS, ALL, KINDS, PAGER, SLACK
from zerocron.dashboard.specimens.monitors import VIEWER

HERE = f"/channels/{SLACK['id']}"
API = f"/v1/channels/{SLACK['id']}"
FORM: dict[str, Any] = {"GET /v1/channel-kinds": KINDS}
SECRET = "https://hooks.slack.com/services/T1/B1/a-secret-that-must-not-come-back"


async def test_each_kind_has_a_card_and_a_form_with_its_fields() -> None:
    pages = Pages.over(FORM)
    cards = (await pages.get("/channels/new")).tree.all("a", class_="card-link")
    assert [each.get("href") for each in cards] == [f"/channels/new?kind={kind['kind']}" for kind in KINDS["items"]]

    for card, kind in zip(cards, KINDS["items"], strict=True):
        form = (await pages.get(card.get("href"))).tree.one("main").one("form")
        names = [name for name, _ in form.typed()]
        assert names == ["kind", "name", *(f"config.{each['name']}" for each in kind["fields"])]
        for each in kind["fields"]:
            field = form.one(id=f"config.{each['name']}")
            assert field.tag == "textarea" or field.get("type") == ("password" if each["secret"] else "text")


async def test_the_form_sends_the_settings_that_were_typed() -> None:
    pages = Pages.over({**FORM, "POST /v1/channels": (201, PAGER)})
    answer = await pages.post(
        "/channels/new",
        [
            ("kind", "webhook"),
            ("name", " Pager "),
            ("config.url", " https://example.com/alerts "),
            ("config.key", ""),
            ("config.headers", "A: 1\r\nB: 2"),
            ("config.template", "  "),
            ("config.other", "no field of this kind"),
        ],
    )

    config = {"url": "https://example.com/alerts", "headers": "A: 1\nB: 2"}
    document = {"kind": "webhook", "name": "Pager", "config": config}
    assert pages.api.sent() == [Asked("POST", "/v1/channels", {}, document)]
    assert (answer.status, answer.location) == (303, f"/channels/{PAGER['id']}?done=created")


async def test_a_refusal_is_beside_the_field_and_what_is_secret_does_not_come_back() -> None:
    wrong = {
        "title": "Unprocessable Content",
        "detail": "No.",
        "errors": [{"field": "config.token", "message": "This is no token."}],
    }
    pages = Pages.over({**FORM, "POST /v1/channels": (422, wrong)})
    answer = await pages.post(
        "/channels/new",
        [("kind", "telegram"), ("name", "Phone"), ("config.token", SECRET), ("config.chat_id", "@here")],
    )
    form = answer.tree.one("main").one("form")

    assert answer.status == 422
    assert SECRET not in answer.html
    assert form.one("span", id="config.token-error").text == "This is no token."
    assert dict(form.typed()) == {
        "kind": "telegram",
        "name": "Phone",
        "config.token": "",
        "config.chat_id": "@here",
        "config.topic_id": "",
    }


async def test_a_kind_that_is_none_leads_to_those_there_are() -> None:
    pages = Pages.over(FORM)

    assert len((await pages.get("/channels/new?kind=pigeon")).tree.all("a", class_="card-link")) == 5
    assert (await pages.post("/channels/new", [("kind", "pigeon")])).location == "/channels/new"
    assert pages.api.sent() == []


@pytest.mark.parametrize(
    ("typed", "sent"),
    [("", {"name": "Ops"}), (SECRET, {"name": "Ops", "config": {"url": SECRET}})],
    ids=["the name alone", "all settings anew"],
)
async def test_an_edit_gives_all_settings_or_none(typed: str, sent: dict[str, Any]) -> None:
    pages = Pages.over({**FORM, f"GET {API}": SLACK, f"PATCH {API}": SLACK})
    form = (await pages.get(f"{HERE}/edit")).tree.one("main").one("form")
    assert dict(form.fields()) == {"name": "ops", "config.url": ""}
    await pages.post(f"{HERE}/edit", [("name", "Ops"), ("config.url", typed)])

    assert pages.api.sent() == [Asked("PATCH", API, {}, sent)]


async def test_a_channel_of_a_kind_that_is_no_more_can_be_renamed() -> None:
    gone = {**SLACK, "kind": "pigeon"}
    pages = Pages.over({**FORM, f"GET {API}": gone, f"PATCH {API}": gone})

    assert (await pages.get(f"{HERE}/edit")).status == 200
    assert (await pages.post(f"{HERE}/edit", [("name", "Ops")])).status == 303


@pytest.mark.parametrize(
    ("answer", "role", "said"),
    [
        ({"accepted": True, "detail": "ok", "reason": None}, "status", "The test message was taken. ok"),
        ({"accepted": False, "detail": None, "reason": "It answered 410."}, "alert", "It answered 410."),
        ((409, {"title": "Conflict", "detail": "Wait 10 seconds."}), "alert", "Wait 10 seconds."),
    ],
    ids=["taken", "not taken", "too soon"],
)
async def test_what_came_of_a_test_is_told_at_once(answer: Any, role: str, said: str) -> None:
    pages = Pages.of("channel", **{f"POST {API}/test": answer})
    shown = await pages.post(f"{HERE}/test")

    assert said in shown.tree.one("main").one("div", role=role).text
    assert shown.tree.one("h1").text == "ops"
    assert shown.status == (answer[0] if isinstance(answer, tuple) else 200)


async def test_a_channel_that_is_named_is_not_deleted_and_the_page_says_the_way_out() -> None:
    shown = await Pages.of("channel-delete-refused").specimen("channel-delete-refused")

    assert shown.status == 409
    assert "would fall silent" in shown.tree.one("div", role="alert").text
    assert "pause the channel" in shown.tree.text


@pytest.mark.parametrize(
    ("act", "asked", "to"),
    [
        ("pause", f"POST {API}/pause", f"{HERE}?done=paused"),
        ("resume", f"POST {API}/resume", f"{HERE}?done=resumed"),
        ("delete", f"DELETE {API}", "/channels?done=deleted"),
    ],
    ids=["pause", "resume", "delete"],
)
async def test_what_can_be_done_to_a_channel(act: str, asked: str, to: str) -> None:
    pages = Pages.over({asked: SLACK})
    answer = await pages.post(f"{HERE}/{act}")

    assert [f"{each.method} {each.path}" for each in pages.api.sent()] == [asked]
    assert (answer.status, answer.location) == (303, to)


@pytest.mark.parametrize("path", ["/channels/new", f"{HERE}/edit", f"{HERE}/delete"])
async def test_who_lacks_the_right_is_told_calmly(path: str) -> None:
    shown = await Pages.of("channel", **{"GET /v1/session": VIEWER}).get(path)

    assert (shown.status, shown.tree.one("h1").text) == (403, "Not yours to change")


async def test_a_viewer_has_no_buttons() -> None:
    for name in ("channel-viewer", "channels-empty-viewer"):
        tree = (await Pages.of(name).specimen(name)).tree.one("main")
        assert not tree.all("form")
        assert not [each for each in tree.all("a") if each.get("href").endswith(("/edit", "/delete", "/new"))]


async def test_alerts_are_asked_for_as_chosen() -> None:
    pages = Pages.over({"GET /v1/alerts": ALERTS, "GET /v1/channels": ALL})
    await pages.get(f"/alerts?status=dead&channel={SLACK['id']}&subject=abc")
    await pages.get("/alerts?status=nonsense")
    fragment = await pages.get("/alerts?status=sent", is_fragment=True)

    asked = [each.query for each in pages.api.questions("/v1/alerts")]
    assert asked == [{"status": "dead", "channel": SLACK["id"], "subject": "abc"}, {}, {"status": "sent"}]
    assert fragment.tree.one("tbody", id="rows-1").get("hx-get") == "/alerts?status=sent&chunk=1&part=rows"
    assert not fragment.tree.all("h1")


async def test_an_alert_leads_to_what_it_is_about_and_says_why_it_was_not_delivered() -> None:
    tree = (await Pages.of("alerts").get("/alerts")).tree
    rows = tree.one("tbody", id="rows-1").all("tr")
    links = [row.all("a", class_="name")[0].get("href").split("/")[1] for row in rows]

    assert links == ["jobs", "jobs", "monitors", "monitors", "monitors", "channels"]
    assert "Next try in 2 min 13 s" in rows[0].text
    assert rows[4].one("span", class_="sub-bad").text == "The webhook answered 410. It wants no more messages."
    assert [each.get("id") for each in rows] == [f"alert-{each['id']}" for each in ALERTS["items"]]
