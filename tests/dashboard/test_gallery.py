"""Every page and state in a real browser: nothing that people with other eyes or hands would stumble over.

axe-core looks at each specimen in light and dark, wide and narrow; the console stays silent, nothing is asked of
another host, and nothing is wider than a phone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
import pytest_asyncio
from docs.screenshots import WIDTHS, chromium, served
from playwright.async_api import Browser, Page

from zerocron.dashboard.specimens import SPECIMENS

pytestmark = pytest.mark.asyncio(loop_scope="module")

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
LOOK = """async (rules) => (await axe.run(document, rules)).violations.map(
    (each) => `${each.id}: ${each.help}: ` + each.nodes.map((node) => node.html.slice(0, 200)).join(" | "))"""
TOO_WIDE = """() => [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > window.innerWidth + 1)
    .filter((each) => !each.closest(".list-frame, pre, .tabs, nav, .visually-hidden, svg, .scrolls"))
    .map((each) => each.outerHTML.slice(0, 120))"""


class Gallery(NamedTuple):
    url: str
    browser: Browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gallery() -> AsyncIterator[Gallery]:
    async with served() as url, chromium() as browser:
        yield Gallery(url, browser)


async def opened(gallery: Gallery, name: str, scheme: Literal["light", "dark"], width: str) -> tuple[Page, list[str]]:
    """The specimen in a browser of its own, and whatever the browser has to complain of."""
    size = WIDTHS[width]
    context = await gallery.browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = await context.new_page()
    complaints: list[str] = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith((gallery.url, "data:")) else complaints.append(request.url),
    )
    await page.goto(f"{gallery.url}/-/specimens/{name}")
    return page, complaints


@pytest.mark.parametrize(("scheme", "width"), [("light", "wide"), ("dark", "narrow")])
@pytest.mark.parametrize("name", SPECIMENS)
async def test_a_page_is_for_everybody(
    gallery: Gallery, name: str, scheme: Literal["light", "dark"], width: str
) -> None:
    page, complaints = await opened(gallery, name, scheme, width)
    try:
        await page.evaluate(AXE.read_text(encoding="utf-8"))
        assert await page.evaluate(LOOK, RULES) == []
        assert await page.evaluate(TOO_WIDE) == []
        # The browser itself notes the status of a page that is an error.
        assert [each for each in complaints if "Failed to load resource" not in each] == []
        assert await page.locator("h1").count() == 1
    finally:
        await page.context.close()


@pytest.mark.parametrize("language", ["fr", "es"])
@pytest.mark.parametrize("name", SPECIMENS)
async def test_a_page_is_in_one_language(gallery: Gallery, name: str, language: str) -> None:
    """And fits a phone in it: words of other languages are longer."""
    context = await gallery.browser.new_context(viewport={"width": 390, "height": 844})
    try:
        page: Any = await context.new_page()
        await page.goto(f"{gallery.url}/-/specimens/{name}?language={language}")
        assert await page.get_attribute("html", "lang") == language
        assert await page.evaluate(TOO_WIDE) == []
    finally:
        await context.close()
