"""A private PostgreSQL for tests, made from the newest installed version: a free port, a folder of its own.

`postgres_server()` is shared by a whole test process and is never stopped: its users take a `database()` each. Who
wants to hurt a server starts one: `with PostgresServer() as server: ...`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from tests.support.environment import ENVIRONMENT
from tests.support.redis import free_port

from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.migrations import upgrade

START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 90.0
_PORT_TRIES = 5
_INSTALLATIONS = Path("/usr/lib/postgresql")
_STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_TEMPLATE = "migrated"


@cache
def postgres_server() -> PostgresServer:
    """The one that tests share; ends with the process."""
    server = PostgresServer()
    server.start()
    atexit.register(server.close)
    return server


class PostgresServer:
    """One server process at a time on one port; the port and the data outlive the process, until `close`.

    With `fsync=False` it is fast, and a kill of the process still loses nothing: only a power cut would.
    """

    host = "127.0.0.1"
    user = "tests"

    def __init__(self, *, fsync: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self.port = 0
        self._settings = {
            "fsync": "on" if fsync else "off",
            "full_page_writes": "on" if fsync else "off",
            "listen_addresses": self.host,
            "unix_socket_directories": "",
            "max_connections": "100",
            "logging_collector": "off",
            "log_destination": "stderr",
            "lc_messages": "C",
        } | dict(settings or {})
        self._binaries = _newest_binaries()
        self._account = _account()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count()
        self._template_made = False
        self.folder = Path(tempfile.mkdtemp(prefix="zerocron-postgres-"))
        self._data, self._log = self.folder / "data", self.folder / "log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def runs(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Returns when it takes connections; the first time makes an empty cluster."""
        assert self._process is None, "the server is running"
        try:
            if not self._data.exists():
                self._initialise()
            tries = 1 if self.port else _PORT_TRIES  # clients know the port of one that ran before
            for _ in range(tries):
                port = self.port or free_port()
                if self._launch(port):
                    self.port = port
                    return
        except BaseException:
            self.close()
            raise
        raise AssertionError(f"postgres did not start:\n{self.log()}")

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """As `pg_ctl stop -m` does: wait for clients, throw them out, or drop everything as in a crash."""
        self._end(_STOP_SIGNALS[mode])

    def kill(self) -> None:
        """SIGKILL to the server and all of its backends at once, as when the machine goes."""
        children = self._children()
        for child in children:
            _signal(child, signal.SIGKILL)
        self._end(signal.SIGKILL)
        _wait_until_gone(children)

    def restart(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        self.stop(mode)
        self.start()

    def pause(self) -> None:
        """The server and all of its backends stand still; connections stay open."""
        assert self._process is not None, "the server is not running"
        for process in [self._process.pid, *self._children()]:
            _signal(process, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None, "the server is not running"
        for process in [*self._children(), self._process.pid]:
            _signal(process, signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None:
            self.resume()
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, *, port: int | None = None) -> str:
        """`port` is that of a proxy before the server."""
        return f"postgresql://{self.user}@{self.host}:{port or self.port}/{database}"

    def database(self, *, migrated: bool = False) -> str:
        """The name of a new database: empty, or with the schema of the newest release."""
        name = f"test_{next(self._numbers)}"
        template = ""
        if migrated:
            self._make_template()
            template = f" TEMPLATE {_TEMPLATE}"
        self.execute(f"CREATE DATABASE {name}{template}")
        return name

    def drop(self, database: str) -> None:
        """Throw out whoever uses it, and remove it."""
        self.execute(f"DROP DATABASE {database} WITH (FORCE)")

    def execute(self, sql: str, database: str = "postgres") -> list[str]:
        """Run one statement as superuser; its rows, each as one text with `|` between the columns."""
        words = ["--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", "-c", sql, self.url(database)]
        done = subprocess.run(
            [str(self._binaries / "psql"), *words],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
            timeout=START_SECONDS_MAX,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def terminate_backends(self, database: str) -> int:
        """Cut everybody's connection to a database as an administrator would; how many there were."""
        return len(
            self.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' "
                "AND pid <> pg_backend_pid()"
            )
        )

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _initialise(self) -> None:
        os.chmod(self.folder, 0o700)
        if self._account:
            shutil.chown(self.folder, self._account)
        options = ["--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C", "-U", self.user]
        done = subprocess.run(
            [self._binaries / "initdb", "-D", self._data, *options],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            **self._privileges(),
        )
        assert done.returncode == 0, done.stderr

    def _launch(self, port: int) -> bool:
        settings = self._settings | {"port": str(port)}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, *words],
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,  # a Ctrl-C at the tests is not one at the server
                **self._privileges(),
            )
        for _ in range(int(START_SECONDS_MAX * 100)):
            try:
                process.wait(0.01)
            except subprocess.TimeoutExpired:
                if self._is_ready(process.pid):
                    self._process, self._guard = process, _guard(process.pid, self.folder)
                    return True
            else:
                return False
        process.kill()
        process.wait()
        return False

    def _is_ready(self, process_id: int) -> bool:
        """The server writes its state into the last line of its lock file, for pg_ctl."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(process_id) and lines[7].strip() == "ready"

    def _privileges(self) -> dict[str, Any]:
        if self._account is None:
            return {}
        return {"user": self._account, "group": pwd.getpwnam(self._account).pw_gid, "extra_groups": []}

    def _children(self) -> list[int]:
        assert self._process is not None, "the server is not running"
        number = self._process.pid
        return [int(child) for child in Path(f"/proc/{number}/task/{number}/children").read_text().split()]

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None, "the server is not running"
        assert self._guard is not None
        process, self._process = self._process, None
        self._guard.kill()
        self._guard.communicate()
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"postgres did not stop:\n{self.log()}") from None

    def _make_template(self) -> None:
        if self._template_made:
            return
        self.execute(f"CREATE DATABASE {_TEMPLATE}")

        async def migrate() -> None:
            ledger = await PostgresLedger.open(self.url(_TEMPLATE), upgrade)
            await ledger.close()

        failures: list[BaseException] = []

        def run() -> None:  # in a thread, because the one who asks may be in an event loop
            try:
                asyncio.run(migrate())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        self._template_made = True


def _guard(process_id: int, folder: Path) -> subprocess.Popen[bytes]:
    """Ends the server and removes its folder when the tests end without having done so, however they end: their end of
    the pipe is closed by the system."""
    script = 'read _; kill -QUIT "$1"; while kill -0 "$1" 2>&-; do sleep 0.1; done; rm -rf "$2"'
    return subprocess.Popen(
        ["/bin/sh", "-c", script, "guard", str(process_id), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _newest_binaries() -> Path:
    found = sorted(
        (path for path in _INSTALLATIONS.glob("*/bin") if (path / "postgres").exists() and path.parent.name.isdigit()),
        key=lambda path: int(path.parent.name),
    )
    if not found:
        raise AssertionError(
            "These tests start their own PostgreSQL, and there is none here: apt-get install postgresql"
        )
    return found[-1]


def _account() -> str | None:
    """Who the server runs as: PostgreSQL refuses to run as root. None is whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise AssertionError("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")


def _signal(process_id: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process_id, number)


def _wait_until_gone(process_ids: list[int]) -> None:
    """They are no children of ours, so they cannot be waited for; while one lives, no new server starts."""
    pause = threading.Event()
    for process_id in process_ids:
        for _ in range(int(STOP_SECONDS_MAX * 100)):
            if not _is_alive(process_id):
                break
            pause.wait(0.01)


def _is_alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # dead, though nobody has asked what of
