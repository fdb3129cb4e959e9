"""The gallery of specimens in a real browser, for the tests that look at each of them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal

from docs.screenshots import WIDTHS, chromium, served
from playwright.async_api import ConsoleMessage, Page, Request

TOO_WIDE = """() => [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > window.innerWidth + 1)
    .filter((each) => !each.closest(".list-frame, pre, .tabs, nav, .visually-hidden, svg, .scrolls"))
    .map((each) => each.outerHTML.slice(0, 120))"""
"""What sticks out of the page, other than what scrolls by itself."""


@dataclass
class Gallery:
    """One page that goes from specimen to specimen: a page of its own for each would be a process for each."""

    url: str
    page: Page
    complaints: list[str] = field(default_factory=list)
    """What the browser had to complain of since the specimen was opened."""

    def listen(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)

    async def show(self, name: str, language: str = "en") -> Page:
        """The page, with the specimen in it."""
        await self.page.goto("about:blank")
        self.complaints.clear()
        await self.page.goto(f"{self.url}/-/specimens/{name}?language={language}")
        return self.page

    def _said(self, message: ConsoleMessage) -> None:
        # The browser itself notes the status of a page that is an error.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:", "about:")):
            self.complaints.append(f"asks {request.url}")


@contextlib.asynccontextmanager
async def open_gallery(
    width: Literal["wide", "narrow"], scheme: Literal["light", "dark"] = "light"
) -> AsyncIterator[Gallery]:
    size = WIDTHS[width]
    async with served() as url, chromium() as browser:
        context = await browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
        )
        gallery = Gallery(url, await context.new_page())
        gallery.listen()
        yield gallery
