"""The pages of the area `secrets`."""

from __future__ import annotations

from zerocron.dashboard.routes import Page

PAGES: tuple[Page, ...] = ()
