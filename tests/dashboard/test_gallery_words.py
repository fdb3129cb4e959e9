"""Every page and state in French, on a phone: words of other languages are longer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.dashboard.gallery import TOO_WIDE, Gallery, open_gallery

from zerocron.dashboard.specimens import SPECIMENS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gallery() -> AsyncIterator[Gallery]:
    async with open_gallery("narrow") as it:
        yield it


@pytest.mark.parametrize("name", SPECIMENS)
async def test_a_page_fits_a_phone_in_french(gallery: Gallery, name: str) -> None:
    page = await gallery.show(name, "fr")
    assert await page.get_attribute("html", "lang") == "fr"
    assert await page.evaluate(TOO_WIDE) == []
    assert gallery.complaints == []
