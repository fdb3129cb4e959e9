"""Specimens of the area `team`."""

from __future__ import annotations

from zerocron.dashboard.specimens.kinds import Specimen

SPECIMENS: tuple[Specimen, ...] = ()
