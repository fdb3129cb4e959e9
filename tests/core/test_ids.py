"""Identifiers: those of slots can be computed again, new ones sort by time, and all are read back strictly."""

from __future__ import annotations

from uuid import NAMESPACE_URL, UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.ids import new_id
from zerocron.core.model import DEFAULT_TEAM_ID, execution_id, is_uuid, run_id_of, split_execution_id

NOW = 1_800_000_000_000
instants = st.integers(0, 2**48 - 1)


@given(job_id=st.uuids().map(str) | st.text(max_size=40), slot=st.integers(-(2**62), 2**62))
def test_the_id_of_a_slots_run_is_uuid_version_5_of_job_and_instant(job_id: str, slot: int) -> None:
    namespace = uuid5(NAMESPACE_URL, "https://0cron.dev/run")
    assert run_id_of(job_id, slot) == str(uuid5(namespace, f"{job_id}@{slot}"))


def test_the_id_of_a_slots_run_does_not_change_between_releases() -> None:
    """Targets know runs by it: this one was made by the first release."""
    assert (
        run_id_of("0190a0b0-0000-7000-8000-000000000001", 1_800_000_000_000) == "dfdd302c-fa2a-5a23-a44a-a8ed1968c4a6"
    )


@given(instants)
def test_a_new_id_is_a_uuid_of_version_7_that_holds_its_instant(now: int) -> None:
    made = UUID(new_id(now))
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert made.int >> 80 == now


@given(st.lists(instants, min_size=2, unique=True))
def test_new_ids_sort_by_the_time_they_were_made(times: list[int]) -> None:
    ids = {now: new_id(now) for now in times}
    assert sorted(ids.values()) == [ids[now] for now in sorted(times)]


def test_ids_made_in_the_same_millisecond_differ() -> None:
    made = [UUID(new_id(NOW)).int for _ in range(2_000)]
    assert len(set(made)) == 2_000
    varying = 0
    for value in made:
        varying |= value ^ made[0]
    assert varying.bit_count() == 74  # every bit but the time, the version and the variant


@given(run_id=st.uuids().map(str), attempt=st.integers(1, 999_999))
def test_an_executions_id_is_read_back_into_run_and_attempt(run_id: str, attempt: int) -> None:
    assert split_execution_id(execution_id(run_id, attempt)) == (run_id, attempt)


RUN = "5b0e7a52-3c1f-4d7a-9b64-8e2f1c0d9a37"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        RUN,
        f"{RUN}.",
        f"{RUN}.x",
        f"{RUN}.-1",
        f"{RUN}.1.2",
        f"{RUN}.1234567",
        f"{RUN}.²",
        f"{RUN}.1 ",
        "x.1",
        ".1",
    ],
)
def test_what_is_no_executions_id_is_not_read(text: str) -> None:
    assert split_execution_id(text) is None


@given(st.uuids())
def test_a_uuid_in_its_canonical_form_is_one(value: UUID) -> None:
    assert is_uuid(str(value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x" * 36,
        RUN.upper() + "A",
        RUN[:-1],
        RUN.replace("-", ""),
        "{" + RUN[:34] + "}",
        f"urn:uuid:{RUN}",
        RUN + "\n",
    ],
)
def test_any_other_form_is_not(text: str) -> None:
    assert not is_uuid(text)


def test_capitals_are_another_form() -> None:
    assert not is_uuid("0190A0B0-0000-7000-8000-00000000000A")


def test_the_default_team_has_a_proper_id() -> None:
    assert is_uuid(DEFAULT_TEAM_ID)
