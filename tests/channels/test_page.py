"""docs/notifications.md tells what is: its examples are made by the code, and its recipes work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from docs.notifications_page import examples, notifications_page

from zerocron.channels.contract import Kind
from zerocron.channels.payload import PLACEHOLDERS
from zerocron.channels.registry import KINDS
from zerocron.core.notice import EventKind

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "notifications.md").read_text(encoding="utf-8")


def test_the_examples_are_what_is_sent() -> None:
    assert notifications_page() == PAGE, "run `make docs`"
    for name, text in examples().items():
        assert "\n".join(line.rstrip() for line in text.split("\n")) in PAGE, name


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_each_kind_has_a_section_with_its_fields(kind: Kind) -> None:
    name = kind.name
    section = PAGE.split(f"\n## {name.capitalize()}\n")[1].split("\n## ")[0]
    assert f"0cron channels create {name} " in section
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| [`{name}`]"))
    for field in kind.fields:
        assert f"`{field.name}`" in row
    given = re.findall(r"--set (\w+)=", section)
    assert set(given) <= {field.name for field in kind.fields}


def test_every_type_and_every_placeholder_is_named() -> None:
    for event in EventKind:
        assert f"`{event}`" in PAGE
    for name in PLACEHOLDERS:
        assert f"`${{{name}}}`" in PAGE


def test_the_template_that_is_shown_is_taken() -> None:
    [template] = re.findall(r"--set template='([^']*)'", PAGE)
    assert KINDS["webhook"].check({"url": "https://chat.example.com/hooks/x", "template": template})


def test_the_json_that_is_shown_is_json() -> None:
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert [each["type"] for each in shown] == ["job.failed", "digest"]


def test_links_lead_somewhere() -> None:
    for page, anchor in re.findall(r"\]\(([a-z]*\.?m?d?)#([a-z-]+)\)", PAGE):
        text = PAGE if not page else (DOCS / page).read_text(encoding="utf-8")
        anchors = {re.sub(r"[^a-z0-9 -]", "", line.lower()).strip().replace(" ", "-") for line in text.splitlines()}
        assert anchor in anchors, (page, anchor)
