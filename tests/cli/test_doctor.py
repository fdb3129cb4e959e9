"""`0cron doctor`: what is well, what is to be mended, and that it says so in its exit code."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

import pytest
from tests.cli.support import Cli, Result

from zerocron.cli import doctor


def statuses(result: Result) -> dict[str, str]:
    return {check["check"]: check["status"] for check in result.json["checks"]}


def test_beside_a_running_server_all_is_well(home: Cli) -> None:
    shown = home("doctor").out
    assert shown.endswith("\nAll is well.\n")
    assert "a server uses this data (process " in shown
    assert "the one from data/local-key is accepted" in shown
    assert max(map(len, shown.splitlines())) <= 80
    found = home.here("doctor", "--json")
    assert found.json["ok"] is True
    assert set(statuses(found).values()) == {"ok"}
    assert "server clock" in statuses(found)


@pytest.mark.parametrize(("version", "status"), [((3, 34, 1), "FAIL"), ((3, 35, 0), "ok")])
def test_a_sqlite_without_returning_is_too_old(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], status: str
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    found = doctor._sqlite()
    assert found.status == status
    if status == "FAIL":
        assert found.advice == "0cron needs SQLite 3.35.0 or later."


def test_before_the_first_start_there_is_something_to_look_at_but_nothing_to_mend(cli: Cli) -> None:
    shown = cli.with_environment(ZEROCRON_PORT="0").here("doctor").out
    assert "warn  data" in shown
    assert "warn  server" in shown
    assert " serve\n" in shown
    assert "0 to mend, 3 to look at." in shown
    assert list(cli.directory.iterdir()) == []


def test_wrong_settings_and_a_damaged_database_are_to_be_mended(cli: Cli) -> None:
    (cli.directory / "data").mkdir()
    (cli.directory / "data" / "zerocron.db").write_bytes(b"junk" * 4096)
    sick = cli.with_environment(ZEROCRON_PORT="abc", ZEROCRON_POTR="1")
    found = sick("doctor", "--json", code=1)
    assert found.json["ok"] is False
    assert statuses(found)["settings"] == "FAIL"
    assert statuses(found)["database"] == "FAIL"
    settings = next(check for check in found.json["checks"] if check["check"] == "settings")
    assert "ZEROCRON_PORT: 'abc' is not a number" in settings["message"]
    assert "ZEROCRON_POTR" in settings["message"]


def test_a_server_that_is_named_must_be_there_and_be_one(cli: Cli, target: str) -> None:
    absent = cli.here("doctor", "--url", "http://127.0.0.1:9", "--json", code=1)
    assert statuses(absent)["server"] == "FAIL"
    stranger = cli.here("doctor", "--url", target, code=1).out
    assert "is not a 0cron server" in stranger


def test_a_server_with_other_data_is_told_apart(cli: Cli, home: Cli) -> None:
    (cli.directory / "data").mkdir()
    (cli.directory / "data" / "local-url").write_text((home.directory / "data" / "local-url").read_text())
    assert "does not use this data" in cli.here("doctor").out


def test_a_key_that_is_not_accepted_is_to_be_mended(home: Cli) -> None:
    assert statuses(home.here("doctor", "--key", "0c_nonsense", "--json", code=1))["api key"] == "FAIL"


def test_a_lock_is_seen_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert doctor.lock_holder(path) is None
    path.write_text("4711")
    assert doctor.lock_holder(path) is None
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert doctor.lock_holder(path) == "4711"
    assert doctor.lock_holder(path) is None


@pytest.mark.parametrize(
    ("off", "status", "told"),
    [(0.4, "ok", "agrees with"), (-3, "warn", "3 s behind"), (60, "FAIL", "60 s ahead of")],
)
def test_clocks_that_differ_are_told(off: float, status: str, told: str) -> None:
    finding = doctor._compared("clock", off, "the disk")
    assert finding.status == status
    assert told in finding.message


def test_a_database_with_damaged_pages_is_found(tmp_path: Path) -> None:
    path = tmp_path / "zerocron.db"
    assert doctor._integrity(path).status == "ok"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a TEXT)")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 200)
    connection.commit()
    connection.close()
    assert "no damage found" in doctor._integrity(path).message
    with path.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(os.urandom(8192))
    assert doctor._integrity(path).status == "FAIL"
