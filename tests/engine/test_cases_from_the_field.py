"""How schedulers failed elsewhere (scheduler.jsonl, each line with its source), and the test that says we do not.

A line is either covered by a test that exists, or belongs to another part of the house or to clusters, with the reason.
A new line of the file fails here until it has found its place.
"""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CASES = [json.loads(line) for line in Path(__file__).with_name("scheduler.jsonl").read_text("utf-8").splitlines()]

ENGINE, VERBS = "engine/test_engine.py", "engine/test_verbs_and_slots.py"
ZONE_DATA = "engine/test_zonedata.py"
PLANNING, STARTING = "core/test_planning.py", "engine/test_starting.py"
LEDGER, SQLITE, PLANS = (f"storage/test_ledger_{name}.py" for name in ("contract", "sqlite", "plans"))
TWICE = "test_a_job_in_the_hour_that_comes_twice_runs_once_that_day"
CRASH = "test_a_crash_after_the_commit_and_before_the_request_loses_nothing"
DOWNTIME = "test_downtime_goes_by_the_catch_up_policy_and_leaves_no_gap"
FAR = "test_a_far_slot_keeps_nobody_busy_and_delays_nobody"
ERASED = "test_a_timetable_that_was_erased_costs_seconds_and_no_run"
NEVER_RAN = "test_a_job_that_never_ran_is_caught_up_like_any_other"
FIRST_SLOT = "test_a_job_never_runs_before_its_first_slot_nor_because_of_a_restart"
RESTARTS = "test_restarts_reset_no_interval_and_forget_no_last_run"
STOPPED_BETWEEN = "test_a_job_stopped_between_the_claim_and_the_start_sends_nothing"
STOPPED_MEANWHILE = "test_a_job_stopped_while_a_run_is_under_way_lets_it_end_and_starts_no_other"

