"""How a view says where it is: a page is read, an act is a form that was sent."""

from __future__ import annotations

from dataclasses import dataclass

from zerocron.dashboard.visit import View


@dataclass(frozen=True, slots=True)
class Page:
    """A view and its address. `is_open`: for whoever is not signed in, too."""

    path: str
    view: View
    methods: tuple[str, ...]
    is_open: bool = False


def page(path: str, view: View, *, is_open: bool = False) -> Page:
    """Something to read (GET)."""
    return Page(path, view, ("GET",), is_open)


def act(path: str, view: View, *, is_open: bool = False) -> Page:
    """A form that is sent (POST)."""
    return Page(path, view, ("POST",), is_open)
