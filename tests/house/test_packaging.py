"""What surrounds the program is held to what it is: image, cluster, service, alerts, dashboard, operator's page.

No container engine, systemd or Prometheus is needed: the files are read, and what can be run of them by itself is run.
deploy/README.md says how each is checked by its own tool.
"""

from __future__ import annotations

import asyncio
import configparser
import contextlib
import fnmatch
import http.server
import json
import re
import shlex
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import redis
import structlog
import yaml
from tests.support.redis import RedisServer

from zerocron.app import OTHER_FILES
from zerocron.metrics import Metrics
from zerocron.settings import CLIENT_VARIABLES, PREFIX, Settings, load
from zerocron.storage.timetable.redis import RedisTimetable

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
VARIABLES = {PREFIX + knob.name.upper() for knob in fields(Settings)}
IN_FLIGHT_MAX = next(knob for knob in fields(Settings) if knob.name == "in_flight_max").metadata["high"]

RECORD_SECONDS = 30
"""What a stop may take beyond the drain: the tick under way, the last results, answers of the API."""

NODE_MB, REQUEST_MB = 250, 2
"""A node's memory, and what a request in flight may add to it."""

SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|_KEY|_URL")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# the image


class Dockerfile:
    """The instructions of the file, as (stage, word, rest)."""

    def __init__(self, text: str) -> None:
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        self.steps: list[tuple[int, str, str]] = []
        stage = -1
        for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
            if line.strip():
                word, _, rest = line.strip().partition(" ")
                stage += word == "FROM"
                self.steps.append((stage, word, rest.strip()))
        self.last_stage = stage

    def all(self, word: str, *, final: bool = False) -> list[str]:
        return [rest for stage, it, rest in self.steps if it == word and (not final or stage == self.last_stage)]

    def environment(self) -> dict[str, str]:
        words = [word for rest in self.all("ENV", final=True) for word in shlex.split(rest)]
        return dict(word.split("=", 1) for word in words)


DOCKERFILE = Dockerfile(text_of("Dockerfile"))


def is_pinned(image: str) -> bool:
    """Whether the tag names a version of the software (and so is not `latest`, or no tag at all)."""
    return re.search(r":v?\d+\.?\d*", image) is not None


def test_the_image_stands_on_pinned_slim_debian_images() -> None:
    bases = [rest.split()[0] for rest in DOCKERFILE.all("FROM")]
    assert len(bases) == 2, "the build tools stay behind in a stage of their own"
    assert all(is_pinned(base) and re.search(r"-slim-[a-z]+$", base) for base in bases), bases
    assert len(set(bases)) == 1, "a virtual environment moves to the same Python only"
    python = re.search(r":(\d+)\.(\d+)", bases[0])
    assert python is not None
    assert (int(python[1]), int(python[2])) >= (3, 11)


def test_the_image_does_not_run_as_root() -> None:
    users = DOCKERFILE.all("USER", final=True)
    assert users
    user, _, group = users[-1].partition(":")
    assert user.isdigit()
    assert group.isdigit()
    assert min(int(user), int(group)) > 0
    words = [word for _, word, _ in DOCKERFILE.steps]
    assert "RUN" not in words[len(words) - words[::-1].index("USER") :], "nothing is installed as that user"


@pytest.mark.parametrize("word", ["ENTRYPOINT", "CMD"])
def test_the_process_is_started_without_a_shell_that_would_keep_signals_from_it(word: str) -> None:
    (command,) = DOCKERFILE.all(word, final=True)
    assert isinstance(json.loads(command), list)


def test_the_image_starts_the_server_and_stops_it_by_draining() -> None:
    command = json.loads(DOCKERFILE.all("ENTRYPOINT")[0]) + json.loads(DOCKERFILE.all("CMD", final=True)[0])
    assert command == ["0cron", "serve"]
    assert DOCKERFILE.all("STOPSIGNAL", final=True) == ["SIGTERM"]


