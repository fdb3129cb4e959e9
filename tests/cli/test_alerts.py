"""What `0cron alerts list` says became of an alert."""

from __future__ import annotations

import pytest

from zerocron.cli.alerts import _state

NOW = 1_800_000_000_000
ENDED = "2027-01-15T08:00:00Z"


@pytest.mark.parametrize(
    ("status", "finished_at", "shown"),
    [
        ("folded", None, "folded\nwaits with others"),
        ("folded", ENDED, "folded\nsent with others"),
        ("sent", ENDED, "sent"),
    ],
)
def test_of_an_alert_that_travels_with_others_their_message_is_told(
    status: str, finished_at: str | None, shown: str
) -> None:
    alert = {"status": status, "tries": 0, "next_attempt_at": None, "last_error": None, "finished_at": finished_at}
    assert _state(alert, NOW).plain == shown
