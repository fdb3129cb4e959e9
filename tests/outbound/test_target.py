"""The misbehaving target itself, as a process: fault tests and benchmarks read its log."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.outbound.helpers import request, response_of, until

from zerocron.outbound import Outbound

ROOT = Path(__file__).parents[2]


async def test_as_a_process_it_logs_every_request_at_once(outbound: Outbound, tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.target", "--port", "0", "--log", str(log)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        port = int(await asyncio.wait_for(process.stdout.readline(), 10))
        headers = [("Idempotency-Key", "k"), ("X-0cron-Attempt", "2"), ("Authorization", "secret")]
        for path in ("/ok", "/status/500"):
            response_of(await outbound.send(request(f"http://127.0.0.1:{port}{path}", headers=headers)))
        await until(lambda: log.read_text().count("\n") == 2)
    finally:
        process.terminate()
        await process.wait()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["method"], line["path"]) for line in lines] == [("GET", "/ok"), ("GET", "/status/500")]
    assert lines[0]["headers"]["idempotency-key"] == "k"
    assert lines[0]["headers"]["x-0cron-attempt"] == "2"
    assert "secret" not in log.read_text()
    assert lines[0]["wall_ms"] <= lines[1]["wall_ms"]
