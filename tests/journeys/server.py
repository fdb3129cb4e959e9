"""A real server: `0cron serve` as a process of its own, and a person who talks to it over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import aiohttp

T = TypeVar("T")
SECONDS_MAX = 90
"""A deadline, not a measure: what a start takes on a machine that is busy with other tests."""


async def eventually(look: Callable[[], Awaitable[T | None]], what: str, seconds: float = 60) -> T:
    """The first thing that is found. Raises AssertionError, naming what was waited for, after the deadline."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while (found := await look()) is None:
        assert loop.time() < deadline, f"{what} did not come within {seconds} s"
        await _moment(loop)
    return found


async def _moment(loop: asyncio.AbstractEventLoop) -> None:
    future: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(0.02, future.set_result, None)
    try:
        await future
    finally:
        timer.cancel()


class Server:
    """The process. It can be killed and started again on the same data."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str] | None = None, *, module: str = "zerocron") -> None:
        self.data_dir = data_dir
        self._settings = dict(settings or {})
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What it is told; nothing of ours from outside gets in."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ZEROCRON_")}  # noqa: TID251
        own = {
            "ZEROCRON_DATA_DIR": str(self.data_dir),
            "ZEROCRON_PORT": "0",
            "ZEROCRON_OUTBOUND_ALLOW": "127.0.0.0/8",
            "ZEROCRON_DRAIN_SECONDS": "0",
        }
        return inherited | own | self._settings

    def start(self, *arguments: str) -> None:
        """Start it, and wait until it says that it is running."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, "serve", *arguments],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        said = _read_until(self._process.stdout, b"is running at")
        assert said, self.said

    @property
    def log(self) -> Path:
        return self.data_dir.with_name(f"{self.data_dir.name}.log")

    @property
    def said(self) -> str:
        """What it wrote to its standard error so far."""
        return self.log.read_text()

    @property
    def url(self) -> str:
        return (self.data_dir / "local-url").read_text().strip()

    @property
    def key(self) -> str:
        return (self.data_dir / "local-key").read_text().strip()

    def kill(self) -> None:
        """As a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            with process:
                process.send_signal(number)
                process.wait(SECONDS_MAX)


def _read_until(stream: IO[bytes] | None, words: bytes) -> bytes:
    """What the process says up to these words; nothing when it ends or falls silent before."""
    assert stream is not None
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while words not in said:
            part = os.read(stream.fileno(), 4_096) if selector.select(SECONDS_MAX) else b""
            if not part:
                return b""
            said += part
    return said


@contextlib.contextmanager
def serving(data_dir: Path, *arguments: str, settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A server that runs until the block is left, however it is left."""
    server = Server(data_dir, settings)
    try:
        server.start(*arguments)
        yield server
    finally:
        server.kill()


class Person:
    """Somebody with the key of the server and an HTTP client."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def ask(self, method: str, path: str, document: Any = None, *, status: int = 200) -> Any:
        """One request, over a connection of its own; the answer's JSON."""
        headers = {"Authorization": f"Bearer {self._server.key}"}
        async with (
            aiohttp.ClientSession(self._server.url, headers=headers) as session,
            session.request(method, path, json=document) as answer,
        ):
            assert answer.status == status, await answer.text()
            return await answer.json() if status != 204 else None

    async def creates(self, **job: Any) -> dict[str, Any]:
        made: dict[str, Any] = await self.ask("POST", "/v1/jobs", job, status=201)
        return made

    async def triggers(self, job: dict[str, Any]) -> dict[str, Any]:
        run: dict[str, Any] = await self.ask("POST", f"/v1/jobs/{job['id']}/trigger", status=202)
        return run

    async def history(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        """Its runs, oldest first."""
        page = await self.ask("GET", f"/v1/jobs/{job['id']}/runs?limit=200")
        return list(reversed(page["items"]))

    async def sees(self, run_id: str, *statuses: str) -> dict[str, Any]:
        """The run, once it has one of these statuses."""

        async def look() -> dict[str, Any] | None:
            run: dict[str, Any] = await self.ask("GET", f"/v1/runs/{run_id}")
            return run if run["status"] in statuses else None

        return await eventually(look, f"a run that is {' or '.join(statuses)}")

    async def pauses_everything(self) -> None:
        for job in (await self.ask("GET", "/v1/jobs?status=active&limit=200"))["items"]:
            await self.ask("POST", f"/v1/jobs/{job['id']}/pause")