def test_the_settings_of_the_image_are_settings_and_its_data_is_the_volume() -> None:
    environment = DOCKERFILE.environment()
    settings = load(environment={name: value for name, value in environment.items() if name.startswith(PREFIX)})
    assert (settings.host, settings.data_dir) == ("0.0.0.0", Path("/data"))
    assert json.loads(DOCKERFILE.all("VOLUME", final=True)[0]) == [str(settings.data_dir)]
    assert DOCKERFILE.all("EXPOSE", final=True) == [str(settings.port)]
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1", "the root file system may be read-only"


def test_the_image_holds_no_secret() -> None:
    given = [word.split("=", 1)[0] for rest in DOCKERFILE.all("ARG") for word in shlex.split(rest)]
    assert not [name for name in (*given, *DOCKERFILE.environment()) if SECRET.search(name)]


def test_whatever_the_image_installs_was_compared_with_the_lock() -> None:
    commands = [
        command for rest in DOCKERFILE.all("RUN") for command in rest.split("&&") if command.strip().startswith("pip ")
    ]
    locks = {"requirements.lock", "requirements-node.lock"}
    assert len([command for command in commands if "--no-index" not in command]) == len(locks)
    for command in commands:
        hashed = "--require-hashes" in command and any(f"--requirement {lock}" in command for lock in locks)
        assert hashed or "--no-index" in command, command


def test_the_wheel_holds_the_pages_and_what_they_are_made_of(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    folder = "zerocron/dashboard"
    fetched = ("htmx.min.js", "sse.min.js", "uplot.min.js", "uplot.min.css")
    wanted = {f"{folder}/static/vendor/{name}" for name in fetched}
    wanted |= {f"{folder}/templates/base.html", f"{folder}/words/fr/shared.po", f"{folder}/static/css/00-tokens.css"}
    assert wanted <= names
    assert not [name for name in names if "node_modules" in name]


def is_sent_to_the_build(path: str) -> bool:
    """By .dockerignore: the last line that fits decides, and a folder stands for what is in it."""
    sent = True
    parents = ["/".join(path.split("/")[: end + 1]) for end in range(path.count("/") + 1)]
    for line in text_of(".dockerignore").splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        names = [
            name for parent in parents for name in ((parent, Path(parent).name) if "**/" in pattern else (parent,))
        ]
        if any(fnmatch.fnmatchcase(name, pattern.removeprefix("**/")) for name in names):
            sent = line.startswith("!")
    return sent


def test_the_build_is_sent_what_it_copies_and_nothing_else() -> None:
    copies = [rest.split() for rest in DOCKERFILE.all("COPY")]
    sources = {source for words in copies if not words[0].startswith("--from") for source in words[:-1]}
    locks = {"requirements.lock", "requirements-build.in", "requirements-node.lock"}
    assert sources == {"pyproject.toml", "README.md", "src", "frontend"} | locks
    for source in sources:
        assert (ROOT / source).exists()
        assert is_sent_to_the_build(source)
    assert is_sent_to_the_build("src/zerocron/settings.py")
    kept = ["data/local-key", "tests/conftest.py", ".git/config", ".venv/bin/python", "deploy/secrets/database-url"]
    kept += ["frontend/node_modules/htmx.org/package.json"]
    kept += ["docs/operating.md", ".env", "src/zerocron/__pycache__/settings.pyc"]
    assert not [path for path in kept if is_sent_to_the_build(path)]


class _Answer(http.server.BaseHTTPRequestHandler):
    statuses: Mapping[str, int]

    def do_GET(self) -> None:
        self.send_response(self.statuses.get(self.path, 404))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port_of_a_node_that_waits() -> Iterator[int]:
    """It is alive, and not ready."""
    handler = type("_Waiting", (_Answer,), {"statuses": {"/healthz": 200, "/readyz": 503}})
    server = http.server.HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def exit_code(code: str, port: int) -> int:
    environment = {"PATH": "/usr/bin:/bin", "ZEROCRON_PORT": str(port), "http_proxy": "http://127.0.0.1:1"}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False).returncode


