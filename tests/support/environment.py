"""The environment for processes that tests start from several threads."""

from __future__ import annotations

import os

ENVIRONMENT = dict(os.environ)  # noqa: TID251
"""As it was at the start. pytest writes the name of the current test into the one that is, and so changes it under the
exec of a process that inherits it: "Bad address"."""
