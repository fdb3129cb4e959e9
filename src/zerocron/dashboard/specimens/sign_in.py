"""Specimens of the area `sign_in`."""

from __future__ import annotations

from zerocron.dashboard.specimens.kinds import Specimen

SPECIMENS: tuple[Specimen, ...] = ()
