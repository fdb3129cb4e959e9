"""A job is made and edited: one form, which shows what it would do before anything is saved.

Owns the way of a form to the API and back. What was typed is kept whatever the answer is, and only what differs is
sent: from the API's defaults for a new job, from what is saved for an old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel.dates import format_skeleton, format_time
from starlette.responses import Response

from zerocron.core.model import BODY_BYTES_MAX, RetryPolicy
from zerocron.core.retry import ATTEMPTS_MAX, backoff_ms
from zerocron.dashboard import job_draft
from zerocron.dashboard.asking import Answer, Problem
from zerocron.dashboard.exchange import Shown
from zerocron.dashboard.forms import LONG_FORM_BYTES_MAX
from zerocron.dashboard.job_draft import DEFAULTS, Draft, Unsaid, differing, names_of, open_sections, placed, seen_of
from zerocron.dashboard.notices import N_
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.telling import read_instant
from zerocron.dashboard.visit import Visit, segment
from zerocron.dashboard.words import words_of

LIST_MAX = 200
"""So many channels and secrets are offered: as many as a page of the API has."""

FROM_CURL = ("url", "method", "headers", "body", "timeout", "redirects", "verify_tls")
"""What a curl command says of a request."""

UNSAID: Mapping[str, str] = {
    "headers": N_("This header is here twice. Give each once."),
    "success.headers": N_("This header is here twice. Give each once."),
    "success.json": N_("This number is too large to be compared exactly. Put it into quotes if it is a text."),
    "notify.channels": N_("Choose at least one channel, or nobody."),
}
CHANGED_MEANWHILE = N_(
    "Somebody else changed this job while you were editing it. Nothing is saved yet, and what you typed is kept. "
    "Look at the fields named here, then save again: your form replaces what they saved."
)
NOT_COMPLETE = N_("This cannot be saved yet. What is missing or wrong is marked below.")
NO_RIGHT = N_("Your role in this team may look at jobs, not change them.")


@dataclass(frozen=True, slots=True)
class Slot:
    """An instant of a schedule, on the clocks of its zone and of the reader."""

    at: str
    day: str
    clock: str
    zone: str
    here: str
    """The reader's time; empty where it is the same."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a schedule would mean: what the API told, or why it refused."""

    told: Mapping[str, Any] | None = None
    slots: tuple[Slot, ...] = ()
    refusal: Problem | None = None
    is_saved: bool = False
    """It is of a job as it is saved: no further slot of a paused or completed one is no fault."""

    @property
    def is_about_days(self) -> bool:
        """Day of month and day of week are both given, so how they go together matters."""
        fields = str((self.told or {}).get("schedule_cron") or "").split()
        fields = fields[1:] if len(fields) >= 6 else fields
        return len(fields) >= 5 and not {fields[2], fields[4]} & {"*", "?"}

    @property
    def place(self) -> str:
        """The field that a suggestion of the refusal is for."""
        return "timezone" if self.refusal is not None and "timezone" in self.refusal.errors else "schedule"


@dataclass
class Content:
    """What the form shows beside what was typed."""

    draft: Draft
    job: Mapping[str, Any] | None = None
    copied: str = ""
    curl: str = ""
    is_curl_open: bool = False
    curl_warnings: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    tried: Shown | None = None
    try_problem: Problem | None = None
    more_rows: str = ""
    once: str = ""


# --- pages


async def new(visit: Visit) -> Response:
    """GET /jobs/new: empty, or as another job is (`?clone=ID`); `?curl=1` asks for a command first."""
    _writers_only(visit)
    content = Content(Draft.of_job(DEFAULTS), is_curl_open=visit.query.get("curl") == "1")
    content.draft.texts["timezone"] = visit.timezone
    original = visit.query.get("clone", "")
    if original:
        job = await visit.api.get(f"/v1/jobs/{segment(original)}")
        content.draft = Draft.of_job({name: job[name] for name in DEFAULTS})
        content.draft.texts["name"] = words_of(visit.language).gettext("Copy of %(name)s") % {"name": job["name"]}
        content.copied = job["name"]
    return await _form(visit, content)


async def create(visit: Visit) -> Response:
    """POST /jobs/new."""
    return await _act(visit, None)


async def edit(visit: Visit) -> Response:
    """GET /jobs/{job_id}/edit."""
    _writers_only(visit)
    job = await visit.api.get(f"/v1/jobs/{segment(visit.path['job_id'])}")
    return await _form(visit, Content(Draft.of_job(job), job))


async def save(visit: Visit) -> Response:
    """POST /jobs/{job_id}/edit."""
    return await _act(visit, await visit.api.get(f"/v1/jobs/{segment(visit.path['job_id'])}"))


# --- parts, for scripts, which send the fields that a part is about (`hx-params`); only the request is as long as a job


async def preview_part(visit: Visit) -> Response:
    """POST /jobs/new/preview: what the schedule means."""
    draft = Draft.of_form(await visit.form())
    return visit.page("job_form/preview.html", draft=draft, preview=await _preview(visit, draft))


