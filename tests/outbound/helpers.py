"""What the tests of this folder share: a way to ask, and an Outbound that tells what it would have dialled."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import aiohttp

from zerocron.outbound import Failure, Outbound, Outcome, Request, Response

USER_AGENT = "0cron/test"
LOCAL = "127.0.0.0/8, [::1]"


class Dialling(Outbound):
    """Stops behind the gate: every address that passed is in `dialled`, and answers as if nothing listened there."""

    dialled: list[str]

    def _open_socket(self, addr_info: aiohttp.AddrInfoType) -> socket.socket:
        super()._open_socket(addr_info).close()
        self.dialled.append(str(addr_info[4][0]))
        raise OSError(errno.ECONNREFUSED, "the test goes no further")


def request(
    url: str,
    *,
    method: str = "GET",
    headers: Sequence[tuple[str, str]] = (),
    body: bytes | None = None,
    timeout: float = 5.0,
    redirects: int = 0,
    secret_headers: Collection[str] = (),
    verify_tls: bool = True,
) -> Request:
    return Request(
        method=method,
        url=url,
        headers=headers,
        body=body,
        timeout_seconds=timeout,
        redirects=redirects,
        secret_headers=frozenset(secret_headers),
        verify_tls=verify_tls,
    )


def response_of(outcome: Outcome) -> Response:
    assert outcome.failure is None, outcome.failure
    assert outcome.response is not None
    return outcome.response


def failure_of(outcome: Outcome, kind: str) -> Failure:
    assert outcome.response is None, outcome.response
    assert outcome.failure is not None
    assert outcome.failure.kind == kind, outcome.failure
    assert outcome.failure.message.endswith(".")
    return outcome.failure


async def until(condition: Callable[[], bool], timeout: float = 3.0) -> None:
    """For what tells nobody when it happens: look every few milliseconds, up to a deadline."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(timeout):
        while not condition():
            moment = loop.create_future()
            loop.call_later(0.005, moment.set_result, None)
            await moment


class Names:
    """A resolver for `zerocron.outbound.getaddrinfo`. A list of addresses answers; a list of lists, one per look-up."""

    def __init__(self, table: Mapping[str, Sequence[str] | Sequence[Sequence[str]]]) -> None:
        self._table = table
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, *_: object, **__: object) -> list[tuple[Any, ...]]:
        self.asked.append(host)
        answers = self._table.get(host)
        if answers is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if answers and not isinstance(answers[0], str):
            answers = answers[min(self.asked.count(host), len(answers)) - 1]
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                socket.IPPROTO_TCP,
                "",
                (address, port, 0, 0) if ":" in address else (address, port),
            )
            for address in map(str, answers)
        ]