COVERED: dict[str, tuple[str, str]] = {
    "sch-002": (SQLITE, "test_a_second_process_is_refused_by_name_until_the_first_is_gone_however_it_ends"),
    "sch-005": (LEDGER, "test_a_slot_has_one_run"),
    "sch-008": ("house/test_settings.py", "test_a_setting_that_does_not_exist_is_refused_at_the_start"),
    "sch-009": (VERBS, "test_sample_jobs_are_made_once_however_often_the_server_starts"),
    "sch-012": (STARTING, "test_a_member_that_comes_early_is_put_back"),
    "sch-013": (STARTING, "test_a_member_that_comes_early_is_put_back"),
    "sch-014": (VERBS, TWICE),
    "sch-015": (VERBS, TWICE),
    "sch-017": (ENGINE, CRASH),
    "sch-019": ("engine/test_finishing.py", "test_a_lost_attempt_is_recorded_and_sent_again"),
    "sch-020": (VERBS, NEVER_RAN),
    "sch-021": (VERBS, "test_the_scheduled_and_the_real_time_of_a_start_are_both_kept"),
    "sch-022": (ENGINE, DOWNTIME),
    "sch-023": (ENGINE, "test_stopping_gives_up_what_does_not_end_and_the_next_process_takes_it_over"),
    "sch-024": (ENGINE, CRASH),
    "sch-028": (PLANNING, "test_a_slot_up_to_five_seconds_late_runs_under_every_policy"),
    "sch-029": (ENGINE, ERASED),
    "sch-033": (VERBS, "test_after_long_downtime_no_more_starts_at_once_than_configured"),
    "sch-034": (VERBS, "test_a_policy_of_none_starts_nothing_after_hours_and_says_how_much_was_missed"),
    "sch-035": (PLANNING, "test_years_of_downtime_are_planned_at_once"),
    "sch-036": (PLANNING, "test_more_than_a_hundred_missed_slots_do_not_stop_a_job"),
    "sch-038": (VERBS, "test_slots_of_a_pause_are_never_run_and_the_next_one_is"),
    "sch-039": (VERBS, "test_slots_of_a_pause_are_never_run_and_the_next_one_is"),
    "sch-042": (VERBS, NEVER_RAN),
    "sch-043": (VERBS, FIRST_SLOT),
    "sch-044": (VERBS, FIRST_SLOT),
    "sch-045": (VERBS, RESTARTS),
    "sch-046": (VERBS, RESTARTS),
    "sch-049": (VERBS, "test_editing_other_jobs_does_not_move_an_interval"),
    "sch-051": (VERBS, "test_a_shorter_interval_makes_no_slot_of_the_past_a_missed_one"),
    "sch-052": (VERBS, "test_another_zone_moves_the_next_slot_at_once"),
    "sch-053": (ZONE_DATA, "test_other_zone_data_moves_the_cursors_that_it_changes"),
    "sch-054": (VERBS, "test_a_pause_between_two_slots_loses_neither"),
    "sch-055": (VERBS, STOPPED_MEANWHILE),
    "sch-056": (ENGINE, "test_a_job_that_another_process_wrote_is_picked_up"),
    "sch-057": (VERBS, STOPPED_BETWEEN),
    "sch-058": (VERBS, STOPPED_BETWEEN),
    "sch-059": (VERBS, STOPPED_MEANWHILE),
    "sch-061": (VERBS, "test_a_job_stopped_while_a_retry_waits_sends_nothing_more"),
    "sch-065": (ENGINE, "test_who_waits_for_a_later_slot_is_woken_by_an_earlier_one"),
    "sch-066": (ENGINE, "test_a_start_that_raises_once_stops_nothing_and_loses_nothing"),
    "sch-067": (ENGINE, "test_a_loop_that_hangs_is_named_within_two_minutes"),
    "sch-068": (ENGINE, "test_a_ledger_that_is_away_at_the_start_may_come_later"),
    "sch-071": (ENGINE, "test_a_clock_that_is_set_forward_is_downtime_and_no_storm"),
    "sch-072": (ENGINE, "test_a_machine_that_slept_notices_at_once_when_it_wakes"),
    "sch-073": (ENGINE, FAR),
    "sch-074": (ENGINE, FAR),
    "sch-076": (ENGINE, "test_a_second_that_comes_twice_runs_once"),
    "sch-077": (VERBS, TWICE),
    "sch-080": (VERBS, "test_run_now_twice_within_a_second_goes_by_the_overlap_policy"),
    "sch-081": (ENGINE, "test_retries_of_one_slot_never_run_beside_the_next"),
    "sch-082": (ENGINE, "test_jobs_that_come_due_together_all_run_once_and_soon"),
    "sch-084": (VERBS, RESTARTS),
    "sch-085": (ENGINE, "test_slow_targets_do_not_hold_up_the_others"),
    "sch-087": (ENGINE, ERASED),
    "sch-088": (ENGINE, ERASED),
    "sch-091": ("storage/test_timetable_contract.py", "test_a_claimed_member_is_hidden_and_comes_back_by_itself"),
    "sch-096": ("engine/test_retention.py", "test_a_job_keeps_its_newest_runs_up_to_a_number"),
    "sch-099": (PLANS, "test_a_page_costs_the_same_wherever_it_begins_and_however_much_is_kept"),
    "sch-100": (ENGINE, "test_a_ledger_that_is_away_at_the_start_may_come_later"),
    "sch-101": ("storage/test_migrations.py", "test_instants_have_64_bits_and_end_in_words_of_time"),
    "sch-102": (STARTING, "test_missed_slots_go_by_the_catch_up_policy_and_are_all_recorded"),
    "sch-103": (VERBS, "test_the_scheduled_and_the_real_time_of_a_start_are_both_kept"),
}

CLUSTER = "several nodes over PostgreSQL and Redis, which do not exist yet"
ELSEWHERE: dict[str, str] = {
    "sch-004": CLUSTER,
    "sch-006": CLUSTER,
    "sch-010": CLUSTER,
    "sch-026": CLUSTER,
    "sch-027": CLUSTER,
    "sch-079": CLUSTER,
    "sch-089": CLUSTER,
    "sch-090": CLUSTER,
    "sch-093": CLUSTER,
    "sch-104": "three days of running are a measurement (bench), not a test",
}


@cache
def defined_in(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_case_from_the_field_has_its_place() -> None:
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids))
    assert set(ids) == COVERED.keys() | ELSEWHERE.keys()
    assert not COVERED.keys() & ELSEWHERE.keys()


@pytest.mark.parametrize("case", [case for case in CASES if case["id"] in COVERED], ids=lambda case: case["id"])
def test_a_case_from_the_field_is_covered(case: dict[str, str]) -> None:
    file, name = COVERED[case["id"]]
    assert name in defined_in(file), case["why"]
