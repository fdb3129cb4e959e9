"""/v1/jobs/bulk: one verb on many jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from zerocron.actions.bulk import Bulk
from zerocron.api.access import needs
from zerocron.api.fields import Identifier, Input, Output
from zerocron.api.job_models import TAGS_MAX, Tags
from zerocron.api.services import Use, Who
from zerocron.core.access import Permission
from zerocron.core.errors import Invalid

JOBS_MAX = 200
router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


class BulkIn(Input):
    """What to do with which jobs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"ids": ["01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11"], "action": "add_tags", "tags": ["reporting"]}]
        }
    )

    ids: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=36)]],
        Field(min_length=1, max_length=JOBS_MAX, description="The ids of the jobs; one given twice counts once."),
    ]
    action: Literal["pause", "resume", "delete", "add_tags", "remove_tags"]
    tags: Tags = Field(default=[])


class BulkRefusalOut(Output):
    """A job for which it was not done."""

    id: Identifier
    detail: str = Field(description="Why not.")


class BulkOut(Output):
    """What was done. Together the two lists have every id that was given."""

    done: list[Identifier]
    refused: list[BulkRefusalOut]


@router.post("/bulk", response_model=BulkOut)
@needs(Permission.WRITE)
async def change_jobs(given: BulkIn, who: Who, services: Use) -> BulkOut:
    """Pause, resume, delete or tag many jobs, one after the other.

    It is 200 also when some were refused: look at `refused`. Repeating it is no error.
    """
    if (given.action in ("add_tags", "remove_tags")) != bool(given.tags):
        raise Invalid("Give `tags` with add_tags and remove_tags, and with these only.", field="tags")
    done, refused = await Bulk(services.jobs).apply(who.team_id, given.ids, given.action, given.tags, TAGS_MAX)
    return BulkOut(done=done, refused=[BulkRefusalOut(id=job_id, detail=detail) for job_id, detail in refused])
