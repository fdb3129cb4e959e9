"""The pages of the area `job_form`."""

from __future__ import annotations

from zerocron.dashboard.routes import Page

PAGES: tuple[Page, ...] = ()
