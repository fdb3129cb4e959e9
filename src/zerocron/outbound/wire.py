"""A request in aiohttp's terms: exactly the bytes that were asked for, and nothing guessed."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from zerocron.core.errors import Invalid
from zerocron.core.requests import check_method, split_url
from zerocron.outbound import probe as probes

LARGE_BODY_BYTES = 256 * 1024  # written in slices; aiohttp refuses to write 1 MB at once

# These are ours: with a second one the target and we would not mean the same message. Refused when a job is saved, and
# here once more, whoever the caller is.
_FRAMING = frozenset(
    ("connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade")
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Wire(NamedTuple):
    method: str
    url: URL
    literal: bool  # the host is an address
    headers: list[tuple[str, str]]
    data: bytes | io.BytesIO | None


def wire_of(method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes | None, user_agent: str) -> Wire:
    """Raises Invalid, with `url`, `method` or `headers` as its field."""
    wire_url, literal = _wire_url(url)
    sent = list(headers)
    names = {_wire_name(name) for name, _ in sent}
    if "user-agent" not in names:
        sent.insert(0, ("User-Agent", user_agent))
    data = io.BytesIO(body) if body is not None and len(body) > LARGE_BODY_BYTES else body
    return Wire(_wire_method(method), wire_url, literal, sent, data)


@lru_cache(maxsize=4096)
def _wire_name(name: str) -> str:
    """Lower case. aiohttp refuses line breaks in a name, and sends blanks and empty names as they are."""
    folded = name.lower()
    if folded in _FRAMING or not _TOKEN.fullmatch(name):
        raise Invalid(f"A request cannot carry the header {name[:40]!r}.", field="headers")
    return folded


# What a query or path may hold on the wire as it is. The rest (other scripts, and signs that RFC 3986 leaves out) is
# percent-encoded; nothing that is already encoded changes.
_WIRE_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"<>^`{|}')


@lru_cache(maxsize=4096)
def _wire_url(url: str) -> tuple[URL, bool]:
    """The URL as it is sent, and whether its host is an address."""
    split = split_url(url)
    rest = quote(split.rest.partition("#")[0], safe=_WIRE_CHARACTERS)
    path, _, query = rest.partition("?")
    host = f"[{split.host}]" if ":" in split.host else split.host
    port = "" if split.port is None else f":{split.port}"
    return URL(f"{split.scheme}://{host}{port}{path or '/'}{'?' if query else ''}{query}", encoded=True), split.literal


_wire_method = lru_cache(maxsize=256)(check_method)


class WireRequest(aiohttp.ClientRequest):
    """A request with exactly the headers it was given.

    They come in the probe: on the session's own way aiohttp merges "X-A" with "x-a", and adds Accept, Accept-Encoding
    and Content-Type.
    """

    _SKIPPED: CIMultiDict[None] = CIMultiDict({"Content-Type": None})

    def update_headers(self, headers: object) -> None:
        probe = probes.current.get()
        given = () if probe is None else probe.headers
        self.headers = CIMultiDict([("Host", self.url.host_port_subcomponent or ""), *given])

    def update_auto_headers(self, skip_auto_headers: object) -> None:
        self._skip_auto_headers = self._SKIPPED


@lru_cache(maxsize=256)
def timeout_of(seconds: float) -> aiohttp.ClientTimeout:
    # aiohttp takes zero for "none", and by default rounds deadlines beyond 5 s up to a whole second.
    return aiohttp.ClientTimeout(total=max(seconds, 0.001), ceil_threshold=float("inf"))
