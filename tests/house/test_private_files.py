"""Keys in files: whole, for their owner only, and of two processes that make one the first wins."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from zerocron.private_files import keep_first_private, write_private


def check(path: Path, content: str) -> None:
    assert path.read_text() == content
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path], "no draft is left"


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "local-key"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new\n")
    check(path, "new\n")


def test_of_many_that_make_a_key_at_once_all_get_the_first(tmp_path: Path) -> None:
    path, ready = tmp_path / "secret-key", threading.Barrier(16)

    def make(number: int) -> str:
        ready.wait()
        return keep_first_private(path, f"key {number}")

    with ThreadPoolExecutor(16) as threads:
        found = set(threads.map(make, range(16)))
    assert len(found) == 1
    check(path, found.pop() + "\n")


def test_a_file_system_without_links_has_its_key_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_paths: object) -> None:
        raise PermissionError("not here")

    monkeypatch.setattr(os, "link", refused)
    assert keep_first_private(tmp_path / "secret-key", "key") == "key"
    check(tmp_path / "secret-key", "key\n")


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "local-key"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_private(path, "text")
    assert list(tmp_path.iterdir()) == [path]
