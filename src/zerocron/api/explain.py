"""/v1/jobs/{id}/explain: why a job did or did not run."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from zerocron.api.access import needs
from zerocron.api.fields import InstantText, JobId, Output, instant, maybe_instant
from zerocron.api.runs import RunOut, run_out
from zerocron.api.services import Use, Who
from zerocron.core.access import Permission
from zerocron.core.errors import Invalid
from zerocron.core.explain import VERDICT_TEXTS, Verdict
from zerocron.core.instants import from_rfc3339

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

_VERDICTS = " ".join(f"`{verdict}`: {text}" for verdict, text in VERDICT_TEXTS.items())


class EvidenceOut(Output):
    """A fact that is on record."""

    at: InstantText
    what: str


class ExplanationOut(Output):
    """Why a job did or did not run at an instant."""

    at: InstantText
    verdict: Verdict = Field(description=_VERDICTS)
    sentence: str = Field(description="The verdict in words.")
    run: RunOut | None = Field(description="The record, where there is one.")
    nearest_before: InstantText | None = Field(description="The last slot before, of the schedule that was in force.")
    nearest_after: InstantText | None
    evidence: list[EvidenceOut] = Field(description="What that rests on, oldest first.")


@router.get("/{job_id}/explain", response_model=ExplanationOut)
@needs(Permission.READ)
async def explain_job(
    job_id: JobId,
    who: Who,
    services: Use,
    at: Annotated[
        str | None,
        Query(
            max_length=40,
            description="The instant in question, RFC 3339; by default now. A full second stands for all of it.",
            examples=["2027-01-01T01:00:00Z"],
        ),
    ] = None,
) -> ExplanationOut:
    """Why the job did or did not run at an instant, with the evidence: runs, versions of the job, the audit log.

    Also of an instant that is still to come, and of a job that is deleted.
    """
    when, found = await services.explaining.explain(who.team_id, job_id, _at(at))
    return ExplanationOut(
        at=instant(when),
        verdict=found.verdict,
        sentence=found.sentence,
        run=None if found.run is None else run_out(found.run),
        nearest_before=maybe_instant(found.nearest_before),
        nearest_after=maybe_instant(found.nearest_after),
        evidence=[EvidenceOut(at=instant(at), what=what) for at, what in found.evidence],
    )


def _at(text: str | None) -> int | None:
    try:
        return None if text is None else from_rfc3339(text)
    except (ValueError, OverflowError):
        raise Invalid("Write 'at' as 2027-01-01T09:00:00Z, with its offset.", field="at") from None
