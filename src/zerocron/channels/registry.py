"""The kinds of channels there are, by the names that users write."""

from __future__ import annotations

from collections.abc import Mapping

from zerocron.channels.contract import Kind

KINDS: Mapping[str, Kind] = {}
