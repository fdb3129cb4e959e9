"""The gallery of specimens in a real browser, for the tests that look at each of them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple

from docs.screenshots import WIDTHS, chromium, served
from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request

TOO_WIDE = """() => [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > window.innerWidth + 1)
    .filter((each) => !each.closest(".list-frame, pre, .tabs, nav, .visually-hidden, svg, .scrolls"))
    .map((each) => each.outerHTML.slice(0, 120))"""
"""What sticks out of the page, other than what scrolls by itself."""


class Gallery(NamedTuple):
    url: str
    context: BrowserContext

    @contextlib.asynccontextmanager
    async def opened(self, name: str, language: str = "en") -> AsyncIterator[tuple[Page, list[str]]]:
        """The specimen, and whatever the browser has to complain of."""
        page = await self.context.new_page()
        complaints: list[str] = []

        def said(message: ConsoleMessage) -> None:
            # The browser itself notes the status of a page that is an error.
            if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
                complaints.append(message.text)

        def asked(request: Request) -> None:
            if not request.url.startswith((self.url, "data:")):
                complaints.append(f"asks {request.url}")

        page.on("console", said)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", asked)
        try:
            await page.goto(f"{self.url}/-/specimens/{name}?language={language}")
            yield page, complaints
        finally:
            await page.close()


@contextlib.asynccontextmanager
async def open_gallery(
    width: Literal["wide", "narrow"], scheme: Literal["light", "dark"] = "light"
) -> AsyncIterator[Gallery]:
    size = WIDTHS[width]
    async with served() as url, chromium() as browser:
        context = await browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
        )
        yield Gallery(url, context)
