"""People in front of a browser: a newcomer who makes a job in French, and somebody with a phone on the train.

The real server, the real pages, Debian's Chromium. What the pages say is looked for as people do: by its words.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from docs.screenshots import WIDTHS, chromium
from playwright.async_api import Browser, ConsoleMessage, Page, expect
from tests.journeys.server import Server, serving
from tests.support.target import Exchange, Target

from zerocron.core.model import BODY_BYTES_MAX

pytestmark = pytest.mark.timeout(300)

PATIENT_MS = 60_000
PASSWORD = "trois petits tours"


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as it:
        yield it


def setup_link(server: Server) -> str:
    command = [sys.executable, "-m", "zerocron", "setup-link", "--data-dir", str(server.data_dir)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=server.environment).stdout
    found = re.search(r"http://\S+/setup/\S+", said)
    assert found is not None, said
    return found[0]


async def page_of(browser: Browser, complaints: list[str], *, locale: str, width: str = "wide") -> Page:
    """A browser of somebody's own; what it complains of is written down."""
    size = WIDTHS[width]
    context = await browser.new_context(
        locale=locale, timezone_id="Europe/Paris", viewport={"width": size[0], "height": size[1]}
    )
    context.set_default_timeout(PATIENT_MS)
    page = await context.new_page()

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    page.on("console", said)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page


async def become_owner(page: Page, link: str) -> None:
    await page.goto(link)
    await page.fill("[name=name]", "Ada Moreau")
    await page.fill("[name=email]", "ada@example.com")
    await page.fill("[name=password]", PASSWORD)
    await page.locator("form:has([name=email]) button.button-main").click()
    await page.wait_for_url(re.compile(r"/(\?.*)?$"))


async def test_a_newcomer_makes_a_job_in_french_sees_it_run_break_and_mend(tmp_path: Path, browser: Browser) -> None:
    complaints: list[str] = []
    heard: list[str] = []
    async with Target() as target:

        def inbox(exchange: Exchange) -> None:
            heard.append(exchange.request.body.decode())
            exchange.answer(204, b"", [])

        target.on("/inbox", inbox)
        target.on("/bonjour", lambda exchange: exchange.answer(200, b"bonjour", []))
        with serving(tmp_path / "data", settings={"ZEROCRON_OUTBOUND_ALLOW": "127.0.0.0/8"}) as server:
            page = await page_of(browser, complaints, locale="fr-FR")
            await become_owner(page, setup_link(server))
            await expect(page.locator("html")).to_have_attribute("lang", "fr")

            await page.goto(f"{server.url}/channels/new?kind=webhook")
            await page.fill("[name=name]", "astreinte")
            await page.fill("[name='config.url']", f"{target.url}/inbox")
            await page.locator("main form button.button-main").first.click()
            await page.wait_for_url(re.compile(r"/channels/[0-9a-f-]{36}"))

            await page.goto(f"{server.url}/jobs/new")
            await page.fill("[name=name]", "Dire bonjour")
            await page.fill("[name=url]", f"{target.url}/bonjour")
            await page.type("[name=schedule]", "toutes les 2 secondes")
            await expect(page.locator("#preview")).to_contain_text("Europe/Paris")
            await page.get_by_role("button", name="Créer la tâche").click()
            await page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}"))
            job = page.url.partition("?")[0]
            await expect(page.locator("a[href^='/runs/']").first).to_be_visible(timeout=PATIENT_MS)

            target.on("/bonjour", lambda exchange: exchange.answer(500, b'{"erreur": "panne"}', []))
            await expect(page.locator("main .badge-bad").first).to_be_visible(timeout=PATIENT_MS)
            await page.goto(f"{server.url}/")
            await expect(page.get_by_text("Dire bonjour").first).to_be_visible()
            await page.goto(job)
            failed = page.locator("tr:has(.badge-bad) a[href^='/runs/']").first
            await page.goto(server.url + str(await failed.get_attribute("href")))
            await expect(page.locator("main")).to_contain_text("500")
            await expect(page.locator("main")).to_contain_text("panne")

            target.on("/bonjour", lambda exchange: exchange.answer(200, b"bonjour", []))
            await page.goto(job)
            await expect(page.locator("main table .badge-good").first).to_be_visible(timeout=PATIENT_MS)
            await page.goto(f"{server.url}/alerts")
            await expect(page.locator("main")).to_contain_text("Dire bonjour")
            assert any("Dire bonjour" in message for message in heard)
    assert complaints == []


