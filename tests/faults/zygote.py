"""Nodes by the dozen: a process that has imported all of 0cron once, and forks a node whenever one is asked for.

An import takes longer than a second of a core, and a suite starts hundreds of nodes. What is forked is a process of its
own that runs `node.main` as if it had been started with these words. All of them die with the process that asked.

Owns the process and its children. Must never run a node, or start a thread, before the fork.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tests.support.environment import ENVIRONMENT

ANSWER_SECONDS_MAX = 60.0
ROOT = Path(__file__).parents[2]


class Forked:
    """A node, with what is used of `subprocess.Popen`."""

    def __init__(self, pid: int, words: Sequence[str]) -> None:
        self.pid = pid
        self.args = list(words)
        self.returncode: int | None = None
        self._ended = threading.Event()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def end(self, returncode: int) -> None:
        self.returncode = returncode
        self._ended.set()


class Zygote:
    """The process, as the tests see it. May be asked by several threads."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.faults.zygote"]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._asking = threading.Lock()
        self._made: list[Forked] = []
        self._answered = threading.Semaphore(0)
        self._living: dict[int, Forked] = {}
        threading.Thread(target=self._listen, name="zygote", daemon=True).start()

    def fork(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
        """A node with these words behind `python -m tests.faults.node`; it writes to the end of the log."""
        assert self._process.stdin is not None
        wanted = {"words": list(words), "environment": dict(environment), "log": str(log)}
        with self._asking:
            self._process.stdin.write(json.dumps(wanted) + "\n")
            self._process.stdin.flush()
            assert self._answered.acquire(timeout=ANSWER_SECONDS_MAX), "no node was forked"
            return self._made.pop()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(ANSWER_SECONDS_MAX)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told: dict[str, int] = json.loads(line)
            if "returncode" in told:
                self._living.pop(told["pid"]).end(told["returncode"])
            else:
                forked = self._living[told["pid"]] = Forked(told["pid"], ["node"])
                self._made.append(forked)
                self._answered.release()


@cache
def zygote() -> Zygote:
    """The one of this process; ends with it, however that ends, because its standard input does."""
    it = Zygote()
    atexit.register(it.close)
    return it


# --- the process itself


def main() -> None:
    """Fork for every line of standard input; tell of births and deaths on standard output; end with the input."""
    from tests.faults import node

    gc.freeze()
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    living: set[int] = set()
    asked = b""
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        while True:
            ready = [key.fd for key, _ in selector.select()]
            if sys.stdin.fileno() in ready:
                part = os.read(sys.stdin.fileno(), 65_536)
                if not part:
                    break
                *lines, asked = (asked + part).split(b"\n")
                for line in lines:
                    wanted = json.loads(line)
                    if (pid := os.fork()) == 0:
                        os.close(wake)
                        os.close(woken)
                        _become(node, wanted)
                    living.add(pid)
                    _tell(pid=pid)
            if wake in ready:
                os.read(wake, 65_536)
                _bury(living)
    for pid in living:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _become(node: Any, wanted: dict[str, Any]) -> NoReturn:
    """The rest of a child's life."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(ours, theirs)
    os.environ.clear()  # noqa: TID251  a new process begins with the environment it was given
    os.environ.update(wanted["environment"])  # noqa: TID251
    sys.argv = ["node", *wanted["words"]]
    code = 1
    try:
        node.main()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _bury(living: set[int]) -> None:
    for pid in list(living):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            living.remove(pid)
            _tell(pid=pid, returncode=os.waitstatus_to_exitcode(status))


def _tell(**what: int) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main()
