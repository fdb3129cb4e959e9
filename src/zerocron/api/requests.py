"""/v1/requests: a request before it becomes a job, sent once, or read from a curl command."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from zerocron.actions.jobs import JobSpec
from zerocron.api.access import needs
from zerocron.api.fields import Input, Output
from zerocron.api.job_models import Body, Headers, Method, Redirects, Sign, SuccessIn, Timeout, Url, VerifyTls
from zerocron.api.jobs import body_text, success_rule
from zerocron.api.runs import ExecutionOut, execution_out
from zerocron.api.services import Use, Who
from zerocron.core import curl
from zerocron.core.access import Permission
from zerocron.core.errors import Forbidden
from zerocron.core.ids import new_id
from zerocron.core.model import ExecutionStatus
from zerocron.core.requests import split_url
from zerocron.engine.rendering import secrets_named
from zerocron.engine.trying import SECONDS_MAX, TEAM_MAX
from zerocron.storage.ledger import audit

router = APIRouter(prefix="/v1/requests", tags=["requests"])


class TryIn(Input):
    """A request, and when its answer is a success: those fields of a job."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": "https://example.com/hooks/nightly", "method": "POST"}]}
    )

    url: Url
    method: Method = "GET"
    headers: Headers = Field(default={})
    body: Body = None
    timeout: Timeout = 30
    redirects: Redirects = 0
    verify_tls: VerifyTls = True
    sign: Sign = False
    success: SuccessIn = Field(default_factory=SuccessIn)


class TrialOut(ExecutionOut):
    """What came of it: an execution as a run of a job would have had it. Its ids are in no record."""

    verdict: Literal["succeeded", "failed"]
    sentence: str = Field(description="The verdict in words: which rule failed, or what went wrong.")


class CurlIn(Input):
    """A command that somebody pasted."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"command": "curl -d report=daily https://example.com/hooks/nightly"}]}
    )

    command: Annotated[
        str,
        Field(
            min_length=1,
            max_length=curl.COMMAND_CHARACTERS_MAX,
            description="As it is written for a shell or for the command prompt of Windows.",
        ),
    ]


class CurlOut(Output):
    """The request of a curl command, as fields of a job."""

    url: str
    method: str
    headers: dict[str, str]
    body: str | None
    timeout: float | None = Field(description="Null when the command has none.")
    redirects: int
    verify_tls: bool
    warnings: list[str] = Field(description="What was left out, and what should be changed. Nothing else was dropped.")


@router.post(
    "/try",
    response_model=TrialOut,
    responses={
        403: {"description": "A key that may only trigger sends no secrets and signs nothing."},
        429: {"description": f"Your team is trying {TEAM_MAX} already, or this server very many."},
    },
)
@needs(Permission.TRIGGER)
async def try_request(given: TryIn, who: Who, services: Use) -> TrialOut:
    """Send a request once, as a job would: with its secrets, through the same guard, judged by the same rule.

    There is no run of it and no retry; the audit log has that it was sent. It waits at most 60 seconds. What a job
    would refuse is refused. Where secrets are sent or the request is signed, it takes the right to edit jobs.
    """
    spec = JobSpec(
        name="",
        schedule="",
        url=given.url,
        method=given.method,
        headers=given.headers,
        body=body_text(given.body),
        timeout_seconds=min(given.timeout, SECONDS_MAX),
        redirects=given.redirects,
        verify_tls=given.verify_tls,
        sign=given.sign,
        success=success_rule(given.success),
    )
    definition = await services.jobs.definition(who.team_id, spec)
    if Permission.WRITE not in who.permissions and (definition.sign or secrets_named(definition)):
        raise Forbidden("To send secrets or to sign takes the permission to edit jobs (`write`).")
    now = services.clock.now()
    subject = audit.Subject("request", new_id(now), f"{definition.method} {split_url(definition.url).host}")
    await services.ledger.write(
        lambda connection: audit.record(
            connection, team_id=who.team_id, at=now, by=who.actor, action="request.try", subject=subject
        )
    )
    execution = await services.trying.send(who.team_id, definition)
    is_good = execution.status == ExecutionStatus.SUCCESS
    return TrialOut(
        **execution_out(execution).model_dump(),
        verdict="succeeded" if is_good else "failed",
        sentence="The answer is a success." if is_good else execution.error_message or "It failed.",
    )


@router.post("/curl", response_model=CurlOut)
@needs(Permission.READ)
async def read_curl(given: CurlIn, _who: Who) -> CurlOut:
    """Which request a curl command makes. Nothing is sent, and no file is read.

    What has no counterpart in a job is told in `warnings`.
    """
    found = curl.parse(given.command)
    return CurlOut(
        url=found.url,
        method=found.method,
        headers=found.headers,
        body=found.body,
        timeout=found.timeout_seconds,
        redirects=found.redirects,
        verify_tls=found.verify_tls,
        warnings=found.warnings,
    )
