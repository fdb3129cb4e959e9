"""What a route does not know is refused: query parameters and bodies, as the models refuse unknown fields.

A mistyped `?stats=paused` that is passed over would look like an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant

from zerocron.api.wording import NAME_CHARACTERS_SHOWN, clipped
from zerocron.core.errors import FieldError, Invalid


async def only_what_is_known(request: Request) -> None:
    """Raises Invalid naming each query parameter that is unknown, repeated, or holds NUL; or for a needless body."""
    route = request.scope["route"]
    known = set(_query_names(route.dependant))
    faults = [
        FieldError(clipped(name, NAME_CHARACTERS_SHOWN), message)
        for name, message in _query_faults(request, known).items()
    ]
    if faults:
        first = faults[0]
        raise Invalid(f"{first.field}: {first.message}", fields=faults)
    if route.body_field is None and (await request.body()).strip() not in (b"", b"{}"):
        raise Invalid("This request takes no body. Leave it out.")


def _query_faults(request: Request, known: set[str]) -> dict[str, str]:
    given = request.query_params.multi_items()
    times = Counter(name for name, _ in given)
    faults: dict[str, str] = {}
    for name, value in given:
        if name not in known:
            takes = f" There are: {', '.join(sorted(known))}." if known else " This address takes none."
            faults[name] = f"There is no such query parameter.{takes}"
        elif times[name] > 1:
            faults[name] = "This query parameter is given more than once. Give it once."
        elif "\0" in value:
            faults[name] = "This holds a NUL character. Leave it out."
    return faults


def _query_names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for part in dependant.dependencies:
        yield from _query_names(part)
