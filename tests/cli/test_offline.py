"""Commands that need no server: preview, version, openapi, help."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.cli.support import Cli

from zerocron import __version__
from zerocron.cli.main import run

Capture = pytest.CaptureFixture[str]

COMMANDS = (
    *("serve", "doctor", "preview", "openapi", "version", "runs show", "keys create", "keys list", "keys revoke"),
    *(f"jobs {verb}" for verb in ["create", "list", "show", "edit", "pause", "resume", "trigger", "delete", "runs"]),
)


def test_preview_says_what_a_schedule_means_and_when_it_runs(cli: Cli) -> None:
    arguments = ("preview", "0 9 * * 1-5", "--tz", "Europe/Paris", "--after", "2026-11-29T12:00:00Z", "--count", "2")
    shown = cli(*arguments).out.splitlines()
    assert shown[:2] == ["Every weekday at 09:00 (Europe/Paris)", ""]
    assert shown[2].split() == ["DAY", "Europe/Paris", "UTC"]
    assert shown[3].startswith("Mon  2026-11-30 09:00:00  Mon 2026-11-30 08:00:00  ")
    assert shown[4].startswith("Tue  2026-12-01 09:00:00  Tue 2026-12-01 08:00:00  ")
    elsewhere = cli.with_environment(TZ="America/New_York")(*arguments).out.splitlines()
    assert elsewhere[2].split("  ")[-1].strip() == "HERE (EST)"
    assert "Mon 03:00:00" in elsewhere[3]


def test_preview_as_json_is_what_the_api_answers(cli: Cli) -> None:
    found = cli("preview", "@daily", "--after", "2027-01-01T00:00:00Z", "--count", "1", "--json").json
    assert found == {
        "kind": "cron",
        "schedule_cron": "0 0 * * *",
        "timezone": "UTC",
        "language": "en",
        "description": "every day at 00:00 (UTC)",
        "next": ["2027-01-02T00:00:00Z"],
        "warnings": [],
        "clock_changes": [],
    }


def test_preview_tells_when_there_is_no_further_time(cli: Cli) -> None:
    assert "Then never again." in cli.here("preview", "2499-01-01 09:00").out


def test_preview_refuses_with_suggestions_and_a_hint_about_quotes(cli: Cli) -> None:
    refused = cli.here("preview", "9 * * * 1-5 x y z", code=2)
    assert "\n  try: " in refused.err
    assert refused.out == ""
    assert "needs quotes" in cli.here("preview", "0", "9", "1", "1", "1", code=2).err
    assert "--after: 'tomorrow' is not an instant" in cli.here("preview", "@daily", "--after", "tomorrow", code=2).err


def test_version_in_both_ways(cli: Cli) -> None:
    assert cli("--version").out.startswith(f"0cron {__version__} (Python ")
    assert cli.here("version", "--json").json["version"] == __version__


def test_openapi_is_the_document_of_the_api(cli: Cli) -> None:
    document = cli("openapi").json
    assert document["info"]["version"] == __version__
    assert "/v1/jobs/{job_id}/trigger" in document["paths"]


def test_the_root_shows_the_commands_in_order_and_the_exit_codes(cli: Cli) -> None:
    shown = cli("-h").out
    places = [shown.index(f"│ {command} ") for command in ("serve", "doctor", "jobs", "runs", "keys", "preview")]
    assert places == sorted(places)
    assert "6 the server cannot be reached" in " ".join(shown.split())
    assert "\033" not in shown
    assert cli.here(code=2).out == shown


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_eighty_columns(command: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*command.split(), "-h"]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: 0cron {command} " in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "<bool>" not in shown
    assert "…" not in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["jobs", "lst"], "error: No such command 'lst'. Did you mean 'list'?"),
        (["jobs", "list", "--statuss", "x"], "error: No such option: --statuss"),
        (["jobs", "create", "--name", "x"], "error: Missing option '--schedule'."),
        (["jobs", "show"], "error: Missing argument 'JOB'."),
        (
            ["jobs", "list", "--limit", "0"],
            "error: Invalid value for '--limit' / '-n': This has to be at least 1; this is 0.",
        ),
        (["jobs", "list", "--limit", "many"], "This has to be a whole number; this is 'many'."),
        (["ping", "x", "--exit-code", "256"], "This has to be at most 255; this is 256."),
        (["preview", "@daily", "--count", "0"], "This has to be at least 1; this is 0."),
        (["jobs", "edit", "x", "--attempts", "9" * 5000], "This has to be a smaller whole number"),
        (["jobs", "list", "--status", "no"], "'no' is not one of 'active', 'paused', 'disabled', 'completed'."),
        (["serve", "--port", "70000"], "70000 is not between 0 and 65,535."),
    ],
)
def test_wrong_usage_is_one_line_and_the_way_to_the_help(arguments: list[str], told: str, capsys: Capture) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    first, *hints = shown.err.splitlines()
    assert told in first
    assert hints[-1].startswith("  See: 0cron ")
    assert hints[-1].endswith(" --help")
    assert shown.out == ""


def test_commands_of_the_client_load_no_server_and_no_database() -> None:
    code = (
        "import sys, json; from zerocron.cli.main import run; run(['preview', '@daily']);"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    loaded = set(json.loads(shown.splitlines()[-1]))
    assert not loaded & {"fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "aiohttp", "structlog", "uvloop"}