async def test_with_a_phone_one_pauses_a_job_and_thinks_better_of_it(tmp_path: Path, browser: Browser) -> None:
    complaints: list[str] = []
    with serving(tmp_path / "data", "--demo") as server:
        page = await page_of(browser, complaints, locale="en-GB", width="narrow")
        await become_owner(page, setup_link(server))
        await page.goto(f"{server.url}/jobs")
        await page.get_by_role("link", name="Demo: say hello").click()
        await page.get_by_role("button", name="Pause").click()
        await expect(page.get_by_role("status")).to_contain_text("Paused")
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("button", name="Pause")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert complaints == []


async def test_an_owner_invites_somebody_who_may_look_and_lets_them_go(tmp_path: Path, browser: Browser) -> None:
    complaints: list[str] = []
    hers: list[str] = []
    with serving(tmp_path / "data", "--demo") as server:
        ada = await page_of(browser, complaints, locale="en-GB")
        await become_owner(ada, setup_link(server))
        await ada.goto(f"{server.url}/members/invite")
        if await ada.locator("[name=password]").count():  # who she is has to be proved a moment before
            await ada.fill("[name=password]", PASSWORD)
            await ada.get_by_role("button", name="Go on").click()
        await ada.fill("[name=email]", "grace@example.com")
        await ada.get_by_role("radio", name="Viewer").check()
        await ada.get_by_role("button", name="Invite").click()
        link = re.search(r"http://\S+/invitation/[\w-]+", await ada.locator("main").inner_text())
        assert link is not None

        grace = await page_of(browser, hers, locale="es-ES")
        await grace.goto(link[0])
        await grace.fill("[name=name]", "Grace")
        await grace.fill("[name=password]", "una contraseña larga")
        await grace.locator("form:has([name=name]) button.button-main").click()
        await grace.wait_for_url(re.compile(r"/(\?.*)?$"))
        await grace.goto(f"{server.url}/jobs")
        await grace.get_by_role("link", name="Demo: say hello").click()
        await expect(grace.locator("h1")).to_contain_text("Demo: say hello")
        assert await grace.locator("form[action$='/pause'], form[action$='/trigger']").count() == 0
        refused = await grace.goto(f"{server.url}/jobs/new")
        assert refused is not None
        assert refused.status == 403

        assert [each for each in hers if "403" not in each] == []  # the browser itself notes that status

        await ada.goto(f"{server.url}/members")
        await ada.get_by_role("link", name="Grace").click()
        ada.once("dialog", lambda dialog: dialog.accept())
        await ada.get_by_role("button", name="Remove").click()
        await ada.wait_for_url(re.compile(r"/members(\?.*)?$"))
        await expect(ada.locator("main")).not_to_contain_text("grace@example.com")
        await grace.goto(f"{server.url}/jobs")
        await expect(grace.locator("main")).not_to_contain_text("Demo: say hello")
        await ada.goto(f"{server.url}/audit")
        await expect(ada.locator("main")).to_contain_text("Grace")
    assert complaints == []


