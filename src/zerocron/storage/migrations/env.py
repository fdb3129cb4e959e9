"""What Alembic runs: it joins the transaction of the connection it is given."""

from __future__ import annotations

from alembic import context

from zerocron.storage.ledger.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