def test_the_checks_tell_alive_from_ready(port_of_a_node_that_waits: int) -> None:
    """The image's own asks the first: who kills what is unhealthy must not kill a node that waits for its database."""
    (check,) = DOCKERFILE.all("HEALTHCHECK", final=True)
    python, option, alive = json.loads(check[check.index("[") :])
    assert (python, option) == ("python", "-c")
    command, *rest = NODES["0cron-1"]["healthcheck"]["test"]
    assert (command, rest[:2]) == ("CMD", ["python", "-c"])
    ready = rest[2].replace("8000", str(port_of_a_node_that_waits))
    assert exit_code(alive, port_of_a_node_that_waits) == 0
    assert exit_code(ready, port_of_a_node_that_waits) == 1
    assert exit_code(ready.replace("/readyz", "/healthz"), port_of_a_node_that_waits) == 0
    assert exit_code(alive, 1) == 1


# the cluster of compose.yaml

COMPOSE: dict[str, Any] = yaml.safe_load(text_of("compose.yaml"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NODES = {name: service for name, service in SERVICES.items() if "build" in service}


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def megabytes(text: str) -> float:
    return float(text[:-1]) * {"M": 1, "G": 1_000}[text[-1]]


def node_settings(node: Mapping[str, Any]) -> Settings:
    return load(environment={name: value for name, value in node["environment"].items() if not name.endswith("_FILE")})


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_can_do_no_more_than_it_must(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert megabytes(service["deploy"]["resources"]["limits"]["memory"]) > 0
    assert service["healthcheck"]["test"]
    assert "build" in service or is_pinned(service["image"])
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:"), "what has no TLS is published to this machine only"
    for volume in service.get("volumes", ()):
        source, _, rest = volume.partition(":")
        assert source in COMPOSE["volumes"] or rest.endswith(":ro")
        assert not source.startswith("./") or (ROOT / source).is_file()


def test_no_secret_is_in_the_environment() -> None:
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if SECRET.search(name):
                assert name.endswith("_FILE")
                assert value.removeprefix("/run/secrets/") in service["secrets"]
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])


def test_two_nodes_share_one_configuration() -> None:
    own = ("ports", "volumes")
    first, second = ({key: value for key, value in node.items() if key not in own} for node in NODES.values())
    assert first == second
    assert all(len({str(node[key]) for node in NODES.values()}) == 2 for key in own)


@pytest.mark.parametrize("name", NODES)
def test_a_node_gets_what_it_was_told_it_may_use(name: str) -> None:
    node = NODES[name]
    settings = node_settings(node)
    limits = node["deploy"]["resources"]["limits"]
    assert megabytes(limits["memory"]) >= NODE_MB + REQUEST_MB * settings.in_flight_max
    assert node["ulimits"]["nofile"]["hard"] >= settings.in_flight_max + OTHER_FILES
    assert seconds(node["stop_grace_period"]) >= settings.drain_seconds + RECORD_SECONDS
    stores = {store: rule["condition"] for store, rule in node["depends_on"].items()}
    assert stores == {"postgres": "service_healthy", "redis": "service_healthy"}
    assert {name.removesuffix("_FILE") for name in node["environment"]} <= VARIABLES


def test_postgres_has_connections_for_all_nodes() -> None:
    command = SERVICES["postgres"]["command"]
    (allowed,) = (int(word.split("=")[1]) for word in command if word.startswith("max_connections="))
    beside_the_pool = 2  # who may be an engine, and a migration
    wanted = sum(node_settings(node).database_connections_max + beside_the_pool for node in NODES.values())
    assert allowed >= wanted + 10
    assert not any("synchronous_commit" in word or "fsync" in word for word in command)


def test_redis_keeps_nothing_and_evicts_nothing() -> None:
    command = SERVICES["redis"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert (options["--save"], options["--appendonly"]) == ("", "no")
    assert options["--maxmemory-policy"] == "noeviction"
    memory = megabytes(SERVICES["redis"]["deploy"]["resources"]["limits"]["memory"])
    assert megabytes(options["--maxmemory"].removesuffix("mb") + "M") < memory


def test_the_stores_are_out_of_reach_from_outside() -> None:
    assert COMPOSE["networks"]["stores"]["internal"] is True
    for store in ("postgres", "redis"):
        assert SERVICES[store]["networks"] == ["stores"]
        assert "ports" not in SERVICES[store]


@pytest.fixture
def make_secrets(tmp_path: Path) -> Sequence[str]:
    """The command, which has been run once in a folder of its own."""
    (tmp_path / "secrets").mkdir()
    script = tmp_path / "make-secrets.sh"
    script.write_bytes((DEPLOY / "make-secrets.sh").read_bytes())
    command = ["sh", str(script)]
    subprocess.run(command, check=True, capture_output=True)
    return command


def test_the_secrets_are_made_once_and_fit_together(make_secrets: Sequence[str], tmp_path: Path) -> None:
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    wanted = {Path(secret["file"]) for secret in COMPOSE["secrets"].values()}
    assert {Path("deploy/secrets") / name for name in made} == wanted
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700

    settings = load(environment={PREFIX + "DATABASE_URL": made["database-url"].strip()})
    assert settings.database_url == f"postgresql://zerocron:{made['zerocron-password']}@postgres:5432/zerocron"
    user, password = re.findall(r"^redis://(\w+):(\w+)@redis:6379/0\n$", made["redis-url"])[0]
    assert f"user {user} on >{password} resetkeys ~{settings.redis_prefix}:*" in made["redis-users.acl"]
    assert len({made["postgres-password"], made["zerocron-password"], password}) == 3
    assert min(len(made["postgres-password"]), len(password)) == 48

    again = subprocess.run(make_secrets, check=False, capture_output=True, text=True)
    assert again.returncode == 1
    assert "is there already" in again.stderr
    assert {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()} == made


@pytest.mark.usefixtures("make_secrets")
async def test_the_rights_in_redis_are_enough_for_a_node_and_no_more(tmp_path: Path) -> None:
    server = RedisServer()
    try:
        server.start(aclfile=tmp_path / "secrets" / "redis-users.acl")
        url = (tmp_path / "secrets" / "redis-url").read_text().strip()
        url = url.replace("@redis:6379", f"@{server.host}:{server.port}")
        with structlog.testing.capture_logs() as logs:
            await use_everything(url)
        assert not [line for line in logs if line["log_level"] != "info"]
        with redis.Redis.from_url(url) as user:
            for words in (["FLUSHALL"], ["CONFIG", "SET", "maxmemory", "1"], ["SET", "other:key", "1"], ["KEYS", "*"]):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    user.execute_command(*words)
        with pytest.raises(redis.exceptions.NoPermissionError):
            server.command("GET", "zerocron:x")
        assert server.command("PING") is True, "the health check has no password"
    finally:
        server.close()


async def use_everything(url: str) -> None:
    """All that a timetable can be asked for, and a word from one node to another."""
    async with contextlib.AsyncExitStack() as stack:
        timetables = []
        for _ in range(2):
            timetables.append(await RedisTimetable.open(url, prefix=Settings().redis_prefix))
            stack.push_async_callback(timetables[-1].close)
        timetable, other = timetables
        await timetable.lost(1_000)
        await timetable.lost(1_000)
        assert await timetable.on_duty(6)
        other.earlier.clear()
        await timetable.put({"j:team:a": 1_000, "r:team:b": 1_000})
        await asyncio.wait_for(other.earlier.wait(), 10)
        assert await timetable.restore({"j:team:a": 1_000, "j:team:c": 1_000}, now=1_000) == 1
        assert set((await timetable.claim(1_000, 10)).members) == {"j:team:a", "r:team:b", "j:team:c"}
        await timetable.drop(["j:team:c"])
        assert await timetable.size() == 2
        await timetable.clear()


def test_secrets_stay_out_of_the_repository() -> None:
    assert (DEPLOY / "secrets" / ".gitignore").read_text() == "*\n!.gitignore\n"


def test_the_role_of_the_nodes_is_no_superuser() -> None:
    statements = (DEPLOY / "postgres-role.sh").read_text()
    assert "CREATE ROLE zerocron LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION" in statements
    assert "./deploy/postgres-role.sh:/docker-entrypoint-initdb.d/10-zerocron.sh:ro" in SERVICES["postgres"]["volumes"]
    assert (DEPLOY / "postgres-role.sh").stat().st_mode & stat.S_IXOTH, "it is run by the image's user"


# the service


def unit() -> Mapping[str, Mapping[str, list[str]]]:
    class Lines(dict[str, Any]):
        """Keeps every line of a name that is there more than once."""

        def __setitem__(self, key: str, value: Any) -> None:
            if isinstance(value, list) and key in self:
                self[key].extend(value)
            else:
                super().__setitem__(key, value)

    parser = configparser.RawConfigParser(dict_type=Lines, strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read_string((DEPLOY / "0cron.service").read_text())
    return {name: {key: value.split("\n") for key, value in parser[name].items()} for name in parser.sections()}


def environment_of(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_service_is_given_what_its_settings_need() -> None:
    service = unit()["Service"]
    settings = load(environment=environment_of((DEPLOY / "0cron.env").read_text()))
    assert float(service["TimeoutStopSec"][0]) >= settings.drain_seconds + RECORD_SECONDS
    assert int(service["LimitNOFILE"][0]) >= IN_FLIGHT_MAX + OTHER_FILES
    assert service["Environment"] == [f"ZEROCRON_DATA_DIR=/var/lib/{service['StateDirectory'][0]}"]
    assert service["ExecStart"][0].endswith("/0cron serve")
    assert service["Restart"] == ["always"]


def test_what_the_environment_file_shows_in_passing_would_be_accepted() -> None:
    text = re.sub(r"^#(ZEROCRON_)", r"\1", (DEPLOY / "0cron.env").read_text(), flags=re.MULTILINE)
    shown = environment_of(text)
    assert len(shown) > len(environment_of((DEPLOY / "0cron.env").read_text()))
    load(environment=shown)


def test_the_service_can_do_no_more_than_it_must() -> None:
    service = unit()["Service"]
    assert service["DynamicUser"] == ["yes"]
    assert service["ProtectSystem"] == ["strict"]
    assert service["CapabilityBoundingSet"] == [""]
    wanted = [
        "NoNewPrivileges",
        "PrivateTmp",
        "PrivateDevices",
        "ProtectHome",
        "RestrictSUIDSGID",
        "RestrictNamespaces",
    ]
    assert all(service[name] == ["yes"] for name in wanted)


# metrics, alerts, dashboard, and the page that explains them

RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus-alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [target["expr"] for panel in PANELS for target in panel["targets"]]


def series() -> dict[str, set[str]]:
    """What Prometheus will know: name of a series -> its own labels."""
    found: dict[str, set[str]] = {}
    for family in Metrics().registry.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "info": ("_info",)}
        for suffix in suffixes.get(family.type, ("",)):
            found[family.name + suffix] = {"le"} if suffix == "_bucket" else set()
    return found


def names_in(text: str) -> set[str]:
    """Metrics; `zerocron_lateness_seconds` in prose stands for its series."""
    return set(re.findall(r"\bzerocron_[a-z0-9_]+", text))


def is_whole(expression: str) -> bool:
    """Whether brackets and quotes close in the order in which they opened."""
    opened: list[str] = []
    bare = re.sub(r'"[^"]*"', "", expression)
    for mark in bare:
        if mark in "([{":
            opened.append(mark)
        elif mark in ")]}" and (not opened or opened.pop() + mark not in ("()", "[]", "{}")):
            return False
    return not opened and '"' not in bare


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_about_something_that_is_measured_and_says_what_to_do(rule: dict[str, Any]) -> None:
    expression = rule["expr"]
    assert is_whole(expression)
    assert names_in(expression) <= set(series())
    assert names_in(expression) or 'up{job="0cron"}' in expression
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert {"summary", "description"} < set(rule["annotations"])
    file, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert (file, anchor) == ("docs/operating.md", rule["alert"].lower())
    assert re.search(rf"^### {rule['alert']}$", PAGE, re.MULTILINE), "the page has no heading for it"


def test_the_page_knows_no_alert_that_does_not_exist() -> None:
    assert set(re.findall(r"\bZerocron[A-Z]\w+", PAGE)) == {rule["alert"] for rule in RULES}


def test_every_alert_has_a_story_in_which_it_fires_and_there_is_one_without_any() -> None:
    stories = yaml.safe_load((DEPLOY / "prometheus-alerts-test.yaml").read_text())["tests"]
    expected = [test["exp_samples"] for story in stories for test in story["promql_expr_test"]]
    fired = set(re.findall(r'alertname="(\w+)"', str(expected)))
    assert fired == {rule["alert"] for rule in RULES}
    assert [] in expected
    told = {name for story in stories for given in story["input_series"] for name in names_in(given["series"])}
    assert told <= set(series())


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    assert all(is_whole(expression) for expression in TARGETS)
    shown = {name for expression in TARGETS for name in names_in(expression)}
    assert shown <= set(series())
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in series()}
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown} == families


def test_the_dashboard_is_laid_out_without_overlap() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in PANELS:
        assert panel["description"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"


def test_prometheus_asks_the_nodes_of_the_cluster() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())
    (scrape,) = config["scrape_configs"]
    assert scrape["job_name"] == "0cron"
    targets = {target.split(":")[0] for group in scrape["static_configs"] for target in group["targets"]}
    assert targets == set(NODES)
    assert all((DEPLOY / name).is_file() for name in config["rule_files"])


def test_the_page_explains_every_metric_and_no_other() -> None:
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in series()}
    assert names_in(PAGE) == families


