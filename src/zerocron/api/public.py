"""The addresses under `/v1/` that answer whoever asks, without a key and without a sign-in.

Owns the one list of them: the gate lets exactly these through, and each of their routes is marked `public` as well. Who
uses one proves by its body that they may. Pings are not here: they never come to the gate.
"""

from __future__ import annotations

PUBLIC_ROUTES = frozenset(
    {
        ("GET", "/v1/sign-in"),
        ("POST", "/v1/sign-in"),
        ("POST", "/v1/setup"),
        ("POST", "/v1/password-resets"),
        ("POST", "/v1/password-resets/use"),
        ("POST", "/v1/invitations/look"),
        ("POST", "/v1/invitations/accept"),
    }
)


def is_public(method: str, path: str) -> bool:
    return (method, path) in PUBLIC_ROUTES
