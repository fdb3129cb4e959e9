"""The real `0cron` as a process: run to its end, started and read line by line, or kept running as a server.

Nothing here sleeps: what is waited for is a line, an end or an answer, each with a deadline.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from unittest import mock

from zerocron.cli.client import Client, find_server
from zerocron.cli.main import run
from zerocron.cli.runs import wait_for_end

PROGRAM = Path(sys.executable).with_name("0cron")
REPOSITORY = Path(__file__).parents[2]
DEADLINE_SECONDS = 90

NEVER = "0 0 1 1 *"
"""A schedule that does not come due while the tests run, except at New Year."""


@dataclass(frozen=True)
class Result:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """Runs commands in a directory of their own, with an environment that holds nothing of ours but what is given."""

    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    server: Sequence[str | Path] = (PROGRAM,)
    """The program that `start` starts."""

    def with_environment(self, **more: str) -> Cli:
        return Cli(self.directory, {**self.environment, **more}, self.server)

    @property
    def full_environment(self) -> dict[str, str]:
        base = {"PATH": "/usr/bin:/bin", "HOME": str(self.directory), "LANG": "C.UTF-8", "TZ": "UTC"}
        return {**base, **self.environment}

    def __call__(self, *arguments: str, stdin: str | bytes = "", code: int = 0) -> Result:
        """Run to the end, which must come with that exit code."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.directory,
            env=self.full_environment,
            input=given,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        return _checked(Result(done.returncode, done.stdout.decode(), done.stderr.decode()), arguments, code)

    def here(self, *arguments: str, code: int = 0) -> Result:
        """The same in this process, which is ten times faster: for what a process shows elsewhere already."""
        out, errors = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.directory),
            mock.patch.dict("os.environ", {"COLUMNS": "80", **self.environment}),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
        ):
            ended = run(arguments)
        return _checked(Result(ended, out.getvalue(), errors.getvalue()), arguments, code)

    @property
    def api(self) -> Client:
        """The server of this directory without a process between: for what a test needs, but is not about."""
        return Client(find_server(data_dir=self.directory / "data"))

    def make(self, name: str, url: str = "http://127.0.0.1:9/", **more: object) -> dict[str, Any]:
        """A job that does not come due."""
        return self.api.send("POST", "/v1/jobs", {"name": name, "schedule": NEVER, "url": url, **more})

    def trigger(self, job: Mapping[str, Any]) -> str:
        """The id of a run of the job that is over."""
        run = self.api.send("POST", f"/v1/jobs/{job['id']}/trigger")
        return str(wait_for_end(self.api, run["id"])["id"])

    @contextlib.contextmanager
    def start(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that runs until the block is left; its standard error goes to the file `stderr`."""
        with (
            (self.directory / "stderr").open("wb") as errors,
            subprocess.Popen(
                [*self.server, *arguments],
                cwd=self.directory,
                env=self.full_environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            ) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    def on_terminal(self, *arguments: str, typed: str = "") -> Result:
        """Run with a terminal for standard input, output and error; what is typed waits there already."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [PROGRAM, *arguments],
            cwd=self.directory,
            env={"TERM": "xterm-256color", "COLUMNS": "80", **self.full_environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            os.write(ours, typed.encode())
            shown = b""
            with contextlib.suppress(OSError):  # the other end of a terminal closes with an error
                while part := os.read(ours, 65536):
                    shown += part
            process.wait(DEADLINE_SECONDS)
        os.close(ours)
        return Result(process.returncode, shown.decode(), "")


def _checked(result: Result, arguments: Sequence[str], code: int) -> Result:
    """Errors are one line and hints, never a traceback; and the exit code is the one that was expected."""
    assert result.code == code, f"{arguments}: exit code {result.code}\n{result.out}\n{result.err}"
    assert "Traceback" not in result.err
    if "error:" in result.err:
        first, *hints = result.err.splitlines()
        assert first.startswith("error: ")
        assert all(hint.startswith("  ") for hint in hints)
    return result


def read_line(stream: IO[bytes] | None) -> str:
    """The next line of a process; the stream must be read by nothing else."""
    assert stream is not None
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(DEADLINE_SECONDS):
                raise TimeoutError(f"no line within {DEADLINE_SECONDS} s, but {line!r}")
            byte = os.read(stream.fileno(), 1)
            if not byte:
                raise EOFError(f"the process ended, after {line!r}")
            line += byte
    return line.decode().rstrip("\n")


def read_until(stream: IO[bytes] | None, text: str) -> str:
    """All that is said up to the line that holds the text."""
    said = ""
    while text not in said:
        said += read_line(stream) + "\n"
    return said


def stop(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> int:
    process.send_signal(number)
    return process.wait(DEADLINE_SECONDS)


@contextlib.contextmanager
def serving(cli: Cli, *arguments: str, port: str = "0") -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server with its data in the directory of the command line; the process, and its banner."""
    with cli.start("serve", "--port", port, *arguments) as process:
        yield process, read_until(process.stdout, "Ctrl-C stops it.")
