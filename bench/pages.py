"""Pages of the dashboard with 10,000 jobs and 1,000,000 runs in PostgreSQL, beside a bare answer of the same server."""

from __future__ import annotations

import gzip
import http.client
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

import orjson
from sqlalchemy import Connection

from bench.harness import Seed, Site, cluster, in_ledger, multiply, now_ms, percentiles, report, seed, server
from zerocron.storage.ledger.tables import executions, runs

JOBS = 10_000
RUNS_PER_JOB = 100
SLICE = 5
DAY_MS = 86_400_000
TIMES = 30
PASSWORD = "a bench needs no secret"


@dataclass(slots=True)
class Browser:
    """One kept connection, as of somebody who is signed in."""

    connection: http.client.HTTPConnection
    cookie: str = ""

    def get(self, path: str) -> tuple[float, bytes, int]:
        """(milliseconds, the content, the bytes that came)."""
        begun = time.perf_counter()
        self.connection.request("GET", path, headers={"Cookie": self.cookie, "Accept-Encoding": "gzip"})
        answer = self.connection.getresponse()
        body = answer.read()
        milliseconds = (time.perf_counter() - begun) * 1_000
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: this is no measurement.")
        content = gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body
        return milliseconds, content, len(body)

    def first_visit(self, path: str) -> int:
        """All bytes of a page and of what it is made of."""
        _, content, size = self.get(path)
        return size + sum(self.get(asset)[2] for asset in set(re.findall(r'"(/static/[^"]+)"', content.decode())))


def pages() -> None:
    """Server time of each page, as it is and as a ratio to /healthz; and the bytes of a first visit."""
    with cluster() as site:
        far = now_ms() + DAY_MS
        seed(site, 9, [Seed(far, DAY_MS)])
        multiply(site, JOBS - 1, far, DAY_MS)
        now = now_ms()
        for begin in range(1, RUNS_PER_JOB, SLICE):  # a statement of the ledger takes some seconds at most
            in_ledger(site, partial(_history, now, begin))
        in_ledger(site, lambda connection: connection.exec_driver_sql("ANALYZE").close())
        with server(site) as running:
            running.wait_ready()
            browser = _signed_in(site, (running.data_dir / "local-url").read_text().strip())
            job, run = in_ledger(site, _newest)
            bare = percentiles([browser.get("/healthz")[0] for _ in range(TIMES)])
            for path in (
                "/",
                "/jobs",
                "/jobs?q=bench",
                f"/jobs/{job}",
                f"/runs/{run}",
                "/jobs/new",
                "/monitors",
                "/audit",
            ):
                browser.get(path)
                taken = percentiles([browser.get(path)[0] for _ in range(TIMES)])
                report(
                    bench="cluster-pages",
                    page=re.sub(r"[0-9a-f-]{36}", "ID", path),
                    milliseconds=taken,
                    bare_milliseconds=bare["p50"],
                    times_bare=round(taken["p50"] / bare["p50"], 1),
                    first_visit_bytes=browser.first_visit(path),
                )


def _history(now: int, begin: int, connection: Connection) -> None:
    """Some runs of each job in the last day, one in twenty failed, each with its attempt."""
    step = DAY_MS // RUNS_PER_JOB
    at = f"({now} - (n::bigint * {step}))"
    failed = "(n % 20 = 7)"
    own = {
        "id": "gen_random_uuid()::text",
        "scheduled_for": at,
        "trigger_key": "'slot'",
        "job_id": "jobs.id",
        "team_id": "jobs.team_id",
        "job_version": "1",
        "triggered_by": "'schedule'",
        "status": f"CASE WHEN {failed} THEN 'failed' ELSE 'succeeded' END",
        "attempt": "1",
        "cause": "'first'",
        "redeliveries": "0",
        "created_at": at,
        "started_at": at,
        "finished_at": f"{at} + 40",
        "count": "1",
    }
    connection.exec_driver_sql(
        f"INSERT INTO {runs.name} ({', '.join(own)}) SELECT {', '.join(own.values())} "
        f"FROM jobs, generate_series({begin}, {begin + SLICE - 1}) n"
    ).close()
    attempt = {
        "run_id": "id",
        "scheduled_for": "scheduled_for",
        "attempt": "1",
        "job_id": "job_id",
        "team_id": "team_id",
        "session_id": "'00000000-0000-7000-8000-000000000000'",
        "cause": "'first'",
        "status": "CASE WHEN status = 'failed' THEN 'failed' ELSE 'success' END",
        "started_at": "started_at",
        "finished_at": "finished_at",
        "duration_ms": "40",
        "timings": """'{"total": 40.0}'""",
        "request": """'{"method": "GET", "url": "https://example.com/", "headers": []}'""",
        "response": """'{"status": 200, "headers": [], "body_bytes": 2, "truncated": false, "encoding": "utf-8"}'""",
        "response_body": "'ok'",
        "error_kind": "CASE WHEN status = 'failed' THEN 'rule' END",
        "error_message": "CASE WHEN status = 'failed' THEN 'The status was 500.' END",
    }
    connection.exec_driver_sql(
        f"INSERT INTO {executions.name} ({', '.join(attempt)}) SELECT {', '.join(attempt.values())} FROM runs "
        f"WHERE scheduled_for BETWEEN {now - (begin + SLICE - 1) * step} AND {now - begin * step}"
    ).close()


def _newest(connection: Connection) -> tuple[str, str]:
    row = connection.exec_driver_sql("SELECT job_id, id FROM runs ORDER BY scheduled_for DESC LIMIT 1").one()
    return str(row[0]), str(row[1])


def _signed_in(site: Site, address: str) -> Browser:
    """The owner, by the set-up link."""
    environment = os.environ | {f"ZEROCRON_{name.upper()}": str(value) for name, value in site.settings.items()}
    environment |= {"ZEROCRON_DATA_DIR": str(site.folder / "node")}
    command = [sys.executable, "-m", "zerocron", "setup-link"]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    found = re.search(r"/setup/(\S+)", said)
    if found is None:
        raise RuntimeError(f"no set-up link in {said!r}")
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    owner = {"token": found[1], "email": "bench@example.com", "name": "Bench", "password": PASSWORD}
    headers = {"Content-Type": "application/json", "Origin": address, "Sec-Fetch-Site": "same-origin"}
    connection.request("POST", "/v1/setup", orjson.dumps(owner), headers)
    answer = connection.getresponse()
    told = answer.read()
    if answer.status != 201:
        raise RuntimeError(f"the set-up answered {answer.status}: {told!r}")
    return Browser(connection, (answer.headers["Set-Cookie"] or "").partition(";")[0])
