"""The reference of the API as one page of HTML."""

from __future__ import annotations

from typing import Any


def front_page(version: str) -> str:
    return ""


def reference_page(document: dict[str, Any]) -> str:
    return ""
