"""The client of a 0cron server: finds it, calls its API, and turns its answers into values and errors of the house.

Owns which server and which key are used, and how that is told when it goes wrong. A key that was found beside the data
of this machine is sent to this machine only. Redirects are not followed: they would take the key elsewhere.
"""

from __future__ import annotations

import codecs
import http.client
import ipaddress
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

from zerocron import __version__
from zerocron.cli.program import program
from zerocron.cli.show import Json
from zerocron.core.errors import (
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
    ZerocronError,
)
from zerocron.settings import Settings, client_variable

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_SECONDS = 30
ANSWER_BYTES_MAX = 256 * 1024 * 1024
PART_BYTES = 65_536
PAGE = 200
"""The most items that the API gives at once."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is and how to be let in, and by what that is known."""

    url: str
    url_from: str
    key: str | None
    key_from: str

    @property
    def is_local(self) -> bool:
        return _is_loopback(self.url)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the server, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> Any:
        """Its JSON; None when it has no body. Raises ValueError."""
        return json.loads(self.body) if self.body else None


def data_directory(given: Path | None) -> Path:
    return given or Path(client_variable("DATA_DIR") or "data")


def find_server(url: str | None = None, key: str | None = None, data_dir: Path | None = None) -> Server:
    """The server that options, environment and local files point to, in this order. Raises Invalid."""
    local = Settings(data_dir=data_directory(data_dir))
    urls: list[tuple[str | None, str]] = [
        (url, "--api-url"),
        (client_variable("API_URL"), "ZEROCRON_API_URL"),
        (_read(local.local_url_path), str(local.local_url_path)),
        (DEFAULT_URL, "the default"),
    ]
    keys: list[tuple[str | None, str]] = [(key, "--api-key"), (client_variable("API_KEY"), "ZEROCRON_API_KEY")]
    if data_dir is not None:
        urls[1], urls[2] = urls[2], urls[1]  # an option says more than the environment
    found_url, url_from = _first(urls)
    found_url = _checked_url(found_url, url_from)
    if _is_loopback(found_url):
        keys.insert(1 if data_dir is not None else 2, (_read(local.local_key_path), str(local.local_key_path)))
    found_key, key_from = _first(keys)
    return Server(found_url, url_from, _checked_key(found_key, key_from) or None, key_from)


def _first(candidates: list[tuple[str | None, str]]) -> tuple[str, str]:
    """The first text that is there and not blank, and where it is from."""
    for text, origin in candidates:
        if text is not None and text.strip():
            return text.strip(), origin
    return "", ""


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _checked_url(url: str, origin: str) -> str:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        fits = False
    if not fits or not url.isascii() or not url.isprintable() or " " in url or parts.query or parts.fragment:
        raise Invalid(f"{origin}: {url!r} is not the URL of a server. It looks like {DEFAULT_URL}.")
    if "@" in parts.netloc:
        raise Invalid(f"{origin}: leave the user name out of the URL; give the API key with ZEROCRON_API_KEY.")
    return url.rstrip("/")


