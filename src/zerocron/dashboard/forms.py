"""What browsers send of a form, in both of its codings, as names and texts.

Owns the bounds. Percent signs make a text up to six times as long, so a form with long texts is `multipart/form-data`,
which makes at most its line ends longer. Must never take a file, and never spend more on a form than its length: what a
library makes of every byte in Python, `bytes.split` does at once.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

FIELDS_MAX = 500
FORM_BYTES_MAX = 1_572_864
LONG_FORM_BYTES_MAX = 4_194_304
"""A job's body of 1 MB that is line ends alone, twice as long, and the rest of the job."""

_BOUNDARY = re.compile(r'multipart/form-data\s*;\s*boundary="?([0-9A-Za-z\'()+_,./:=?-]{1,70})"?\s*', re.IGNORECASE)
_NAME = re.compile(rb'form-data; name="([^"]{0,200})"', re.IGNORECASE)
_HEAD_BYTES_MAX = 1_000


class Form:
    """The fields of a form: texts, the last of each name, or all of a name."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def get(self, name: str, default: str = "") -> str:
        """The field with the blanks around it taken away."""
        found = [value for key, value in self._pairs if key == name]
        return found[-1].strip() if found else default

    def raw(self, name: str) -> str:
        """The field as it was typed, with the line ends of a text area as they are elsewhere."""
        found = [value for key, value in self._pairs if key == name]
        return found[-1].replace("\r\n", "\n") if found else ""

    def all(self, name: str) -> list[str]:
        return [value.strip() for key, value in self._pairs if key == name]

    def has(self, name: str) -> bool:
        return any(key == name for key, _ in self._pairs)

    def pairs(self) -> list[tuple[str, str]]:
        return list(self._pairs)


def read_form(content: bytes, content_type: str) -> Form:
    """The fields that were sent. Raises ValueError."""
    boundary = _BOUNDARY.fullmatch(content_type)
    if boundary is not None:
        return Form(_parts(content, boundary[1].encode()))
    return Form(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX))


def _parts(content: bytes, boundary: bytes) -> list[tuple[str, str]]:
    """Of RFC 7578, as browsers write it: what is quoted in a name is percent-encoded."""
    pieces = (b"\r\n" + content).split(b"\r\n--" + boundary, FIELDS_MAX + 2)
    if len(pieces) > FIELDS_MAX + 2 or not pieces[-1].startswith(b"--"):
        raise ValueError("too many fields, or no end")
    pairs = []
    for piece in pieces[1:-1]:
        head, found, value = piece.partition(b"\r\n\r\n")
        name = _NAME.search(head[:_HEAD_BYTES_MAX])
        if not found or name is None or b"filename" in head[:_HEAD_BYTES_MAX]:
            raise ValueError("not a field")
        pairs.append((unquote(name[1].decode()), value.decode()))
    return pairs