async def test_a_long_list_grows_where_one_looks_at_it(tmp_path: Path, browser: Browser) -> None:
    complaints: list[str] = []
    made_of = "(names) => Promise.all(names.map((name) => fetch('/v1/monitors', {method: 'POST', body: JSON.stringify("
    made_of += "{name, schedule: 'every day at 2am'}), headers: {'Content-Type': 'application/json'}})))"
    renamed = "(url) => fetch(url, {method: 'PATCH', body: JSON.stringify({name: 'Monitor 070, renamed'}), "
    renamed += "headers: {'Content-Type': 'application/json'}})"
    with serving(tmp_path / "data") as server:
        page = await page_of(browser, complaints, locale="en-GB")
        await become_owner(page, setup_link(server))
        await page.evaluate(made_of, [f"Monitor {number:03}" for number in range(120)])
        await page.goto(f"{server.url}/monitors?sort=name")
        rows, more = page.locator("table tbody.page-rows tr"), page.get_by_role("link", name="Show more")
        await expect(rows).to_have_count(50)
        for count in (100, 120):
            await more.focus()
            place = await page.evaluate("window.scrollY")
            assert place > 0
            await page.keyboard.press("Enter")
            await expect(rows).to_have_count(count)
            assert await page.evaluate("window.scrollY") == place
            await expect(rows.nth(100 if count == 120 else 50).get_by_role("link").first).to_be_focused()
        await expect(more).to_have_count(0)
        assert await rows.locator("a.name").all_inner_texts() == [f"Monitor {number:03}" for number in range(120)]

        await page.evaluate("window.scrollTo(0, 2500)")
        await page.evaluate(renamed, str(await rows.nth(70).locator("a.name").get_attribute("href")).join(("/v1", "")))
        await expect(rows.nth(70)).to_contain_text("Monitor 070, renamed")
        await expect(rows).to_have_count(120)
        assert await page.evaluate("window.scrollY") == 2500

        await page.evaluate(made_of, ["A new one"])  # which pushes a row out of the first page
        await expect(rows.first).to_contain_text("A new one")
        for _ in range(2):
            async with page.expect_response(re.compile("chunk=1&part=rows")):
                await page.evaluate("htmx.trigger('#rows-1', 'fresh')")
            await expect(page.locator("#rows-1.htmx-request, #rows-1.htmx-settling")).to_have_count(0)
        await expect(rows).to_have_count(121)
        names = [name.removesuffix(", renamed") for name in await rows.locator("a.name").all_inner_texts()]
        assert names == ["A new one", *(f"Monitor {number:03}" for number in range(120))]
        gone = str(await rows.first.locator("a.name").get_attribute("href"))
        await page.evaluate("(url) => fetch(url, {method: 'DELETE'})", f"/v1{gone}")
        await expect(rows.first).to_contain_text("Monitor 000")
        await expect(rows).to_have_count(120)
    assert complaints == []


async def test_a_body_as_long_as_can_be_is_pasted_and_a_longer_one_is_refused_in_place(
    tmp_path: Path, browser: Browser
) -> None:
    complaints: list[str] = []
    longest = "é" * (BODY_BYTES_MAX // 2)  # six characters each in an ordinary form
    with serving(tmp_path / "data") as server:
        page = await page_of(browser, complaints, locale="en-GB")
        await become_owner(page, setup_link(server))
        await page.goto(f"{server.url}/jobs/new")
        await page.fill("[name=name]", "Long")
        await page.fill("[name=url]", "https://example.com/")
        await page.fill("[name=schedule]", "every hour")
        body = page.locator("[name=body]")
        await body.evaluate("(each) => each.closest('details').open = true")
        await body.fill(longest + "é")
        await page.get_by_role("button", name="Create job").click()
        told = await body.evaluate("(each) => each.validationMessage")
        assert told.startswith("The body is longer than 1,048,576 bytes.")
        assert len(await body.input_value()) == len(longest) + 1

        await body.fill(longest)
        await page.get_by_role("button", name="Create job").click()
        await page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}"))
        await page.goto(page.url.partition("?")[0] + "/edit")
        assert await body.input_value() == longest
    assert complaints == []