def _checked_key(key: str, origin: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise Invalid(f"{origin}: this is not an API key. One looks like 0c_ followed by letters and digits.")
    return key


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Client:
    """Calls to one server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.opener = _opener(server)

    def get(self, path: str, **query: object) -> Json:
        """A document. Raises the house's errors."""
        return self.send("GET", path, query=query)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """What the server answers to a request that it accepts; {} when that is nothing. Raises the house's errors."""
        answer = self.call(method, path, body, query=query, idempotency_key=idempotency_key)
        if not 200 <= answer.status < 300:
            raise self._error_of(answer)
        try:
            return cast(Json, answer.document() or {})
        except ValueError:
            raise self._stranger() from None

    def pages(self, path: str, *, limit: int | None, **query: object) -> Json:
        """A list, its pages joined, up to `limit` items; `next_cursor` is null when it is whole."""
        items: list[Json] = []
        cursor: str | None = None
        while True:
            size = PAGE if limit is None else min(PAGE, limit - len(items))
            page = self.get(path, **query, limit=size, cursor=cursor)
            items += page["items"]
            cursor = page["next_cursor"]
            if cursor is None or (limit is not None and len(items) >= limit):
                return {"items": items, "next_cursor": cursor}

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """The answer, whatever its status. Raises Unavailable when there is none."""
        request = self._request(method, path, body, query=query, idempotency_key=idempotency_key)
        try:
            with self.opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                return _answer(response)
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None

    def stream(self, path: str, **query: object) -> Iterator[str]:
        """A text of any length, in parts, as it comes. Raises the house's errors, also when it breaks off."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            with self.opener.open(self._request("GET", path, query=query), timeout=TIMEOUT_SECONDS) as response:
                if response.status != 200:
                    raise self._error_of(_answer(response))
                while part := response.read(PART_BYTES):
                    yield decoder.decode(part)
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None

    def _request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> urllib.request.Request:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        request = urllib.request.Request(
            self.server.url + path + (f"?{urlencode(given)}" if given else ""),
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Accept": "application/json", "User-Agent": f"0cron-cli/{__version__}"},
        )
        if self.server.key is not None:
            request.add_unredirected_header("Authorization", f"Bearer {self.server.key}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        if idempotency_key is not None:
            request.add_header("Idempotency-Key", _header(idempotency_key))
        return request

    def _unreachable(self, error: OSError | http.client.HTTPException) -> Unavailable:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        url = self.server.url
        if isinstance(reason, TimeoutError):
            unavailable = Unavailable(f"The server at {url} did not answer within {TIMEOUT_SECONDS} seconds.")
        elif isinstance(reason, ConnectionRefusedError):
            unavailable = Unavailable(f"No server answers at {url} (from {self.server.url_from}).")
        else:
            text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            unavailable = Unavailable(f"The server at {url} (from {self.server.url_from}) cannot be reached: {text}.")
        unavailable.add_note(f"Start one here:       {program()} serve")
        unavailable.add_note("Or use another one:   set ZEROCRON_API_URL and ZEROCRON_API_KEY, or give --api-url")
        return unavailable

    def _error_of(self, answer: Answer) -> ZerocronError:
        if 300 <= answer.status < 400:
            target = answer.headers.get("location", "another address")
            return Invalid(f"{self.server.url} redirects to {target}. Use that as ZEROCRON_API_URL if you trust it.")
        try:
            document = answer.document()
        except ValueError:
            document = None
        if not isinstance(document, dict) or "detail" not in document:
            return self._stranger()
        if answer.status == 401:
            return self._not_let_in()
        return _problem(answer.status, document)

    def _not_let_in(self) -> Unauthorized:
        error = Unauthorized()
        server = self.server
        if server.key is None:
            error.message = f"{server.url} asks for an API key, and there is none."
            where = "its data directory (--data-dir)" if server.is_local else "that machine"
            error.add_note("Set ZEROCRON_API_KEY, or give --api-key.")
            error.add_note(f"The server keeps a key for its own machine in the file local-key in {where}.")
        else:
            error.message = f"{server.url} does not accept the API key from {server.key_from}."
            error.add_note("It may be revoked, or belong to another server. Keys are made with: 0cron keys create NAME")
        return error

    def _stranger(self) -> Unavailable:
        """Something answers that is no 0cron, such as a proxy or another program on that port."""
        error = Unavailable(f"What answers at {self.server.url} (from {self.server.url_from}) is not a 0cron server.")
        error.add_note("Set ZEROCRON_API_URL, or give --api-url, to say where the server is.")
        return error


def _answer(response: http.client.HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status, headers, response.read(ANSWER_BYTES_MAX))


def segment(text: str) -> str:
    """A text as one part of a path."""
    return quote(text, safe="")


def _header(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise Invalid("An idempotency key is made of printable ASCII characters.", field="Idempotency-Key")
    return text


def _opener(server: Server) -> urllib.request.OpenerDirector:
    """HTTP and nothing else; every status is an answer, and no proxy stands between this machine and itself."""
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.HTTPHandler())
    opener.add_handler(urllib.request.HTTPSHandler())
    if not server.is_local:
        opener.add_handler(urllib.request.ProxyHandler())
    return opener


def _problem(status: int, document: Json) -> ZerocronError:
    """The error that a problem (RFC 9457) tells of."""
    detail = str(document["detail"])
    if status == 403:
        return Forbidden(detail)
    if status == 404:
        return NotFound(detail)
    if status == 409:
        return Conflict(detail)
    if status == 413:
        return TooLarge(detail)
    if status in (429, 502, 503, 504):
        return Unavailable(detail)
    if 400 <= status < 500:
        faults = [FieldError(str(fault["field"]), str(fault["message"])) for fault in document.get("errors", ())]
        return Invalid(detail, fields=faults, suggestions=[str(text) for text in document.get("suggestions", ())])
    error = ZerocronError(detail)
    if "error_id" in document:
        error.add_note(f"error_id: {document['error_id']}")
    return error
