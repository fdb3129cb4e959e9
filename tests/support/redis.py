"""A private redis-server for tests: a free port, a folder of its own, nothing on disk unless it is asked for.

`redis_server()` is shared by a whole test process and is never stopped or configured: its users keep to a key prefix of
their own. Who wants to hurt a server starts one: `with RedisServer() as server: ...`.
"""

from __future__ import annotations

import atexit
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any, Self, cast

import redis
from tests.support.environment import ENVIRONMENT

from zerocron.clock import SystemClock

START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 60.0
_PORT_TRIES = 5


@cache
def redis_server() -> RedisServer:
    """The one that tests share; ends with the process."""
    server = RedisServer()
    server.start()
    atexit.register(server.close)
    return server


class RedisServer:
    """One server process at a time on one port; the port and the folder outlive the process, until `close`."""

    host = "127.0.0.1"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="zerocron-redis-"))
        self.port = 0
        self.log: deque[str] = deque(maxlen=200)
        self._config: dict[str, str] = {}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, *, rdb: Path | None = None, **config: object) -> None:
        """Start empty, or with the data of a file that `save_to` made. `config` is redis.conf's words with `_` for `-`;
        a restart keeps them."""
        self._config |= {name.replace("_", "-"): str(value) for name, value in config.items()}
        if rdb is not None:
            shutil.copyfile(rdb, self._dump)
        tries = 1 if self.port else _PORT_TRIES  # clients know the port of one that ran before
        for remaining in reversed(range(tries)):
            self.port = self.port or free_port()
            if self._launch():
                return
            if remaining:
                self.port = 0
        raise AssertionError("redis-server did not start:\n" + "".join(self.log))

    def restart(self, *, rdb: Path | None = None) -> None:
        """Stop and start again: empty, or with the data of a file."""
        self.stop()
        self.start(rdb=rdb)

    def stop(self) -> None:
        """In good order; nothing is saved."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """The process stands still; its connections stay open, and new ones are taken by the system."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, db: int = 0) -> str:
        return f"redis://{self.host}:{self.port}/{db}"

    def unix_url(self, db: int = 0) -> str:
        return f"unix://{self.folder / 'redis.sock'}?db={db}"

    def command(self, *words: str | int | float | bytes, db: int = 0) -> Any:
        """What the server answers to one command, on a connection of its own; text comes as `str`."""
        with redis.Redis(host=self.host, port=self.port, db=db, decode_responses=True, protocol=2) as client:
            return cast(Any, client.execute_command)(*words)

    def save_to(self, path: Path) -> None:
        """Write all data to a file for `start(rdb=...)`."""
        self.command("SAVE")
        self._dump.replace(path)

    def replicate(self, master: RedisServer) -> None:
        """Follow another server; returns when what it holds has come. `REPLICAOF NO ONE` makes a master of it again,
        one that lags by whatever the other has done since."""
        self.command("REPLICAOF", master.host, master.port)
        deadline = SystemClock().monotonic() + START_SECONDS_MAX
        while not (master.command("WAIT", 1, 100) and self.command("EXISTS", "replication-has-begun")):
            assert SystemClock().monotonic() < deadline, "the replica does not follow:\n" + "".join(self.log)
            master.command("SET", "replication-has-begun", "1")
        master.command("DEL", "replication-has-begun")

    @property
    def _dump(self) -> Path:
        return self.folder / "dump.rdb"

    def _launch(self) -> bool:
        settings = {
            "bind": self.host,
            "port": str(self.port),
            "dir": str(self.folder),
            "unixsocket": str(self.folder / "redis.sock"),
            "save": "",
            "appendonly": "no",
            "repl-diskless-sync-delay": "0",
        } | self._config
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return self._run(["redis-server", *words], ready_when="eady to accept connections")

    def _run(self, command: list[str], *, ready_when: str) -> bool:
        try:
            process = subprocess.Popen(
                command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        except FileNotFoundError:
            raise AssertionError(
                "These tests start their own Redis, and there is no redis-server here: apt-get install redis-server"
            ) from None
        ready, ended = threading.Event(), threading.Event()

        def follow_the_log() -> None:
            assert process.stdout is not None
            with process.stdout as lines:
                for line in lines:
                    self.log.append(line)
                    if ready_when in line:
                        ready.set()
            ended.set()
            ready.set()

        threading.Thread(target=follow_the_log, name="redis-log", daemon=True).start()
        ready.wait(START_SECONDS_MAX)
        if ended.is_set() or not ready.is_set():
            process.kill()
            process.wait()
            return False
        self._process = process
        self._dump.unlink(missing_ok=True)  # read; left there, the next start would not be empty
        return True

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "the server is not running"
        self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None, "the server is not running"
        process, self._process = self._process, None
        process.send_signal(signal.SIGCONT)  # a paused one would take no other signal
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class RedisSentinel(RedisServer):
    """A sentinel on its own, which may fail over alone: it watches one master, named `mymaster`."""

    def __init__(self, master: RedisServer) -> None:
        super().__init__()
        self._master = master

    def _launch(self) -> bool:
        config = self.folder / "sentinel.conf"  # it writes there what it finds
        config.write_text(
            f"bind {self.host}\nport {self.port}\ndir {self.folder}\n"
            f"sentinel monitor mymaster {self._master.host} {self._master.port} 1\n"
            "sentinel down-after-milliseconds mymaster 300\nsentinel failover-timeout mymaster 1000\n"
        )
        return self._run(["redis-server", str(config), "--sentinel"], ready_when="+monitor master mymaster")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
