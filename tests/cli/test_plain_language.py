"""`0cron preview` and `0cron jobs` with schedules in words."""

from __future__ import annotations

import re

from tests.cli.support import Cli


def test_preview_reads_words_and_says_what_it_read(cli: Cli) -> None:
    shown = cli.here("preview", "every weekday at 9am", "--after", "2026-11-29T12:00:00Z").out.splitlines()

    assert shown[:2] == ["Every weekday at 09:00 (UTC)", "As cron: 0 9 * * 1-5"]
    assert len([line for line in shown if "09:00:00" in line]) == 10


def test_preview_speaks_the_language_of_the_phrase(cli: Cli) -> None:
    assert cli.here("preview", "tous les lundis à 8h30").out.startswith("Chaque lundi à 8h30 (UTC)\n")
    assert cli.here("preview", "0 9 * * 1-5", "--language", "es").out.startswith("De lunes a viernes")


def test_preview_says_when_the_clocks_matter_and_what_the_policy_does(cli: Cli) -> None:
    fixed = ("preview", "30 2 * * *", "--tz", "Europe/Paris", "--after", "2026-11-29T12:00:00Z", "-n", "1")

    assert "Sun 2027-03-28  The clocks go forward from 02:00 to 03:00" in cli.here(*fixed).out
    assert "it runs at 03:00 instead" in cli.here(*fixed).out
    assert "it runs at 03:00 instead" not in cli.here(*fixed, "--dst", "skip").out


def test_preview_refuses_what_has_two_readings_and_a_crontab_line(cli: Cli) -> None:
    twofold = cli.here("preview", "at 7", code=2)
    assert "try: every day at 07:00" in twofold.err

    crontab = cli.here("preview", "0 5 * * 1 root /usr/bin/backup.sh", code=2)
    assert "0cron cannot run the command in it: it calls URLs" in crontab.err


def test_a_job_made_in_words_shows_them_and_their_meaning(home: Cli) -> None:
    made = home(
        *("jobs", "create", "--name", "in words", "--schedule", "cada lunes a las 9", "--dst", "run_both"),
        *("--url", "https://example.com/"),
    )

    assert "cada lunes a las 9" in made.out
    assert "cada lunes a las 9:00" in made.out


def test_the_next_slots_of_a_job_follow_its_own_rules(home: Cli) -> None:
    """Friday the 13th where both must match, which are months apart, and not each Friday and each 13th."""
    made = ("jobs", "create", "--name", "unlucky", "--schedule", "0 9 13 * FRI", "--url", "https://example.com/")
    shown = home.here(*made, "--day-match", "both").out
    days = re.findall(r"(\d{4})-(\d\d)-13", shown)
    assert len(days) == 3
