#!/bin/sh
# Gives 0cron a role of its own, which owns its database and is no superuser. The PostgreSQL image of compose.yaml runs
# this once, when it makes its data; on a server of your own, the two statements below are what is needed.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    --set password="$(cat "$ROLE_PASSWORD_FILE")" <<'SQL'
CREATE ROLE zerocron LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD :'password';
CREATE DATABASE zerocron OWNER zerocron ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT, TEMPORARY ON DATABASE zerocron FROM PUBLIC;
SQL
