"""Phrases people really wrote, with their right answers: every line of phrases.jsonl (shared/cases/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.phrases.expectations import attempt, sets

from zerocron.core.phrases import NotUnderstood

LINES: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "phrases.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("detect", [False, True], ids=["given", "detected"])
@pytest.mark.parametrize("line", LINES, ids=[line["id"] for line in LINES])
def test_a_line_from_the_field(line: dict[str, Any], detect: bool) -> None:
    rejected = bool(line.get("reject"))
    result = attempt(line["text"], None if detect else line["lang"])
    if isinstance(result, NotUnderstood):
        assert rejected or line.get("reject_also_ok"), f"{result.message} {result.suggestions}"
        assert result.fields[0].field == "schedule"
        assert result.suggestions
        return
    if detect:
        assert result.language == line["lang"]
    if rejected:
        # Cron cannot say it; an interval or one instant may, and is never a cron that runs at other times.
        assert result.cron is None, f"accepted as {result.cron}"
        return
    right = [line["cron"], *line.get("also_ok", [])]
    assert result.cron is not None
    assert sets(result.cron) in [sets(cron) for cron in right]
    assert result.timezone == line.get("tz", "UTC" if "UTC" in line["text"] else None)
