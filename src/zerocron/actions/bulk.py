"""One verb on many jobs: each in a transaction of its own, as if a person had asked for it job by job.

Owns the order of things and the account of them. What fails for one keeps no other from its turn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence

from zerocron.actions.jobs import Jobs, JobSpec
from zerocron.core.errors import Invalid, Unavailable, ZerocronError

AWAY = "The database could not be used, so this was not tried. Repeat it later."
UNCLEAR = "The database could not be used while this was under way. Look whether it was done, then repeat it."


class Bulk:
    """Verbs on many jobs of a team."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def apply(
        self, team_id: str, job_ids: Sequence[str], action: str, tags: Sequence[str], tags_max: int
    ) -> tuple[list[str], list[tuple[str, str]]]:
        """(ids for which it was done, (id, why not) of the others), each id once.

        `action`: pause, resume, delete, add_tags or remove_tags.
        """
        verb = self._verb(team_id, action, tags, tags_max)
        done: list[str] = []
        refused: list[tuple[str, str]] = []
        wanted = list(dict.fromkeys(job_ids))
        for index, job_id in enumerate(wanted):
            try:
                await verb(job_id)
            except Unavailable:
                refused.append((job_id, UNCLEAR))
                refused += [(untried, AWAY) for untried in wanted[index + 1 :]]
                break
            except ZerocronError as error:
                refused.append((job_id, error.message))
            else:
                done.append(job_id)
        return done, refused

    def _verb(
        self, team_id: str, action: str, tags: Sequence[str], tags_max: int
    ) -> Callable[[str], Awaitable[object]]:
        verbs: dict[str, Callable[[str], Awaitable[object]]] = {
            "pause": lambda job_id: self._jobs.pause(team_id, job_id),
            "resume": lambda job_id: self._jobs.resume(team_id, job_id),
            "delete": lambda job_id: self._jobs.delete(team_id, job_id),
            "add_tags": lambda job_id: self._jobs.edit(team_id, job_id, lambda spec: _tagged(spec, tags, tags_max)),
            "remove_tags": lambda job_id: self._jobs.edit(team_id, job_id, lambda spec: _untagged(spec, tags)),
        }
        return verbs[action]


def _tagged(spec: JobSpec, tags: Sequence[str], tags_max: int) -> JobSpec:
    together = tuple(dict.fromkeys([*spec.tags, *tags]))
    if len(together) > tags_max:
        raise Invalid(f"With these it would have {len(together)} tags; a job has at most {tags_max}.", field="tags")
    return dataclasses.replace(spec, tags=together)


def _untagged(spec: JobSpec, tags: Sequence[str]) -> JobSpec:
    return dataclasses.replace(spec, tags=tuple(tag for tag in spec.tags if tag not in tags))
