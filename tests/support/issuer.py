"""An issuer of OpenID Connect on this machine, which answers as it is told: honest unless a test makes it lie."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from zerocron.clock import SystemClock

CLIENT_ID, CLIENT_SECRET = "zerocron", "a secret of the client & more"


@dataclass
class Issuer:
    """`claims` go into the next id token over the honest ones; `forge` makes the token out of header and claims."""

    claims: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] | None = None
    discovery: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    asked: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    url: str = ""
    path: str = ""

    key: RSAKey = field(init=False)

    def __post_init__(self) -> None:
        self.new_key()
        self._codes: dict[str, dict[str, str]] = {}

    def reset(self) -> None:
        """Be honest, and forget."""
        self.claims, self.userinfo, self.discovery, self.algorithm = {}, None, {}, "RS256"
        self.kid, self.shown = str(self.key.kid), [self.key.as_dict(private=False) | {"use": "sig"}]
        self.asked.clear()
        self.authorizations.clear()

    def new_key(self) -> None:
        self.kid = secrets.token_hex(4)
        self.key = RSAKey.generate_key(2048, parameters={"kid": self.kid})
        self.shown = [self.key.as_dict(private=False) | {"use": "sig"}]

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get(f"{self.path}/.well-known/openid-configuration", self._discover)
        app.router.add_get("/keys", self._keys)
        app.router.add_post("/token", self._token)
        app.router.add_get("/userinfo", self._userinfo)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}{self.path}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def grant(self, url: str, **more: str) -> dict[str, str]:
        """What comes back with the browser that was sent to this URL, after its person has signed in."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        return {"code": code, "state": query["state"]} | more

    @property
    def _base(self) -> str:
        return self.url.removesuffix(self.path) if self.path else self.url

    async def _discover(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self._base}/authorize",
            "token_endpoint": f"{self._base}/token",
            "jwks_uri": f"{self._base}/keys",
        }
        if self.userinfo is not None:
            document["userinfo_endpoint"] = f"{self._base}/userinfo"
        return web.json_response(document | self.discovery)

    async def _keys(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        return web.json_response({"keys": [{"kty": "new kind"}, *self.shown]})

    async def _userinfo(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        assert request.headers["Authorization"] == "Bearer access"
        return web.json_response(self.userinfo)

    async def _token(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        form = await request.post()
        self.authorizations.append(request.headers.get("Authorization", ""))
        begun = self._codes.pop(str(form["code"]), None)
        challenge = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        if begun is None or base64.urlsafe_b64encode(challenge).decode().rstrip("=") != begun["code_challenge"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        assert begun["code_challenge_method"] == "S256"
        assert form["redirect_uri"] == begun["redirect_uri"]
        return web.json_response({"access_token": "access", "token_type": "Bearer", "id_token": self._id_token(begun)})

    def _id_token(self, begun: dict[str, str]) -> str:
        now = SystemClock().now() // 1000
        honest = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": "ann-17",
            "email": "ann@example.com",
            "email_verified": True,
            "name": "Ann",
            "nonce": begun["nonce"],
            "iat": now,
            "exp": now + 300,
        }
        claims = {name: value for name, value in (honest | self.claims).items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.kid}
        if self.algorithm == "none":
            parts = [base64.urlsafe_b64encode(web.json_response(part).body).rstrip(b"=") for part in (header, claims)]  # type: ignore[arg-type]
            return b".".join([*parts, b""]).decode()
        if self.algorithm == "HS256":  # with what everybody can see as the key that both would share
            return jwt.encode(header, claims, OctKey.import_key(self.key.as_pem(private=False)), ["HS256"])
        return jwt.encode(header, claims, self.key, [self.algorithm])
