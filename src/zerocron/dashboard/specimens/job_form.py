"""Specimens of the area `job_form`."""

from __future__ import annotations

from zerocron.dashboard.specimens.kinds import Specimen

SPECIMENS: tuple[Specimen, ...] = ()
