"""What every request passes before a route sees it, and every answer before it leaves.

Owns the order of things: the bounds on the address, then who is asking, then the bounds on the body and what counts as
JSON. Everything under `/v1/` needs an API key or the cookie of a sign-in because it is there, not because a route asks
for one; who has none learns nothing, not even which addresses exist. Pings never come here: their token is their key.
The few addresses in `api.public` answer everybody. Puts the security headers on every answer, and turns what nobody
foresaw into a problem. Must never hold more of a request than its bound.

A request shows a key or a cookie. One that shows both is refused rather than read in one of two ways. An
`Authorization` that is no key of ours (a proxy in front may ask for one of its own) does not count beside a cookie.
What a browser can be made to send, with a cookie or to a public address, has to come from a page of ours
(`core.origins`) unless it only reads, and has to call its body JSON, which no form can.
"""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zerocron.api.cookies import is_tls, token_of
from zerocron.api.json_text import read_json
from zerocron.api.problems import of_error, problem, unforeseen
from zerocron.api.public import is_public
from zerocron.api.services import BEARER, IS_HEAD, STILL, Services
from zerocron.core.access import Bearer
from zerocron.core.errors import Forbidden, NotFound, TooLarge, Unauthorized, ZerocronError
from zerocron.core.opaque import is_opaque
from zerocron.core.origins import FOREIGN, is_same_origin
from zerocron.core.proxies import SIGNED_IN_AS

REQUEST_BYTES_MAX = 1_572_864
"""A job's body of 1 MB, its escapes, and the rest of the job."""

CHECKED_AT_ONCE_BYTES_MAX = 65_536
"""A larger body is checked in a thread: half a million brackets take half a second, in which runs would be late."""

ADDRESS_BYTES_MAX = 8_192
"""Path and query together."""

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'"
    ),
}
_OVER_TLS = {"Strict-Transport-Security": "max-age=31536000"}
_WITHOUT_TLS = {"Referrer-Policy": "same-origin"}
"""There a browser tells only by `Origin` where a form comes from, and under `no-referrer` it would say `null`."""

BOTH = "This request shows an API key and the cookie of a sign-in. Send one of them only."


class Gate:
    """ASGI middleware, the outermost of the API."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(scope, send, self._services.base_url)
        try:
            await self._pass(scope, receive, answer)
        except ZerocronError as error:
            await of_error(error)(scope, receive, answer)
        except Exception as error:
            if answer.started:
                raise  # too late for another answer: the server cuts the connection
            await unforeseen(scope, error)(scope, receive, answer)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _bad_address(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        if is_head:
            scope = {**scope, "method": "GET"}  # the answer's body is left out on its way back
        if not scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        if is_public(scope["method"], scope["path"]):
            bearer = None
            self._check_origin(scope)
        elif self._shows_both(scope):
            await problem(HTTPStatus.BAD_REQUEST, BOTH)(scope, receive, send)
            return
        else:
            bearer = await self._bearer(scope)
        is_of_browser = bearer is None or bearer.sign_in_id is not None
        refusal = _encoded(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        body = await _read(scope, receive)
        if body is None:
            return  # the client has gone
        if body and is_of_browser and not _is_called_json(scope):
            await problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send JSON, with the header 'Content-Type: application/json'."
            )(scope, receive, send)
            return
        if len(body) > CHECKED_AT_ONCE_BYTES_MAX:
            await asyncio.to_thread(read_json, body)
        elif body:
            read_json(body)
        told = {STILL: partial(self._bearer, scope), IS_HEAD: is_head}
        await self._app({**_as_json(scope, bearer), **told}, _replay(body, receive), send)

    def _shows_both(self, scope: Scope) -> bool:
        given = Headers(scope=scope).getlist("authorization")
        token = token_of(scope, self._services.base_url)
        return token is not None and is_opaque(token) and any(value.lower().startswith("bearer ") for value in given)

    async def _bearer(self, scope: Scope) -> Bearer:
        """Who is asking, with their address. Raises Unauthorized, Forbidden."""
        given = Headers(scope=scope).getlist("authorization")
        token = token_of(scope, self._services.base_url)
        if token is None or not is_opaque(token):
            if len(given) != 1:
                raise Unauthorized
            bearer = await self._services.keys.recognise(given[0])
        else:
            self._check_origin(scope)
            bearer = await self._services.entrance.sign_ins.recognise(token, scope.get(SIGNED_IN_AS))
        address = (scope.get("client") or ("",))[0]
        return dataclasses.replace(bearer, actor=dataclasses.replace(bearer.actor, address=address))

    def _check_origin(self, scope: Scope) -> None:
        """Raises Forbidden for what another site may have made a browser send."""
        headers = Headers(scope=scope)
        base_url = self._services.base_url
        if not is_same_origin(
            scope["method"],
            sec_fetch_site=headers.get("sec-fetch-site"),
            origin=headers.get("origin"),
            host=headers.get("host"),
            own_origins=(base_url,) if base_url else (),
        ):
            raise Forbidden(FOREIGN)


class _Answer:
    """Sends on, with the security headers; without the body when only the head was asked for."""

    def __init__(self, scope: Scope, send: Send, base_url: str) -> None:
        self._send = send
        self._head_only = scope["method"] == "HEAD"
        self._extra = SECURITY_HEADERS | (_OVER_TLS if is_tls(scope, base_url) else _WITHOUT_TLS)
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in self._extra.items():
                headers.setdefault(name, value)
        elif self._head_only and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


def _bad_address(scope: Scope) -> Response | None:
    length = len(scope.get("raw_path") or scope["path"].encode()) + len(scope.get("query_string", b""))
    if length > ADDRESS_BYTES_MAX:
        return problem(
            HTTPStatus.REQUEST_URI_TOO_LONG, f"An address has at most {ADDRESS_BYTES_MAX:,} bytes, its query included."
        )
    if "\0" in scope["path"]:  # PostgreSQL cannot even be asked about it
        return of_error(NotFound("There is nothing at this address: it holds a NUL character."))
    return None


def _encoded(scope: Scope) -> Response | None:
    coding = Headers(scope=scope).get("content-encoding", "identity")
    if coding.lower() == "identity":
        return None
    return problem(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "Bodies are taken as they are. Leave out the Content-Encoding.",
        headers={"Accept-Encoding": "identity"},
    )


def _is_called_json(scope: Scope) -> bool:
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


async def _read(scope: Scope, receive: Receive) -> bytes | None:
    """The body, or None when the client went away. Raises TooLarge as soon as that is known."""
    declared = Headers(scope=scope).get("content-length", "")
    if declared.isdecimal() and (len(declared) > 12 or int(declared) > REQUEST_BYTES_MAX):
        raise _too_large()
    content = bytearray()  # not a list of what came: a byte at a time would take many times its bound
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        content += message.get("body", b"")
        if len(content) > REQUEST_BYTES_MAX:
            raise _too_large()
        if not message.get("more_body", False):
            return bytes(content)


def _too_large() -> TooLarge:
    return TooLarge(f"A request has at most {REQUEST_BYTES_MAX:,} bytes. Keep large data where the job can fetch it.")


def _as_json(scope: Scope, bearer: Bearer | None) -> Scope:
    """What the routes get. The body is JSON or was refused, however it was named."""
    headers = [pair for pair in scope["headers"] if pair[0] != b"content-type"]
    seen = {**scope, "headers": [*headers, (b"content-type", b"application/json")]}
    return seen if bearer is None else {**seen, BEARER: bearer}


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