@pytest.mark.parametrize(
    "name",
    ["Dockerfile", "compose.yaml", "docs/operating.md", *(f"deploy/{p.name}" for p in DEPLOY.iterdir() if p.is_file())],
)
def test_every_setting_that_is_named_exists(name: str) -> None:
    known = VARIABLES | CLIENT_VARIABLES | {PREFIX + "NAME"}
    named = {variable.removesuffix("_FILE") for variable in re.findall(PREFIX + "[A-Z_]*[A-Z]", text_of(name))}
    assert named <= known


def test_every_file_that_the_page_names_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE)
    assert not [link for link in links if not (ROOT / "docs" / link).exists()]
    named = re.findall(r"`((?:deploy|docs|bench)/[^`\s]+)`", PAGE)
    assert not [path for path in named if not (ROOT / path).exists()]


def test_every_log_line_that_the_page_explains_is_written_somewhere() -> None:
    table = PAGE[PAGE.index("## Log lines to know") :].split("\n## ")[0]
    events = re.findall(
        r"`([a-z_]+)`", "".join(row.split("|")[1] for row in table.splitlines() if row.startswith("| `"))
    )
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert len(events) > 10
    assert not [event for event in events if f'"{event}"' not in code]


def test_the_page_and_the_cluster_give_redis_users_the_same_rights() -> None:
    rights = re.findall(r"user zerocron on >\S+ (.+)", PAGE + (DEPLOY / "make-secrets.sh").read_text())
    assert len(rights) == 2
    assert len(set(rights)) == 1


# the wheel


def test_the_wheel_holds_everything_that_the_package_holds(tmp_path: Path) -> None:
    """Files beside the code, too: scripts for Redis, migrations, pages. What .gitignore names would be left out."""
    source = ROOT / "src" / "zerocron"
    package = {
        path.relative_to(source.parent).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    assert package <= held
    assert {name.split("/")[0] for name in held} - {"zerocron"} == {
        wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"
    }
