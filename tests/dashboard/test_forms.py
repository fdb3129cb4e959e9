"""Forms as browsers send them, in both codings, up to their bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.dashboard.support import MULTIPART, Pages, multipart

from zerocron.core.model import BODY_BYTES_MAX
from zerocron.dashboard.forms import FIELDS_MAX, FORM_BYTES_MAX, LONG_FORM_BYTES_MAX, read_form
from zerocron.dashboard.specimens.jobs import JOB

TYPED = [("name", "Long"), ("schedule", "every hour"), ("url", "https://example.com/")]
FULL = {"POST /v1/jobs": (201, JOB)}


@given(some.lists(some.tuples(some.text(min_size=1, max_size=20), some.text(max_size=60)), max_size=9))
def test_what_was_typed_is_what_is_read(typed: list[tuple[str, str]]) -> None:
    assert read_form(multipart(typed), MULTIPART).pairs() == typed


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"name=x",
        b"--edge\r\n",
        b'--edge\r\nContent-Disposition: form-data; name="a"\r\n\r\nx',
        b'--edge\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--edge\r\n',
        b'--edge\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xff\r\n--edge--\r\n',
        b'--edge\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n\r\nx\r\n--edge--\r\n',
        b"--edge\r\nContent-Disposition: form-data\r\n\r\nx\r\n--edge--\r\n",
        b"--edge\r\nX: " + b"y" * 2_000 + b'\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--edge--\r\n',
        b"\r\n--edge" * 100_000,
        multipart([("a", "x")] * (FIELDS_MAX + 1)),
    ],
    ids=range(11),
)
def test_what_no_form_of_ours_is_is_not_read(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"field|end|decode"):
        read_form(content, MULTIPART)


def test_as_many_fields_as_there_may_be() -> None:
    assert len(read_form(multipart([("a", "x")] * FIELDS_MAX), MULTIPART).all("a")) == FIELDS_MAX


@pytest.mark.parametrize("text", ["é" * (BODY_BYTES_MAX // 2), "\n" * BODY_BYTES_MAX, '"%' * (BODY_BYTES_MAX // 2)])
async def test_a_body_may_be_as_long_as_the_api_takes_it(text: str) -> None:
    """Also as browsers write its line ends."""
    pages = Pages.of("job-new", **FULL)
    sent = await pages.post_long("/jobs/new", [*TYPED, ("body", text.replace("\n", "\r\n"))])

    assert (sent.status, sent.location.partition("?")[0]) == (303, f"/jobs/{JOB['id']}")
    assert pages.api.bodies("POST", "/v1/jobs")[0]["body"] == text


async def test_one_that_is_too_long_is_told_beside_it_and_kept() -> None:
    said = "A request has at most 1,572,864 bytes."
    pages = Pages.of("job-new-preview", **{"POST /v1/jobs": (413, {"title": "Content Too Large", "detail": said})})
    shown = await pages.post_long("/jobs/new", [*TYPED, ("body", "x" * 2_000_000)])

    assert shown.status == 413
    assert shown.tree.one(id="body-error").text == said
    assert len(dict(shown.tree.one("form", id="job").fields())["body"]) == 2_000_000


async def test_what_is_larger_than_any_form_is_not_even_read() -> None:
    pages = Pages.of("job-new", **FULL)
    answer = await pages.post_long("/jobs/new", [*TYPED, ("body", "x" * LONG_FORM_BYTES_MAX)])
    other = await pages.post("/channels/new", [("name", "x" * FORM_BYTES_MAX)])

    for each in (answer, other):
        assert each.status == 413
        assert "what you typed is still there" in each.tree.text
    assert not pages.api.sent()


async def test_the_form_of_a_job_is_sent_so_that_it_stays_short() -> None:
    form = (await Pages.of("job-new").get("/jobs/new")).tree.one("form", id="job")
    (attempt,) = [each for each in form.all("button") if each.get("hx-post") == "/jobs/new/try"]

    assert form.get("enctype") == attempt.get("hx-encoding") == "multipart/form-data"
    assert form.one("textarea", name="body").get("data-bytes-max") == str(BODY_BYTES_MAX)
