"""The pages of the area `account`."""

from __future__ import annotations

from zerocron.dashboard.routes import Page

PAGES: tuple[Page, ...] = ()
