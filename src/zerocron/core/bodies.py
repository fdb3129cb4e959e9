"""The body of an answer, read piece by piece under one cap, and as text. Pure: bytes in, bytes or text out.

The cap holds for what came over the wire, for what is kept, and for every stage of decoding between the two, so that
neither a bomb, nor a bomb in a bomb, nor a million empty members costs more than a capped answer does. What cannot be
decoded is kept as it came: a wrong label must not cost anybody the answer.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator

_BLOCK = 64 * 1024
_CODINGS_MAX = 3
_MEMBERS_MAX = 1_000  # of one gzip stream
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_BITS, _ZLIB_BITS, _RAW_BITS = 31, 15, -15


class Body:
    """Feed it until it says stop or the answer ends, then call `end`."""

    __slots__ = ("_cap", "_decoders", "_full", "_kept", "_pieces", "_raw", "decode_error", "truncated", "wire_bytes")

    def __init__(self, content_encoding: str | None, bytes_max: int) -> None:
        self._cap = bytes_max
        self._decoders = () if content_encoding is None else _decoders(content_encoding, bytes_max)
        self._pieces: list[bytes] = []
        self._raw: list[bytes] = []  # as received, until something has been decoded
        self._kept = 0
        self._full = False
        self.wire_bytes = 0
        self.truncated = False
        self.decode_error: str | None = None

    def feed(self, data: bytes) -> bool:
        """Take a piece. False: there is no use in reading on."""
        self.wire_bytes += len(data)
        if not self._decoders:
            self._keep(data)
        else:
            if self._kept == 0:
                self._raw.append(data)
            try:
                self._push(0, data)
            except _Undecodable as error:
                self._give_up(str(error))
            if self._kept:
                self._raw.clear()
        if self.wire_bytes > self._cap:
            self._full = True
        if self._full:
            self.truncated = True
        return not self._full

    def end(self) -> None:
        """The answer is complete."""
        if self._decoders and self.wire_bytes and not all(decoder.ended for decoder in self._decoders):
            self._give_up("the compressed data ends early")

    @property
    def content(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def _push(self, stage: int, data: bytes) -> None:
        """Through the decoders from `stage` on, one block at a time."""
        if stage == len(self._decoders):
            self._keep(data)
            return
        for block in self._decoders[stage].blocks(data):
            self._push(stage + 1, block)
            if self._full:
                return
        if self._decoders[stage].overflown:
            self._full = True

    def _keep(self, data: bytes) -> None:
        room = self._cap - self._kept
        if len(data) > room:
            self._full = True
            data = data[:room]
        if data:
            self._pieces.append(data)
            self._kept += len(data)

    def _give_up(self, reason: str) -> None:
        self.decode_error = f"The body is not what its Content-Encoding says: {reason}."
        self._decoders = ()
        if self._kept == 0:
            for piece in self._raw:
                self._keep(piece)
        else:
            self.truncated = self._full = True


class _Undecodable(Exception):
    pass


class _Decoder:
    """One coding. Never makes more than a block at a time, and stops by itself beyond the cap."""

    __slots__ = ("_cap", "_closed", "_gzip", "_held", "_made", "_members", "_zlib", "ended", "overflown")

    def __init__(self, coding: str, cap: int) -> None:
        self._gzip = coding != "deflate"
        self._cap = cap
        self._zlib: zlib._Decompress | None = None  # None between members
        self._held = b""  # the start of a member, until it can be told what it is
        self._closed = False
        self._made = 0
        self._members = 0
        self.ended = False  # what has come so far is complete
        self.overflown = False

    def blocks(self, data: bytes) -> Iterator[bytes]:
        while data and not (self._closed or self.overflown):
            member = self._zlib or self._begin(data)
            if member is None:
                return
            data, self._held = self._held + data, b""
            try:
                block = member.decompress(data, _BLOCK)
                while block:
                    self._made += len(block)
                    self.overflown = self._made > self._cap
                    yield block
                    if self.overflown or len(block) < _BLOCK:
                        break
                    block = member.decompress(member.unconsumed_tail, _BLOCK)  # there may be more without input left
            except zlib.error:
                raise _Undecodable("the data is damaged or not compressed that way") from None
            data = member.unconsumed_tail
            if member.eof:
                data = member.unused_data
                self._zlib = None
                self.ended = True

    def _begin(self, data: bytes) -> zlib._Decompress | None:
        """Look at the first two bytes of a member. Gzip files may be joined; padding behind the end is ignored."""
        start = (self._held + data)[:2]
        if len(start) < 2:
            self._held = start
            return None
        if self._members and not (self._gzip and start == _GZIP_MAGIC):
            self._closed = True
            return None
        self._members += 1
        if self._members > _MEMBERS_MAX:
            raise _Undecodable("it has too many parts")
        if self._gzip:
            bits = _GZIP_BITS
        else:
            # "deflate" means the zlib format, yet half of the world sends the bare stream. RFC 1950 has a check.
            bits = _ZLIB_BITS if start[0] & 0x0F == 8 and int.from_bytes(start) % 31 == 0 else _RAW_BITS
        self._zlib = zlib.decompressobj(bits)
        self.ended = False
        return self._zlib


def _decoders(content_encoding: str, cap: int) -> tuple[_Decoder, ...]:
    """The last coding was put on last, so it comes off first. With one that we do not know, the body stays as it is."""
    codings = [
        coding for part in content_encoding.split(",") if (coding := part.strip().lower()) not in ("", "identity")
    ]
    if len(codings) > _CODINGS_MAX or not all(coding in ("gzip", "x-gzip", "deflate") for coding in codings):
        return ()
    return tuple(_Decoder(coding, cap) for coding in reversed(codings))


# By name, because Python knows text encodings that are not for strangers' bytes: "punycode" takes time that grows with
# the square of the length, "unicode_escape" is a language.
_CHARSETS = frozenset(
    (
        *("ascii", "us-ascii", "utf8", "utf-8", "utf-16", "utf-16le", "utf-16be", "latin1", "latin-1"),
        *(f"iso-8859-{part}" for part in range(1, 17) if part != 12),
        *(f"windows-{page}" for page in range(1250, 1259)),
        *("koi8-r", "koi8-u", "gb2312", "gbk", "gb18030", "big5", "euc-jp", "euc-kr", "shift_jis", "iso-2022-jp"),
    )
)
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([A-Za-z0-9_-]+)", re.IGNORECASE)
_NOT_IN_TEXT = re.compile("[\x00-\x08\x0b\x0e-\x1f]")


def as_text(content: bytes, content_type: str | None, *, truncated: bool) -> str | None:
    """The body as people and rules read it; None for what is no text. Never holds a NUL, which databases refuse.

    UTF-8 comes first whatever the label says, then the charset of the label, then, for a text without one, what such
    texts mostly are. Of a body that was cut, half a character at the end is left out.
    """
    if (text := _decoded(content, "utf-8", truncated)) is not None and "\0" not in text:
        return text
    declared = _CHARSET.search(content_type or "")
    if declared is not None:
        name = declared[1].lower()
        text = _decoded(content, name, truncated) if name in _CHARSETS else None
        return text if text is not None and "\0" not in text else None
    if (content_type or "").lower().startswith("text/"):
        text = _decoded(content, "windows-1252", truncated)
        return text if text is not None and not _NOT_IN_TEXT.search(text) else None
    return None


def _decoded(content: bytes, charset: str, truncated: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(charset)().decode(content, final=not truncated)
    except UnicodeError:
        return None
