"""Pictures of the pages: `python -m docs.screenshots [--out FOLDER] [--all] [NAME...]`.

Without names: those specimens that the documentation shows, light and dark, wide, into `docs/screenshots`. With `--all`
every specimen named (or all of them), light and dark, wide and narrow: for looking at what one changed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from playwright.async_api import Browser, async_playwright

from zerocron.dashboard import gallery
from zerocron.dashboard.specimens import SPECIMENS

CHROMIUM = "/usr/bin/chromium"
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
WIDTHS = {"wide": (1280, 800), "narrow": (390, 844)}
SHOWN = Path(__file__).parent / "screenshots"


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[str]:
    """The gallery, on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(gallery.application(), log_level="warning", lifespan="off"))
    task = asyncio.create_task(server._serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            yield browser
        finally:
            await browser.close()


async def take(names: list[str], folder: Path, *, widths: list[str], language: str) -> list[Path]:
    """One picture for each specimen, scheme and width, in the folder, which is there."""
    taken = []
    async with served() as url, chromium() as browser:
        for scheme in ("light", "dark"):
            for width in widths:
                size = WIDTHS[width]
                context = await browser.new_context(
                    viewport={"width": size[0], "height": size[1]},
                    color_scheme="dark" if scheme == "dark" else "light",
                    reduced_motion="reduce",
                )
                page = await context.new_page()
                for name in names:
                    await page.goto(f"{url}/-/specimens/{name}?language={language}")
                    path = folder / "-".join([name, scheme, *([width] if len(widths) > 1 else [])])
                    path = path.with_name(path.name + ".png")
                    await page.screenshot(path=path, full_page=True)
                    taken.append(path)
                await context.close()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="specimens; all that are shown without any")
    parser.add_argument("--out", type=Path, default=SHOWN)
    parser.add_argument("--all", action="store_true", help="every specimen, wide and narrow")
    parser.add_argument("--language", default="en")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(SPECIMENS))
    if unknown:
        parser.error(f"there is no specimen {', '.join(unknown)}; those there are: {', '.join(sorted(SPECIMENS))}")
    names = given.names or [name for name, each in SPECIMENS.items() if given.all or each.is_shown]
    widths = ["wide", "narrow"] if given.all or given.names else ["wide"]
    given.out.mkdir(parents=True, exist_ok=True)
    for path in asyncio.run(take(names, given.out, widths=widths, language=given.language)):
        print(path)  # noqa: T201


if __name__ == "__main__":
    main()
