"""A request on the wire: exactly the bytes that were asked for, and nothing guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from yarl import URL

from zerocron.core.errors import Invalid
from zerocron.core.requests import check_method, split_url

# These are ours: with a second one the target and we would not mean the same message. Refused when a job is saved, and
# here once more, whoever the caller is.
_FRAMING = frozenset(
    ("connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade")
)
_WITHOUT_BODY = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))  # the others say a length, even if it is zero
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")  # a line break would begin another header
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Wire(NamedTuple):
    """A request as it goes out: `head`, then `body`."""

    url: URL
    origin: URL
    literal: bool  # the host is an address
    head: bytes
    body: bytes
    answer_has_body: bool  # unless its status says otherwise


def wire_of(method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes | None, user_agent: str) -> Wire:
    """Raises Invalid, with `url`, `method` or `headers` as its field."""
    target = _target_of(url)
    verb = _wire_method(method)
    sent = [("Host", target.host), *headers]
    if "user-agent" not in {_wire_name(name) for name, _ in headers}:
        sent.insert(1, ("User-Agent", user_agent))
    if body is not None or verb not in _WITHOUT_BODY:
        sent.append(("Content-Length", str(len(body or b""))))
    for name, value in sent:
        if _UNSENDABLE.search(value):
            raise Invalid(
                f"The value of the header {name[:40]!r} holds a character that cannot be sent.", field="headers"
            )
    lines = [f"{verb} {target.url.raw_path_qs} HTTP/1.1", *(f"{name}: {value}" for name, value in sent)]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    return Wire(target.url, target.origin, target.literal, head, body or b"", verb != "HEAD")


@lru_cache(maxsize=4096)
def _wire_name(name: str) -> str:
    """In lower case. Raises Invalid for a name that is no token, and for those that are ours."""
    folded = name.lower()
    if folded in _FRAMING or not _TOKEN.fullmatch(name):
        raise Invalid(f"A request cannot carry the header {name[:40]!r}.", field="headers")
    return folded


# What a query or path may hold on the wire as it is. The rest (other scripts, and signs that RFC 3986 leaves out) is
# percent-encoded; nothing that is already encoded changes.
_WIRE_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"<>^`{|}')


class _Target(NamedTuple):
    url: URL
    origin: URL
    host: str  # as the header says it
    literal: bool


@lru_cache(maxsize=4096)
def _target_of(url: str) -> _Target:
    """The URL as it is sent, and what follows from it."""
    split = split_url(url)
    rest = quote(split.rest.partition("#")[0], safe=_WIRE_CHARACTERS)
    path, _, query = rest.partition("?")
    host = f"[{split.host}]" if ":" in split.host else split.host
    port = "" if split.port is None else f":{split.port}"
    sent = URL(f"{split.scheme}://{host}{port}{path or '/'}{'?' if query else ''}{query}", encoded=True)
    return _Target(sent, sent.origin(), sent.host_port_subcomponent or "", split.literal)


_wire_method = lru_cache(maxsize=256)(check_method)