async def waits_part(visit: Visit) -> Response:
    """POST /jobs/new/waits: when a failed run would be tried again."""
    draft = Draft.of_form(await visit.form())
    return visit.page("job_form/waits.html", draft=draft, waits=_waits(draft))


async def try_part(visit: Visit) -> Response:
    """POST /jobs/new/try: the request is sent once, and what comes back is shown."""
    content = Content(Draft.of_form(await visit.form(bytes_max=LONG_FORM_BYTES_MAX)))
    await _try(visit, content)
    return visit.page("job_form/tried.html", tried=content.tried, try_problem=content.try_problem)


# --- what the buttons do


async def _act(visit: Visit, job: Mapping[str, Any] | None) -> Response:
    """One of the buttons of the form, which works without scripts: `do` says which."""
    form = await visit.form(bytes_max=LONG_FORM_BYTES_MAX)
    content = Content(Draft.of_form(form), job, copied=form.get("copied"), curl=form.raw("curl"), once=form.get("once"))
    wanted = form.get("do", "save")
    for name in ("schedule", "timezone"):
        if form.has(f"use.{name}"):
            content.draft.texts[name] = form.get(f"use.{name}")
            wanted = "preview"
    if wanted.startswith("row "):
        content.more_rows = wanted.removeprefix("row ")
    elif wanted == "try":
        await _try(visit, content)
    elif wanted == "curl":
        return await _fill(visit, content)
    elif wanted == "save":
        return await _save(visit, content)
    return await _form(visit, content)


async def _save(visit: Visit, content: Content) -> Response:
    draft, job = content.draft, content.job
    try:
        given = draft.job(job or DEFAULTS)
    except Unsaid as fault:
        return await _form(visit, content, _local(visit, 422, NOT_COMPLETE, fault.place))
    if job is not None and draft.seen != seen_of(job):
        content.theirs = tuple(names_of(differing(given, job)))
        draft.seen = seen_of(job)
        if content.theirs:
            return await _form(visit, content, _local(visit, 409, CHANGED_MEANWHILE))
    try:
        if job is None:
            made = await _make(visit, given, once=content.once)
            return visit.made(f"/jobs/{made.data['id']}", made)
        await _change(visit, given, job)
    except Problem as problem:
        if problem.status == 401 or problem.status >= 500 or problem.code == "reauthenticate":
            raise
        # All that is long in a job is its body, with what JSON has to escape in it.
        visit.in_words(problem)
        problem.errors = {"body": problem.detail} if problem.status == 413 else placed(problem.errors, draft.rows)
        return await _form(visit, content, problem)
    return visit.go(f"/jobs/{job['id']}", done="saved")


async def _make(visit: Visit, given: Mapping[str, Any], *, once: str) -> Answer:
    needed = {name: given[name] for name in job_draft.NEEDED}
    document = needed | differing(given, DEFAULTS) | {"language": visit.language}
    return await visit.api.make("/v1/jobs", document, once=once)


async def _change(visit: Visit, given: Mapping[str, Any], job: Mapping[str, Any]) -> None:
    changed = differing(given, job)
    if "schedule" in changed:
        changed["language"] = visit.language
    if changed:
        await visit.api.send("PATCH", f"/v1/jobs/{job['id']}", changed)


async def _try(visit: Visit, content: Content) -> None:
    """Send what is in the form once. What was wrong with it is shown in the place of the answer."""
    try:
        given = content.draft.job()
        request = {name: given[name] for name in job_draft.REQUEST}
        needless = differing(request, {name: DEFAULTS[name] for name in job_draft.REQUEST})
        answer = await visit.api.send("POST", "/v1/requests/try", {"url": given["url"], **needless})
        content.tried = Shown.of(answer)
    except Unsaid as fault:
        content.try_problem = _local(visit, 422, NOT_COMPLETE, fault.place)
    except Problem as problem:
        if problem.status == 401 or problem.code == "reauthenticate":
            raise
        content.try_problem = problem


async def _fill(visit: Visit, content: Content) -> Response:
    """The fields of the request, from a curl command."""
    content.is_curl_open = True
    try:
        found = await visit.api.send("POST", "/v1/requests/curl", {"command": content.curl})
    except Problem as problem:
        if problem.status not in (400, 413, 422):
            raise
        problem.errors = {"curl": next(iter(problem.errors.values()), problem.detail)}
        return await _form(visit, content, problem)
    request = {name: found[name] for name in FROM_CURL if found[name] is not None}
    read = Draft.of_job({**DEFAULTS, **request})
    content.draft.texts |= {name: read.texts[name] for name in request if name in read.texts}
    content.draft.rows["headers"] = read.rows["headers"]
    content.curl_warnings = tuple(found["warnings"])
    content.is_curl_open = bool(content.curl_warnings)
    content.curl = ""
    return await _form(visit, content)


# --- what the form shows


