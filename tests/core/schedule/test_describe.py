"""A schedule in plain English: from what it means, whatever way it was typed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from zerocron.core.schedule import Schedule, parse

NOW = int(datetime(2026, 11, 29, 12, 0, tzinfo=UTC).timestamp()) * 1000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("*/10 5 * * * *", "every 10 seconds of minute 5"),
        ("15 */10 * * * *", "every 10 minutes at second 15"),
        ("0-59/15 * * * *", "every 15 minutes"),
        ("5/15 * * * *", "every 15 minutes from minute 5"),
        ("50-10 * * * *", "at minutes 0 to 10 and 50 to 59"),
        ("0 * * * *", "every hour"),
        ("30 */2 * * *", "every 2 hours at minute 30"),
        ("0 0-22 * * *", "at hours 0 to 22"),
        ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:45, every weekday"),
        ("*/5 8,20 * * *", "every 5 minutes in hours 8 and 20"),
        ("* * 8 * * *", "every second from 08:00 to 08:59"),
        ("0 9 * * MON-FRI", "every weekday at 09:00"),
        ("0 9 * * 1,2,3,4,5", "every weekday at 09:00"),
        ("0 8,10,12,14,16,18,20 * * *", "every day at 08:00, 10:00, 12:00, 14:00, 16:00, 18:00 and 20:00"),
        ("30 0 9 * * *", "every day at 09:00:30"),
        ("0 9 * * sat-sun", "every Saturday and Sunday at 09:00"),
        ("0 9 1,15 * *", "on days 1 and 15 of the month at 09:00"),
        ("0 9 LW * *", "on the last weekday of the month at 09:00"),
        ("0 9 1,L * *", "on day 1 and the last day of the month at 09:00"),
        ("0 9 15W * *", "on the weekday nearest day 15 of the month at 09:00"),
        ("0 9 * * MON#2,5L", "on the second Monday and the last Friday of the month at 09:00"),
        ("0 9 * * MON,5L", "every Monday or on the last Friday of the month at 09:00"),
        ("0 9 13 * FRI", "on day 13 of the month or every Friday at 09:00"),
        ("0 9 */100,1-7 * MON", "every Monday falling on days 1 to 7 of the month at 09:00"),
        ("0 9 1,* * MON", "on any day of the month or every Monday at 09:00"),
        ("0 9 1 * 0,*", "on day 1 of the month or on any day of the week at 09:00"),
        ("0 9 1 JAN,JUL *", "on day 1 of the month at 09:00 in January and July"),
        ("0 0 9 1 1 ? 2030,2031", "on day 1 of the month at 09:00 in January in 2030 and 2031"),
        ("0 0 9 1 1 ? 2030", "on day 1 of the month at 09:00 in January in 2030"),
        ("0 0 9 1 1 ? */2", "on day 1 of the month at 09:00 in January in 1970, 1972, 1974, 1976, 1978 and so on"),
    ],
)
def test_a_cron_expression_in_words(text: str, words: str) -> None:
    assert parse(text, timezone="Europe/Paris", now=NOW).schedule.describe() == f"{words} (Europe/Paris)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("every 90 minutes", "every 90 minutes"),
        ("every 60 minutes", "every hour"),
        ("every 86400 s", "every day"),
        ("every 14 days", "every 2 weeks"),
        ("every 61 seconds", "every 61 seconds"),
        ("2027-07-01 09:00", "once, 2027-07-01 09:00 (Europe/Paris)"),
        ("2027-07-01T09:00:00.250Z", "once, 2027-07-01 11:00:00.250 (Europe/Paris)"),
        ("2027-07-01T09:00:05Z", "once, 2027-07-01 11:00:05 (Europe/Paris)"),
    ],
)
def test_an_interval_or_an_instant_in_words(text: str, words: str) -> None:
    assert parse(text, timezone="Europe/Paris", now=NOW).schedule.describe() == words


def test_an_interval_of_odd_milliseconds_in_words() -> None:
    assert Schedule("interval", None, 1_500, 0, "UTC").describe() == "every 1500 milliseconds"
