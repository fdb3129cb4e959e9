"""An issuer of OpenID Connect: where it sends people, what it gives for a code, and its keys.

Owns the conversation, which goes through `send`, the guarded door of every request: no redirects, one deadline, bounded
answers. What the issuer says of itself and its keys are remembered for an hour; a key that is not among them is asked
for at most once a minute. Must never keep or log a code, a token or the client's secret.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import orjson

from zerocron.clock import Clock
from zerocron.core.exchange import Outcome, Request
from zerocron.core.id_tokens import Claims, NotGenuine, UnknownKey, claims_of, read_id_token
from zerocron.core.single_sign_on import Flow, NotNow, Purpose, Refusal, SignInRefused

Send = Callable[[Request], Awaitable[Outcome]]
Json = dict[str, Any]

TIMEOUT_SECONDS = 10.0
ANSWER_BYTES_MAX = 262_144
REMEMBERED_SECONDS = 3_600.0
NEW_KEYS_SECONDS = 60.0
AT_ONCE_MAX = 20
"""Of conversations: what strangers begin must not take what jobs need."""


@dataclass(frozen=True, slots=True)
class Client:
    """This server, as the issuer knows it. Without a secret it is a public client, whose proof is PKCE alone."""

    issuer: str
    id: str
    secret: str = field(repr=False)
    redirect_uri: str


@dataclass(frozen=True, slots=True)
class _Endpoints:
    authorization: str
    token: str
    keys: str
    userinfo: str | None
    takes_basic: bool


class Issuer:
    """One issuer, and this server as a client of it."""

    def __init__(self, *, client: Client, send: Send, clock: Clock) -> None:
        self._client = client
        self._send = send
        self._clock = clock
        self._asking = asyncio.Lock()
        self._under_way = 0
        self._endpoints: tuple[_Endpoints, float] | None = None
        self._keys: tuple[list[Json], float] | None = None

    @property
    def url(self) -> str:
        return self._client.issuer

    async def sign_in_url(self, flow: Flow) -> str:
        """Where a browser is sent to. Raises SignInRefused."""
        endpoint = (await self._discovered()).authorization
        challenge = hashlib.sha256(flow.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": self._client.redirect_uri,
            "scope": "openid email profile",
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        if flow.purpose != Purpose.SIGN_IN:  # not by whom somebody happens to be signed in as there
            query |= {"prompt": "login", "max_age": "0"}
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"

    async def claims(self, code: str, flow: Flow) -> Claims:
        """Who signed in, for the code that came with the browser. Raises SignInRefused."""
        if self._under_way >= AT_ONCE_MAX:
            raise NotNow(Refusal.BUSY)
        self._under_way += 1
        try:
            answer = await self._exchange(code, flow)
            found = await self._read(answer, flow)
            return found if found.email else await self._with_email(found, answer)
        except NotGenuine as error:
            raise SignInRefused(Refusal.ISSUER, f"the id token is refused: {error}") from None
        finally:
            self._under_way -= 1

    async def _exchange(self, code: str, flow: Flow) -> Json:
        endpoints = await self._discovered()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._client.redirect_uri,
            "code_verifier": flow.verifier,
        }
        headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
        if self._client.secret and endpoints.takes_basic:
            pair = f"{quote(self._client.id, safe='')}:{quote(self._client.secret, safe='')}"
            headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        else:
            form["client_id"] = self._client.id
            if self._client.secret:
                form["client_secret"] = self._client.secret
        return await self._ask("POST", endpoints.token, headers, urlencode(form).encode(), what="token endpoint")

    async def _read(self, answer: Json, flow: Flow) -> Claims:
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise NotGenuine("there is none")
        try:
            return self._genuine(token, await self._shown_keys(REMEMBERED_SECONDS), flow)
        except UnknownKey:
            return self._genuine(token, await self._shown_keys(NEW_KEYS_SECONDS), flow)

    def _genuine(self, token: str, keys: list[Json], flow: Flow) -> Claims:
        return read_id_token(
            token,
            keys,
            issuer=self._client.issuer,
            client_id=self._client.id,
            nonce=flow.nonce,
            now=self._clock.now(),
        )

    async def _with_email(self, found: Claims, answer: Json) -> Claims:
        """Some issuers give the address only to who asks for it by itself."""
        endpoint, access = (await self._discovered()).userinfo, answer.get("access_token")
        if endpoint is None or not isinstance(access, str) or not access.isascii() or not access.isprintable():
            return found
        headers = [("Authorization", f"Bearer {access}"), ("Accept", "application/json")]
        told = claims_of(await self._ask("GET", endpoint, headers, None, what="userinfo endpoint"))
        if told.subject != found.subject:
            raise NotGenuine("the userinfo endpoint tells of somebody else")
        return Claims(told.subject, told.email, told.is_email_verified, found.name or told.name, found.auth_time)

    async def _discovered(self) -> _Endpoints:
        async with self._asking:
            now = self._clock.monotonic()
            if self._endpoints is None or now - self._endpoints[1] >= REMEMBERED_SECONDS:
                url = self._client.issuer.rstrip("/") + "/.well-known/openid-configuration"
                self._endpoints = (self._endpoints_of(await self._get(url, "discovery document")), now)
            return self._endpoints[0]

    async def _shown_keys(self, seconds: float) -> list[Json]:
        """The issuer's keys, as they were no longer ago than that."""
        endpoint = (await self._discovered()).keys
        async with self._asking:
            now = self._clock.monotonic()
            if self._keys is None or now - self._keys[1] >= seconds:
                shown = (await self._get(endpoint, "keys")).get("keys")
                self._keys = ([key for key in shown if isinstance(key, dict)] if isinstance(shown, list) else [], now)
            return self._keys[0]

    def _endpoints_of(self, document: Json) -> _Endpoints:
        if document.get("issuer") != self._client.issuer:
            raise SignInRefused(Refusal.ISSUER, "the discovery document is of another issuer; compare to the last sign")
        methods = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        userinfo = document.get("userinfo_endpoint")
        return _Endpoints(
            authorization=self._endpoint(document, "authorization_endpoint"),
            token=self._endpoint(document, "token_endpoint"),
            keys=self._endpoint(document, "jwks_uri"),
            userinfo=None if userinfo is None else self._endpoint(document, "userinfo_endpoint"),
            takes_basic="client_secret_basic" in methods if isinstance(methods, list) else True,
        )

    def _endpoint(self, document: Json, name: str) -> str:
        """Over TLS, unless the operator chose an issuer without it."""
        url = document.get(name)
        schemes = ("https", "http") if self._client.issuer.startswith("http:") else ("https",)
        if (
            not isinstance(url, str)
            or urlsplit(url).scheme not in schemes
            or not url.isascii()
            or not url.isprintable()
        ):
            raise SignInRefused(Refusal.ISSUER, f"the discovery document has no usable {name}")
        return str(url)

    async def _get(self, url: str, what: str) -> Json:
        return await self._ask("GET", url, [("Accept", "application/json")], None, what=what)

    async def _ask(
        self, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None, *, what: str
    ) -> Json:
        outcome = await self._send(Request(method, url, headers, body, TIMEOUT_SECONDS, redirects=0))
        if outcome.response is None:
            reason = outcome.failure.message if outcome.failure else ""
            raise NotNow(Refusal.ISSUER, f"{what}: {reason}")
        if outcome.response.status != 200 or len(outcome.response.body) > ANSWER_BYTES_MAX:
            kind = NotNow if outcome.response.status >= 500 else SignInRefused
            raise kind(Refusal.ISSUER, f"{what}: it answered {outcome.response.status}{_error(outcome)}")
        return _json(outcome.response.body, what)


def _json(body: bytes, what: str) -> Json:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise SignInRefused(Refusal.ISSUER, f"{what}: the answer is no JSON object")
    return found


_ERRORS = frozenset(
    ("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type")
)


def _error(outcome: Outcome) -> str:
    """The error by its name in the standard; other words of the issuer are not repeated."""
    found: Mapping[str, Any] = {}
    if outcome.response is not None:
        try:
            found = _json(outcome.response.body[:ANSWER_BYTES_MAX], "")
        except SignInRefused:
            return ""
    return f" ({found['error']})" if found.get("error") in _ERRORS else ""
