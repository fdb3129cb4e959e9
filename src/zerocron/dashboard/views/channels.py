"""The pages of the area `channels`."""

from __future__ import annotations

from zerocron.dashboard.routes import Page

PAGES: tuple[Page, ...] = ()
