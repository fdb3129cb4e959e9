"""Alembic migrations, run at start inside the ledger's own lock and transaction. Forward only; never edited once
released. `tests/storage/test_migrations.py` proves that they lead to exactly the shape of `tables.py`."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

_one_at_a_time = threading.Lock()  # Alembic keeps what it works on in module globals


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Bring the schema to a revision, the newest unless it is named; nothing happens when it is there already."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    with _one_at_a_time:
        command.upgrade(config, revision)