async def _form(visit: Visit, content: Content, problem: Problem | None = None) -> Response:
    draft = content.draft
    if problem is not None:
        visit.status = problem.status if problem.status != 404 else 422
    changed = _changed(draft)
    opened = open_sections(changed, problem.errors if problem is not None else ())
    if content.more_rows:
        opened |= open_sections([content.more_rows], ())
    return visit.page(
        "job_form/form.html",
        **{name: getattr(content, name) for name in Content.__dataclass_fields__},
        problem=problem,
        beside=[*filter(job_draft.has_input, problem.errors if problem is not None else ()), "curl"],
        opened=opened,
        changed=open_sections(changed, ()),
        preview=_as_saved(visit, content) or await _preview(visit, draft),
        waits=_waits(draft),
        body_bytes_max=BODY_BYTES_MAX,
        channels=await _offered(visit, "/v1/channels"),
        secrets=await _offered(visit, "/v1/secrets"),
    )


def _changed(draft: Draft) -> list[str]:
    """What differs from the defaults; of what cannot be read, everything may."""
    try:
        return names_of(differing(draft.job(), DEFAULTS))
    except Unsaid as fault:
        return [fault.place]


async def _offered(visit: Visit, path: str) -> list[Any]:
    """A list that the form offers to choose from, and can do without."""
    try:
        items: list[Any] = (await visit.api.get(path, {"limit": LIST_MAX}))["items"]
    except Problem as problem:
        if problem.status in (403, 404, 503):
            return []
        raise
    return items


def _as_saved(visit: Visit, content: Content) -> Preview | None:
    """What is saved, while nobody has typed another schedule. An interval and "in 20 minutes" count from when they were
    saved: read anew, they would show other times than those at which the job runs."""
    job = content.job
    if job is None or job["schedule_kind"] == "cron":
        return None
    if any(content.draft.get(name) != job[name] for name in ("schedule", "timezone", "dst", "day_match")):
        return None
    told = {name: job[name] for name in ("description", "schedule_cron", "timezone", "warnings")}
    following = [] if job["next_run_at"] is None else [job["next_run_at"]]
    return Preview(
        {**told, "clock_changes": ()}, tuple(_slot(visit, at, job["timezone"]) for at in following), is_saved=True
    )


async def _preview(visit: Visit, draft: Draft) -> Preview:
    if not draft.get("schedule"):
        return Preview()
    asked = {name: draft.get(name) for name in ("schedule", "timezone", "dst", "day_match")}
    if asked["timezone"] in ("", DEFAULTS["timezone"]):
        del asked["timezone"]
    try:
        told = await visit.api.send("POST", "/v1/schedules/preview", {**asked, "language": visit.language})
    except Problem as problem:
        if problem.status not in (400, 413, 422):
            raise
        return Preview(refusal=problem)
    return Preview(told, tuple(_slot(visit, at, told["timezone"]) for at in told["next"]))


def _slot(visit: Visit, text: str, zone: str) -> Slot:
    at = read_instant(text)
    telling = visit.telling
    try:
        local = at.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError):
        local = at
    here = at.astimezone(telling.zone)
    is_exact = local.second != 0
    form = "medium" if is_exact else "short"
    return Slot(
        at=text,
        day=format_skeleton("yMMMEd", local, locale=telling.language),
        clock=format_time(local, form, locale=telling.language),
        zone=local.tzname() or "",
        here=""
        if here.utcoffset() == local.utcoffset()
        else f"{format_time(here, form, locale=telling.language)} {here.tzname() or ''}".strip(),
    )


def _waits(draft: Draft) -> tuple[float, ...] | None:
    """Seconds before each further attempt; None when the fields do not say it."""
    given = {name: job_draft.FIELDS[f"retry.{name}"].read(draft.get(f"retry.{name}")) for name in ("attempts", "delay")}
    attempts, delay = given["attempts"], given["delay"]
    if not isinstance(attempts, int) or not 1 <= attempts <= ATTEMPTS_MAX or not isinstance(delay, (int, float)):
        return None
    policy = RetryPolicy(attempts, draft.get("retry.backoff"), delay, draft.get("retry.jitter"))
    return tuple(backoff_ms(policy, failures) / 1_000 for failures in range(1, attempts))


def _local(visit: Visit, status: int, text: str, place: str = "") -> Problem:
    """A problem that the form found itself, so that the API was not asked."""
    words = words_of(visit.language)
    errors = []
    if place:
        group = next(name for name in UNSAID if place == name or place.startswith(f"{name}."))
        errors = [{"field": place, "message": words.gettext(UNSAID[group])}]
    return Problem(Answer(status, {"title": "", "detail": words.gettext(text), "errors": errors}))


def _writers_only(visit: Visit) -> None:
    if visit.signed is None or not visit.signed.may("write"):
        raise Problem(
            Answer(403, {"title": "Forbidden", "detail": words_of(visit.language).gettext(NO_RIGHT)}),
        )


PAGES: tuple[Page, ...] = (
    page("/jobs/new", new),
    act("/jobs/new", create),
    act("/jobs/new/preview", preview_part),
    act("/jobs/new/waits", waits_part),
    act("/jobs/new/try", try_part),
    page("/jobs/{job_id}/edit", edit),
    act("/jobs/{job_id}/edit", save),
)
