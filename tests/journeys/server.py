"""A real server: `0cron serve` as a process of its own, and a person who talks to it over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

T = TypeVar("T")
START_SECONDS_MAX = 30


async def eventually(look: Callable[[], Awaitable[T | None]], what: str, seconds: float = 20) -> T:
    """The first thing that is found. Raises AssertionError, naming what was waited for, after the deadline."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while (found := await look()) is None:
        assert loop.time() < deadline, f"{what} did not come within {seconds} s"
        future: asyncio.Future[None] = loop.create_future()
        loop.call_later(0.02, lambda moment=future: moment.done() or moment.set_result(None))
        await future
    return found


class Server:
    """The process. It can be killed and started again on the same data."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.log = data_dir.with_name(f"{data_dir.name}.log")
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, *arguments: str) -> None:
        (self.data_dir / "local-url").unlink(missing_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ZEROCRON_")}  # noqa: TID251
        environment = inherited | {
            "ZEROCRON_DATA_DIR": str(self.data_dir),
            "ZEROCRON_PORT": "0",
            "ZEROCRON_OUTBOUND_ALLOW": "127.0.0.0/8",
            "ZEROCRON_DRAIN_SECONDS": "0",
        }
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "zerocron", "serve", *arguments, env=environment, stdout=log, stderr=log
            )

        async def listening() -> bool | None:
            assert self._process is not None
            assert self._process.returncode is None, self.log.read_text()
            return True if (self.data_dir / "local-url").exists() else None

        await eventually(listening, "the server", START_SECONDS_MAX)

    @property
    def url(self) -> str:
        return (self.data_dir / "local-url").read_text().strip()

    @property
    def key(self) -> str:
        return (self.data_dir / "local-key").read_text().strip()

    async def kill(self) -> None:
        """As a power cut would."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(number)
            async with asyncio.timeout(20):
                await process.wait()


@contextlib.asynccontextmanager
async def serving(data_dir: Path, *arguments: str) -> AsyncIterator[Server]:
    """A server that runs until the block is left, however it is left."""
    server = Server(data_dir)
    try:
        await server.start(*arguments)
        yield server
    finally:
        await server.kill()


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
