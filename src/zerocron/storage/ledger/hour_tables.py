"""The tables of what was counted by the hour, for whoever looks at a team as a whole.

Owns their shape, as `tables` owns that of jobs. They hold two days and can be lost without harm.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table

from zerocron.storage.ledger.tables import _id, _instant, metadata

# How far the counters of a team's jobs had come when the hour began. The team "" is all of them: its row says that the
# hour was looked at, so that a team without a row had none before.
team_hours = Table(
    "team_hours",
    metadata,
    _id("team_id"),
    _instant("hour"),
    Column("succeeded", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("skipped", BigInteger, nullable=False),
    PrimaryKeyConstraint("team_id", "hour"),
    sqlite_with_rowid=False,
)

# How many first requests of an hour were so late; `size` is one of `core.histogram`. The team "" is all of them.
lateness_hours = Table(
    "lateness_hours",
    metadata,
    _id("team_id"),
    _instant("hour"),
    Column("size", Integer, nullable=False),
    Column("requests", BigInteger, nullable=False),
    PrimaryKeyConstraint("team_id", "hour", "size"),
    sqlite_with_rowid=False,
)
