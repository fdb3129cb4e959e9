"""What a client is told when its team has as much as it may."""

from __future__ import annotations

import dataclasses

from sqlalchemy import Connection, insert
from tests.api.support import JOB, Client

from zerocron.app import Node
from zerocron.storage.ledger import limits as limit_rows
from zerocron.storage.ledger import tables


async def limit(node: Node, api: Client, **given: int) -> None:
    def transaction(connection: Connection) -> None:
        connection.execute(insert(tables.teams), {"id": api.team_id, "name": "limited", "created_at": 0})
        limits = dataclasses.replace(limit_rows.own(connection, api.team_id), **given)
        limit_rows.save(connection, api.team_id, limits)

    await node.ledger.write(transaction)


async def test_one_job_too_many_is_refused_and_the_refusal_says_who_can_help(node: Node, api: Client) -> None:
    await limit(node, api, jobs_max=1)
    assert (await api("POST", "/v1/jobs", JOB)).status == 201
    detail = (await api("POST", "/v1/jobs", JOB)).problem(409)
    assert "as many jobs as it may: 1." in detail
    assert "ask the operator of this server" in detail


async def test_a_trigger_too_many_is_told_when_to_come_again(node: Node, api: Client) -> None:
    await limit(node, api, runs_per_minute_max=1)
    job = (await api("POST", "/v1/jobs", JOB | {"overlap": "allow"})).json
    answers = [await api("POST", f"/v1/jobs/{job['id']}/trigger") for _ in range(4)]
    refused = [answer for answer in answers if answer.status == 429]
    assert len(refused) >= 2, "four triggers touch at most two minutes"
    assert "as many runs in this minute as it may: 1." in refused[0].problem(429)
    assert 1 <= int(refused[0].headers["retry-after"]) <= 60
