"""The pages of the area `sign_in`."""

from __future__ import annotations

from zerocron.dashboard.routes import Page

PAGES: tuple[Page, ...] = ()
