"""Every page and state in a real browser: nothing that people with other eyes or hands would stumble over.

axe-core looks at each specimen, at its contrasts in the dark, too; the console stays silent, nothing is asked of
another host, and on a phone nothing is wider than it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.dashboard.gallery import TOO_WIDE, Gallery, open_gallery

from zerocron.dashboard.specimens import SPECIMENS

pytestmark = pytest.mark.asyncio(loop_scope="module")

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOK = """async (rules) => (await axe.run(document, { runOnly: rules, resultTypes: ["violations"] })).violations.map(
    (each) => `${each.id}: ${each.help}: ` + each.nodes.map((node) => node.html.slice(0, 200)).join(" | "))"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wide() -> AsyncIterator[Gallery]:
    async with open_gallery("wide", "light") as it:
        yield it


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def narrow() -> AsyncIterator[Gallery]:
    async with open_gallery("narrow", "dark") as it:
        yield it


@pytest.mark.parametrize("name", SPECIMENS)
async def test_a_page_is_for_everybody(wide: Gallery, name: str) -> None:
    page = await wide.show(name)
    await page.evaluate(AXE.read_text(encoding="utf-8"))
    assert await page.evaluate(LOOK, RULES) == []
    assert await page.locator("h1").count() == 1
    assert wide.complaints == []


@pytest.mark.parametrize("name", SPECIMENS)
async def test_a_page_is_good_on_a_phone_in_the_dark(narrow: Gallery, name: str) -> None:
    page = await narrow.show(name)
    await page.evaluate(AXE.read_text(encoding="utf-8"))
    assert await page.evaluate(LOOK, ["wcag2aa", "wcag22aa"]) == []
    assert await page.evaluate(TOO_WIDE) == []
    assert narrow.complaints == []


@pytest.mark.parametrize("name", [name for name, each in SPECIMENS.items() if each.form is not None])
async def test_a_specimen_of_a_form_shows_its_form(wide: Gallery, name: str) -> None:
    """Also to whoever opened the gallery by its address: it was an error page then, and all that looked at it missed
    the form."""
    page = await wide.show(name)
    assert "did not come from a page of this server" not in await page.locator("main").inner_text()


@pytest.mark.parametrize("name", ["system", "secrets", "overview"])
async def test_where_one_is_is_in_sight_on_a_phone(narrow: Gallery, name: str) -> None:
    page = await narrow.show(name)
    box = await page.locator(".places [aria-current]").bounding_box()

    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert await page.evaluate("window.scrollY") == 0
