"""What a proxy says of the request that it passes on: whose it is, and whether it came over TLS.

Owns the one place where `scope["client"]` and `scope["scheme"]` become what they really are, before anything else looks
at them; and the header by which a proxy says who has signed in. `core.proxies` says what is believed. From a connection
that is no trusted proxy's that header is taken away, so that nobody behind here can mistake it for a truth.
"""

from __future__ import annotations

from starlette.types import Scope

from zerocron.core.proxies import SIGNED_IN_AS, TrustedProxies, origin_of

VALUE_BYTES_MAX = 1_000


class Forwarded:
    """What is believed of one server's proxies. `header`: by which they say who has signed in; empty: by none."""

    def __init__(self, trusted: TrustedProxies, header: str = "") -> None:
        self._trusted = trusted
        self._header = header.lower().encode("ascii")

    def applied(self, scope: Scope) -> Scope:
        """The scope of a request as it is to be seen from here on. Applied again, as when a page asks the API within
        the process, it changes nothing."""
        if not self._trusted:
            return scope
        peer = scope.get("client")
        origin = origin_of(peer[0] if peer else "", scope["headers"], self._trusted)
        seen = {**scope, "scheme": origin.scheme or scope.get("scheme", "http")}
        if origin.is_trusted:
            seen["client"] = (origin.address, 0)  # nobody knows the port
        if self._header:
            said = [value for name, value in scope["headers"] if name == self._header]
            seen["headers"] = [pair for pair in scope["headers"] if pair[0] != self._header]
            if origin.is_trusted and said:
                is_one = len(said) == 1 and len(said[0]) <= VALUE_BYTES_MAX
                seen[SIGNED_IN_AS] = said[0].decode("latin-1").strip() if is_one else ""  # which is nobody
        return seen
