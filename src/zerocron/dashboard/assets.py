"""The files that pages are made of: our sheets and scripts as one each, and what was fetched from elsewhere.

Owns their names, which hold a hash of their content, so that a browser keeps them for a year and never shows old ones.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
KEPT = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, and the same in fewer bytes."""

    path: str
    content: bytes
    packed: bytes
    media_type: str

    @classmethod
    def of(cls, name: str, content: bytes) -> Asset:
        digest = hashlib.sha256(content).hexdigest()[:12]
        stem, _, ending = name.rpartition(".")
        return cls(
            f"/static/{stem}-{digest}.{ending}", content, gzip.compress(content, 9, mtime=0), MEDIA_TYPES[ending]
        )

    def answer(self, request: Request) -> Response:
        headers = {"Cache-Control": KEPT, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


class Assets:
    """All of them, by name and by path."""

    def __init__(self) -> None:
        static = files("zerocron.dashboard").joinpath("static")
        ours = {
            "style.css": b"\n".join(_contents(static.joinpath("css"))),
            "app.js": b"\n".join(_contents(static.joinpath("js"))),
            "icon.svg": static.joinpath("icon.svg").read_bytes(),
        }
        vendor = static.joinpath("vendor")
        fetched = {it.name: it.read_bytes() for it in vendor.iterdir()} if vendor.is_dir() else {}
        self._by_name = {name: Asset.of(name, content) for name, content in {**fetched, **ours}.items()}
        self._by_path = {asset.path: asset for asset in self._by_name.values()}

    def path(self, name: str) -> str:
        """Where a page finds the file; empty when it was not fetched, and the page goes without."""
        asset = self._by_name.get(name)
        return "" if asset is None else asset.path

    def find(self, path: str) -> Asset | None:
        return self._by_path.get(path)


def _contents(folder: Traversable) -> Iterable[bytes]:
    return [it.read_bytes() for it in sorted(folder.iterdir(), key=lambda it: it.name)]
