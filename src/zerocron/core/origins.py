"""Did a browser send this from a page of ours? The one rule against requests that other sites make in somebody's name.

A request that changes something, and that a browser may have been made to send, has to say `Sec-Fetch-Site:
same-origin`. Browsers leave that out over plain HTTP: then its `Origin` has to be ours. Neither can be set by a page. A
request with neither is refused; every browser of today sends one of them, and programs use an API key.

Pure: the API's gate asks it about cookies, the dashboard about its forms.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

FOREIGN = (
    "This did not come from a page of this server, so it is not done in your name. Open the page anew, and try again. "
    "Programs use an API key."
)
"""What is told of a request that is not."""

SAFE_METHODS = frozenset({"GET", "HEAD"})
_PORTS = {"http": 80, "https": 443}


def is_same_origin(
    method: str,
    *,
    sec_fetch_site: str | None,
    origin: str | None,
    host: str | None,
    own_origins: Collection[str] = (),
) -> bool:
    """Whether the request may act with the browser's cookies. The arguments are its headers, None where it has none.

    `own_origins`: URLs at which this server is known to be reached, such as its base URL; their paths do not count.
    """
    if method in SAFE_METHODS:
        return True
    if sec_fetch_site is not None:
        return sec_fetch_site == "same-origin"
    given = _origin(origin or "")
    if given is None:
        return False
    scheme, name, port = given
    return _origin(f"{scheme}://{host or ''}") == given or (scheme, name, port) in map(_origin, own_origins)


def _origin(url: str) -> tuple[str, str, int] | None:
    """(scheme, host, port); None for what is none, such as `null`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port
