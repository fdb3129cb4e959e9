"""The forms of monitors, channels and secrets over the real API: what they send is understood, and what it refuses is
beside the field that is at fault. Who looks is given; all else is as it is served."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.dashboard.support import CannedApi, Pages, Shown

from zerocron.app import run_node
from zerocron.core.access import Permission
from zerocron.dashboard.specimens.secrets import PROVED
from zerocron.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")


class SignedIn(CannedApi):
    """The API of a node, as somebody may use it whose session is given."""

    def __init__(self, application: ASGIApp, key: str) -> None:
        super().__init__({})
        self._application = application
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/v1/session":
            await CannedApi({"GET /v1/session": PROVED})(scope, receive, send)
            return
        headers = [pair for pair in scope["headers"] if pair[0] != b"sec-fetch-site"]
        inner = {**scope, "headers": [*headers, (b"authorization", f"Bearer {self._key}".encode())]}
        await self._application(inner, receive, send)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pages(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pages]:
    folder: Path = tmp_path_factory.mktemp("pages")
    async with run_node(Settings(data_dir=folder, drain_seconds=0)) as node:
        _, token = await node.keys.create(str(uuid.uuid4()), "test", scopes=frozenset(Permission))
        yield Pages(SignedIn(node.application, token.text))


async def test_a_channel_and_a_monitor_that_tells_it(pages: Pages) -> None:
    typed = [("kind", "webhook"), ("name", "Pager"), ("config.url", "https://example.com/alerts")]
    channel = (await pages.post("/channels/new", typed)).location.partition("?")[0]
    assert (await pages.get(channel)).tree.one("h1").text == "Pager"
    assert "Pager" in (await pages.get("/channels")).tree.one("tbody").text

    form = (await pages.get("/monitors/new")).tree.one("form", id="monitor-form")
    fields = dict(form.fields()) | {"name": "Backup", "schedule": "every day at 2am", "whom": "some"}
    fields |= {"notify.channels": channel.rpartition("/")[2], "notify.on": "down", "tags": "prod"}
    monitor = (await pages.post("/monitors/new", list(fields.items()))).location.partition("?")[0]
    shown = (await pages.get(monitor)).tree
    assert (shown.one("h1").text, "Pager" in shown.text) == ("Backup", True)
    assert re.search(r"/v1/ping/[0-9a-f]{64}", shown.text)
    assert "Backup" in (await pages.get("/monitors")).tree.one("tbody").text

    assert "Backup" in (await pages.get("/monitors?state=new&sort=name&tag=prod")).tree.one("tbody").text
    assert (await pages.get("/monitors?state=down")).tree.one("h2").text == "No monitor is like that"

    edited = (await pages.get(f"{monitor}/edit")).tree.one("form", id="monitor-form").fields()
    assert (await pages.post(f"{monitor}/edit", edited)).location == f"{monitor}?done=saved"
    assert (await pages.post(f"{monitor}/pause", [("for", "3600")])).status == 303
    assert "resumes in" in (await pages.get(monitor)).tree.text
    assert (await pages.post(f"{monitor}/rotate")).status == 303

    named = await pages.post(f"{channel}/delete")
    assert (named.status, len(named.tree.all("div", role="alert"))) == (409, 1)
    assert (await pages.post(f"{monitor}/delete")).status == 303
    assert (await pages.post(f"{channel}/delete")).location == "/channels?done=deleted"


async def test_what_is_refused_is_beside_its_field(pages: Pages) -> None:
    wrong = [
        ("name", ""),
        ("schedule", "every fortnight or so"),
        ("timezone", "Europe/Nowhere"),
        ("grace_period_seconds", "soon"),
        ("notify.remind_every", "1"),
        ("notify.remind_every_unit", "s"),
    ]
    refused = await pages.post("/monitors/new", wrong)
    assert refused.status == 422
    at_fault = {each.get("id").removesuffix("-error") for each in refused.tree.all("span", class_="error")}
    assert {"name", "grace_period_seconds", "notify.remind_every"} <= at_fault

    right = [("name", "x"), ("schedule", "every fortnight or so"), ("timezone", "UTC"), ("grace_period_seconds", "5")]
    refused = await pages.post("/monitors/new", right)
    assert [each.get("id") for each in refused.tree.all("span", class_="error")] == ["schedule-error"]

    for kind, field in (("slack", "url"), ("telegram", "token"), ("email", "to"), ("webhook", "url")):
        typed = [("kind", kind), ("name", "x"), (f"config.{field}", "nonsense"), ("config.chat_id", "@here")]
        refused = await pages.post("/channels/new", typed)
        assert refused.tree.one("span", id=f"config.{field}-error").text


async def test_a_secret_is_set_replaced_and_deleted(pages: Pages) -> None:
    typed = [("name", "STRIPE_KEY"), ("value", "a value that nobody sees"), ("allowed_hosts", "api.example.com")]
    assert (await pages.post("/secrets/new", typed)).location == "/secrets/STRIPE_KEY?done=saved"
    assert "api.example.com" in (await pages.get("/secrets/STRIPE_KEY")).tree.text
    for name, value, field in (
        ("lower", "long enough", "name"),
        ("A/B", "long enough", "name"),
        ("SHORT", "x", "value"),
    ):
        refused = await pages.post("/secrets/new", [("name", name), ("value", value)])
        assert refused.status == 422
        assert refused.tree.one("span", id=f"{field}-error").text
    hosts = [("value", "another value"), ("allowed_hosts", "not a host!")]
    refused = await pages.post("/secrets/STRIPE_KEY/replace", hosts)
    assert refused.tree.all("span", class_="error")
    assert (await pages.post("/secrets/STRIPE_KEY/replace", [("value", "another value")])).status == 303
    assert "any host" in (await pages.get("/secrets")).tree.text
    refused = await pages.post("/secrets/rotate")
    assert (refused.status, "about all teams" in refused.tree.text) == (403, True), "it is no first team's page"
    assert (await pages.post("/secrets/STRIPE_KEY/delete")).location == "/secrets?done=deleted"


async def test_the_preview_is_of_a_monitor(pages: Pages) -> None:
    shown = await pages.post("/monitors/preview", [("schedule", "every day"), ("timezone", "Europe/Paris")])
    assert "counted from the last success" in shown.tree.text
    shown = await pages.post("/monitors/preview", [("schedule", "0 2 * * *"), ("timezone", "Europe/Paris")])
    assert len(shown.tree.all("li")) == 5
    assert (await pages.get("/alerts")).status == 200


async def test_a_form_that_is_sent_twice_makes_one_thing(pages: Pages) -> None:
    fields = dict((await pages.get("/jobs/new")).tree.one("form", id="job").fields())
    fields |= {"name": "Report", "schedule": "0 0 1 1 *", "url": "http://127.0.0.1:9/report", "do": "save"}
    first, second = [await pages.post("/jobs/new", list(fields.items())) for _ in range(2)]
    job = first.location.partition("?")[0]
    assert second.location == f"{job}?done=created_before"
    assert len([each for each in (await pages.get("/jobs")).tree.all("a") if each.get("href") == job]) == 1

    other = (await pages.post("/jobs/new", list((fields | {"name": "Another"}).items()))).location
    assert other.startswith("/jobs/")
    assert other != first.location, "whoever goes back and changes the form wants a second job"

    run_now = (await pages.get(job)).tree.one("form", action=f"{job}/trigger").fields()
    said = [(await pages.post(f"{job}/trigger", run_now)).location for _ in range(2)]
    assert said == [f"{job}?done=triggered", f"{job}?done=triggered_before"]
    assert len(_runs(await pages.get(job))) == 1
    assert "not started a second time" in (await pages.get(said[1])).tree.text

    anew = (await pages.get(job)).tree.one("form", action=f"{job}/trigger").fields()
    assert (await pages.post(f"{job}/trigger", anew)).location == f"{job}?done=triggered"
    assert len(_runs(await pages.get(job))) == 2


async def test_a_refused_form_is_shown_with_another_key(pages: Pages) -> None:
    keys = []
    for path, typed in (
        ("/jobs/new", [("do", "save"), ("once", "the first")]),
        ("/monitors/new", [("once", "the first")]),
        ("/channels/new", [("kind", "slack"), ("once", "the first")]),
    ):
        refused = await pages.post(path, typed)
        assert refused.status == 422
        keys.append(refused.tree.one("input", name="once").get("value"))
    assert all(keys)
    assert len({"the first", *keys}) == 4


def _runs(shown: Shown) -> list[str]:
    return sorted({href for each in shown.tree.all("a") if (href := each.get("href")).startswith("/runs/")})
