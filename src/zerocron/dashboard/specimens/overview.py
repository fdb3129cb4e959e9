"""Specimens of the area `overview`."""

from __future__ import annotations

from zerocron.dashboard.specimens.kinds import Specimen

SPECIMENS: tuple[Specimen, ...] = ()
