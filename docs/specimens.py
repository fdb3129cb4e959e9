"""Two notices as they happen every day: what the pages show, and what tests of channels start from."""

from __future__ import annotations

from zerocron.core.notice import EventKind, Notice

BASE_URL = "https://cron.example.com"
ALERT_ID = "0199b7f2-6c1e-7d43-9a55-0d5c7f2be1aa"
SLOT = 1_799_996_400_000  # 2027-01-15T07:00:00Z
HOUR = 3_600_000

FAILED = Notice(
    event_id="7d0a1f56-5b0c-5a1e-8f0a-2f6f0a3c9d11",
    kind=EventKind.JOB_FAILED,
    team_id="team",
    at=SLOT + 2_000,
    subject_id="0199b7f2-0000-7000-8000-00000000000a",
    subject_name="nightly report",
    timezone="Europe/Paris",
    schedule="Every day at 08:00",
    reason="The status was 500; the job accepts 2xx.",
    since=SLOT + 2_000 - 48 * HOUR,
    slot=SLOT,
    next_at=SLOT + 24 * HOUR,
    count=3,
    run_id="0199b7f2-0000-7000-8000-0000000000ff",
    duration_ms=1_845,
    output='{"error": "disk full", "free": "0 B"}',
    tags=("billing", "prod"),
)
DOWN = Notice(
    event_id="0b9a7a0e-98a4-5f3d-9d2c-9a3f4e2b7c22",
    kind=EventKind.MONITOR_DOWN,
    team_id="team",
    at=SLOT + 300_000,
    subject_id="0199b7f2-0000-7000-8000-00000000000b",
    subject_name="db backup",
    timezone="Europe/Paris",
    schedule="Every hour",
    reason="No ping came within the grace period of 5 minutes.",
    since=SLOT - HOUR + 12_000,
    slot=SLOT,
    output="dumped 3 of 12 tables",
)
