"""What an operator writes is taken as meant, or refused by name with what would be right."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from zerocron.core.errors import Invalid
from zerocron.settings import CHOICES, PREFIX, Settings, client_variable, load

KNOBS = {knob.name: knob for knob in dataclasses.fields(Settings)}
NUMBERS = [name for name, knob in KNOBS.items() if knob.metadata["low"] is not None]


def refusal(environment: dict[str, str], overrides: dict[str, Any] | None = None) -> dict[str, str]:
    with pytest.raises(Invalid) as error:
        load(overrides, environment)
    return {fault.field: fault.message for fault in error.value.fields}


def test_an_empty_environment_gives_the_defaults() -> None:
    assert load(environment={}) == Settings()
    assert load(environment={"PATH": "/bin", "HOME": "/"}) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("data_dir", "/srv/0cron", Path("/srv/0cron")),
        ("host", "0.0.0.0", "0.0.0.0"),
        ("port", "0", 0),
        ("port", "65535", 65_535),
        ("drain_seconds", "2.5", 2.5),
        ("outbound_allow", "10.0.0.0/8", "10.0.0.0/8"),
        ("team_in_flight_max", "0", 0),
        ("host_in_flight_max", "10000", 10_000),
        ("redis_shards", "64", 64),
        ("role", "ALL", "all"),
        ("metrics", "off", False),
        ("metrics", "YES", True),
        ("log_level", "debug", "debug"),
        ("log_level", "WARNING", "warning"),
        ("log_format", "JSON", "json"),
    ],
)
def test_a_variable_is_read_as_what_its_setting_is(name: str, text: str, value: Any) -> None:
    assert load(environment={PREFIX + name.upper(): text}) == dataclasses.replace(Settings(), **{name: value})


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_bounds_and_its_default_lies_within(name: str) -> None:
    low, high = KNOBS[name].metadata["low"], KNOBS[name].metadata["high"]
    kind: type[Any] = type(KNOBS[name].default)
    variable = PREFIX + name.upper()
    for good in (low, high, KNOBS[name].default):
        assert getattr(load(environment={variable: str(kind(good))}), name) == good
        assert getattr(load({name: kind(good)}, {}), name) == good
    for bad in (low - 1, high + 1):
        assert refusal({variable: str(kind(bad))}).keys() == {variable}
        assert refusal({}, {name: kind(bad)}).keys() == {name}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port", ""),
        ("port", "eighty"),
        ("port", "80.5"),
        ("drain_seconds", "nan"),
        ("drain_seconds", "inf"),
        ("metrics", "maybe"),
        ("metrics", ""),
        ("log_level", "loud"),
        ("role", "worker"),
        ("role", ""),
        ("team_in_flight_max", "-1"),
        ("log_format", ""),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_name(name: str, text: str) -> None:
    assert refusal({PREFIX + name.upper(): text}).keys() == {PREFIX + name.upper()}


def test_a_setting_that_does_not_exist_is_refused_at_the_start() -> None:
    """A name that changed must not be overlooked: elsewhere a time-out became 0 that way."""
    faults = refusal({"ZEROCRON_PROT": "8000", "ZEROCRON_HISTORY_DAYS_FILE_FILE": "x"})
    assert faults.keys() == {"ZEROCRON_PROT", "ZEROCRON_HISTORY_DAYS_FILE_FILE"}
    assert "docs/settings.md" in faults["ZEROCRON_PROT"]


def test_all_faults_are_named_at_once() -> None:
    assert len(refusal({"ZEROCRON_PORT": "x", "ZEROCRON_METRICS": "x", "ZEROCRON_X": "x"})) == 3


def test_what_is_given_on_the_command_line_wins() -> None:
    environment = {"ZEROCRON_PORT": "1", "ZEROCRON_HOST": "::1"}
    settings = load({"port": 2, "host": None}, environment)
    assert (settings.port, settings.host) == (2, "::1")


def test_a_value_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "port"
    file.write_text("8123\n")
    assert load(environment={"ZEROCRON_PORT_FILE": str(file)}).port == 8123
    assert load(environment={"ZEROCRON_PORT_FILE": str(file), "ZEROCRON_PORT": "1"}).port == 1
    missing = refusal({"ZEROCRON_PORT_FILE": str(tmp_path / "nowhere")})
    assert "nowhere" in missing["ZEROCRON_PORT"]


def test_the_variables_of_the_command_line_are_no_fault_of_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    load(environment={"ZEROCRON_API_URL": "http://x", "ZEROCRON_API_KEY_FILE": "/nowhere"})
    monkeypatch.setenv("ZEROCRON_API_URL", "http://x")
    assert client_variable("API_URL") == "http://x"
    assert client_variable("API_KEY") is None
    monkeypatch.setenv("ZEROCRON_API_KEY_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(Invalid, match="ZEROCRON_API_KEY_FILE"):
        client_variable("API_KEY")


def test_choices_are_lower_case_and_hold_the_default() -> None:
    for name, choices in CHOICES.items():
        assert KNOBS[name].default in choices
        assert [choice.lower() for choice in choices] == list(choices)


POSTGRES, REDIS = "postgresql://user:password@db/zerocron", "redis://index"


@pytest.mark.parametrize(
    ("role", "database", "redis"),
    [
        ("all", "", ""),
        ("all", POSTGRES, ""),
        ("all", POSTGRES, REDIS),
        ("engine", POSTGRES, ""),
        ("engine", POSTGRES, REDIS),
        ("api", POSTGRES, REDIS),
    ],
)
def test_a_node_of_a_cluster_has_what_its_role_needs(role: str, database: str, redis: str) -> None:
    given = {"ROLE": role, "DATABASE_URL": database, "REDIS_URL": redis}
    settings = load(environment={PREFIX + name: text for name, text in given.items()})
    assert (settings.role, settings.database_url, settings.redis_url) == (role, database, redis)


@pytest.mark.parametrize(
    ("role", "database", "redis", "variable", "remedy"),
    [
        ("all", "", REDIS, "REDIS_URL", "ZEROCRON_DATABASE_URL=postgresql://"),
        ("api", "", REDIS, "REDIS_URL", "ZEROCRON_DATABASE_URL=postgresql://"),
        ("api", "", "", "ROLE", "ZEROCRON_DATABASE_URL=postgresql://"),
        ("engine", "", "", "ROLE", "ZEROCRON_DATABASE_URL=postgresql://"),
        ("api", POSTGRES, "", "ROLE", "ZEROCRON_REDIS_URL=redis://"),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_to_set(
    role: str, database: str, redis: str, variable: str, remedy: str
) -> None:
    given = {"ROLE": role, "DATABASE_URL": database, "REDIS_URL": redis}
    faults = refusal({PREFIX + name: text for name, text in given.items()})
    assert faults.keys() == {PREFIX + variable}
    assert remedy in faults[PREFIX + variable]
    assert "password@" not in faults[PREFIX + variable], "what was given may hold a secret"


def test_a_role_of_the_command_line_is_judged_with_the_rest() -> None:
    assert refusal({}, {"role": "engine"}).keys() == {"ZEROCRON_ROLE"}
    assert load({"role": "engine"}, {"ZEROCRON_DATABASE_URL": POSTGRES}).role == "engine"


def test_the_urls_may_come_from_files(tmp_path: Path) -> None:
    for name, url in (("database", POSTGRES), ("redis", REDIS)):
        (tmp_path / name).write_text(url + "\n")
    settings = load(
        environment={
            "ZEROCRON_DATABASE_URL_FILE": str(tmp_path / "database"),
            "ZEROCRON_REDIS_URL_FILE": str(tmp_path / "redis"),
        }
    )
    assert (settings.database_url, settings.redis_url) == (POSTGRES, REDIS)


def test_files_of_the_server_lie_in_its_folder() -> None:
    settings = Settings(data_dir=Path("/srv"))
    paths = (settings.database_path, settings.local_key_path, settings.local_url_path)
    assert {path.parent for path in paths} == {Path("/srv")}
    assert len(set(paths)) == 3


@pytest.mark.parametrize(
    "url", ["cron.example.com", "ftp://cron.example.com", "https://user@cron.example.com", "https://"]
)
def test_a_base_url_that_nobody_could_call_is_refused(url: str) -> None:
    assert list(refusal({"ZEROCRON_BASE_URL": url})) == ["ZEROCRON_BASE_URL"]
    assert load(environment={"ZEROCRON_BASE_URL": "https://cron.example.com"}).base_url == "https://cron.example.com"


def test_a_mail_server_is_read_at_the_start() -> None:
    environment = {"ZEROCRON_MAIL_URL": "smtps://u:s3cret@mail.example.com", "ZEROCRON_MAIL_FROM": "0cron@example.com"}
    settings = load(environment=environment)
    assert settings.mail is not None
    assert (settings.mail.host, settings.mail.password) == ("mail.example.com", "s3cret")
    assert "s3cret" not in repr(settings)
    assert load(environment={}).mail is None


@pytest.mark.parametrize(
    ("url", "sender", "variable"),
    [
        ("smtp://u:s3cret@mail.example.com", "", "MAIL_FROM"),
        ("", "0cron@example.com", "MAIL_FROM"),
        ("mail.example.com", "0cron@example.com", "MAIL_URL"),
        ("smtp://u:s3cret@mail.example.com?security=none", "0cron@example.com", "MAIL_URL"),
    ],
)
def test_half_a_mail_server_is_refused(url: str, sender: str, variable: str) -> None:
    faults = refusal({"ZEROCRON_MAIL_URL": url, "ZEROCRON_MAIL_FROM": sender})
    assert faults.keys() == {PREFIX + variable}
    assert "s3cret" not in faults[PREFIX + variable]


def test_apprise_is_allowed_only_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(environment={"ZEROCRON_APPRISE": "true"}).apprise
    monkeypatch.setattr("zerocron.settings.find_spec", lambda _: None)
    assert load(environment={}).apprise is False
    assert "pip install" in refusal({"ZEROCRON_APPRISE": "true"})["ZEROCRON_APPRISE"]
