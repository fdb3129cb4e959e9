"""The ledger: every job, run, execution, session and key, in SQL. `database` opens it; one module per aggregate."""
