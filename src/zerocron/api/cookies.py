"""The cookie of a sign-in: its name, its attributes, and what of a request it is.

Over TLS it is called `__Host-0cron`, which a browser takes from this host alone, over TLS, for all paths; elsewhere, as
on a LAN, `0cron`. Only the one that fits is read: the other could have been planted by whoever is on the network. Must
never log one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, MutableMapping
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response

SECURE_NAME = "__Host-0cron"
PLAIN_NAME = "0cron"


def is_tls(scope: Mapping[str, Any], base_url: str) -> bool:
    """Whether the browser came over TLS: the request did, or the server is reached so, through a proxy."""
    return scope.get("scheme") == "https" or base_url.startswith("https://")


def is_secure(scope: Mapping[str, Any], base_url: str) -> bool:
    """Whether nobody on the way could read a password: over TLS, or from this machine."""
    if is_tls(scope, base_url):
        return True
    try:
        return ipaddress.ip_address((scope.get("client") or ("",))[0]).is_loopback
    except ValueError:
        return False


def cookie_name(scope: Mapping[str, Any], base_url: str) -> str:
    return SECURE_NAME if is_tls(scope, base_url) else PLAIN_NAME


def token_of(scope: MutableMapping[str, Any], base_url: str) -> str | None:
    """What the request's cookie holds; None when it has none."""
    text = "; ".join(Headers(scope=scope).getlist("cookie"))
    return cookie_parser(text).get(cookie_name(scope, base_url)) if text else None


def set_cookie(
    response: Response, scope: Mapping[str, Any], base_url: str, token: str, *, max_age_seconds: int
) -> None:
    """Let the browser keep the token. No script sees it, and no other site has it sent but by a plain link."""
    response.set_cookie(
        cookie_name(scope, base_url),
        token,
        max_age=max_age_seconds,
        path="/",
        secure=is_tls(scope, base_url),
        httponly=True,
        samesite="lax",
    )


def clear_cookie(response: Response, scope: Mapping[str, Any], base_url: str) -> None:
    """Let the browser forget it."""
    set_cookie(response, scope, base_url, "", max_age_seconds=0)
