"""Small files that are their owner's alone: the local API key, the master key, where the server listens.

Owns how they are written: whole or not at all, readable by their owner only (0600), and on the disk before anybody
relies on them. Must never replace what another process wrote first, where it was asked not to.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def read_if_there(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def write_private(path: Path, text: str) -> None:
    """The file holds the text, whole, for its owner only (0600)."""
    with _draft(path, text) as draft:
        draft.replace(path)


def keep_first_private(path: Path, text: str) -> str:
    """What the file holds: the text, or what another process wrote first."""
    with _draft(path, text + "\n") as draft:
        try:
            os.link(draft, path)  # which replaces nothing
        except FileExistsError:
            return path.read_text(encoding="utf-8").strip()
        except OSError:
            draft.replace(path)  # a file system without links; the ledger's lock lets one process come so far
    return text


@contextlib.contextmanager
def _draft(path: Path, text: str) -> Iterator[Path]:
    """A file beside the path, to become it. Its name is its own: process ids are the same in many containers."""
    file, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    draft = Path(name)
    try:
        try:
            os.write(file, text.encode())
            os.fsync(file)
        finally:
            os.close(file)
        yield draft
    finally:
        draft.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # what is sealed with a key must not outlive it in a power cut
    finally:
        os.close(folder)
