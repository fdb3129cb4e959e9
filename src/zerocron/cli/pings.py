"""`0cron ping` and `0cron exec`: reports of a job that runs on this machine.

Owns what `exec` promises the command it runs: its exit code, its output and its signals go through untouched, it starts
at once, and nothing about 0cron can make it fail, or its caller wait for long once it has ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import uuid
from types import FrameType
from typing import IO, Annotated, TextIO

import typer

from zerocron.cli import options as o
from zerocron.cli.reporting import BODY_BYTES_MAX, Reporter
from zerocron.cli.show import note, print_json, say
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid, ZerocronError

PING_EXAMPLE = "Example: 0cron ping https://cron.example.com/v1/ping/3f8a... --exit-code $?"
EXEC_EXAMPLE = (
    "Example, in a crontab: 30 2 * * * 0cron exec https://cron.example.com/v1/ping/3f8a... -- backup.sh --all"
)

REPORT_SECONDS_MAX = 10.0
"""So long at most the end of a command is reported, all tries together."""

START_SECONDS_MAX = 3.0
"""So much of that for the start, if it has not been reported by then; the end overtakes it without harm."""

TRIES = 3
TRY_SECONDS_MAX = 4
TRY_AGAIN_SECONDS = 1.0
QUIET_SECONDS = 0.5
LEFT_OPEN_SECONDS_MAX = 2.0
LEFT_OPEN_BYTES_MAX = 2_097_152
"""Who inherits the output of a command and lives on (a daemon it started) is listened to until it says nothing for a
moment, for so long altogether, or more than any pipe holds: all that the command itself wrote has been passed on by
then."""

NOT_EXECUTABLE, NOT_FOUND = 126, 127
_monotonic = SystemClock().monotonic
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")

Target = Annotated[
    str,
    typer.Argument(
        metavar="TOKEN|URL",
        help="The monitor's ping URL; or its token, for the server of other commands.",
        show_default=False,
    ),
]


def ping(
    target: Target,
    start: Annotated[bool, typer.Option("--start", help="A run begins.")] = False,
    fail: Annotated[bool, typer.Option("--fail", help="The run failed.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Keep the message; it changes nothing.")] = False,
    exit_code: Annotated[
        int | None, typer.Option("--exit-code", metavar="N", min=0, max=255, help="How the run ended; 0 is well.")
    ] = None,
    rid: Annotated[str | None, typer.Option("--rid", metavar="UUID", help="Which run, where several overlap.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="Kept with the ping.")] = None,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
) -> None:
    """Report for a monitor: success, unless an option says something else. Needs no API key."""
    words = [word for word, given in (("start", start), ("fail", fail), ("log", log)) if given]
    words += [] if exit_code is None else [str(exit_code)]
    if len(words) > 1:
        raise Invalid("Give one of --start, --fail, --log and --exit-code.")
    if rid is not None:
        try:
            rid = str(uuid.UUID(rid))
        except ValueError:
            raise Invalid("A run is named by a UUID, such as uuidgen prints.", field="--rid") from None
    Reporter(target, api_url).send(words[0] if words else "", rid=rid, body=(message or "").encode()[:BODY_BYTES_MAX])
    if as_json:
        print_json({"taken": True})
    else:
        say("Taken.")


def execute(
    target: Target,
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="And its arguments.", show_default=False)],
    output: Annotated[
        bool, typer.Option("--output/--no-output", help="Whether the end of its output is sent along.")
    ] = True,
    api_url: o.ApiUrl = None,
) -> None:
    """Run a command, and report its start, its end, its exit code and the end of its output.

    Its exit code, output and signals go through untouched. When 0cron is away it runs all the same.
    """
    try:
        reporter = Reporter(target, api_url)
    except ZerocronError as error:
        reporter = None
        _remark(f"{error.message} The command runs all the same.")
    if command[0] == "--":
        command = command[1:]
    if not command:
        raise Invalid("Give the command to run behind --.")
    raise typer.Exit(_Execution(reporter, command, keep_output=output).run())


class _Execution:
    """One run of one command."""

    def __init__(self, reporter: Reporter | None, command: list[str], *, keep_output: bool) -> None:
        self._reporter = reporter
        self._command = command
        self._keep_output = keep_output
        self._rid = str(uuid.uuid4())
        self._tail = bytearray()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._pending: list[int] = []
        self._caught: list[int] = []
        self._came_too_late = False
        self._process: subprocess.Popen[bytes] | None = None
        self._code = 0

    def run(self) -> int:
        """The command's exit code, as a shell would give it."""
        starting = threading.Thread(target=self._report, args=("start",), daemon=True)
        starting.start()
        pipe = subprocess.PIPE if self._keep_output else None
        self._pass_signals_on()
        try:
            process = subprocess.Popen(self._command, stdout=pipe, stderr=pipe)
        except OSError as error:
            return self._could_not_start(error, starting)
        self._process = process
        for number in self._pending:
            self._send(number)
        readers = [
            threading.Thread(target=self._copy, args=streams, daemon=True)
            for streams in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
            if self._keep_output
        ]
        for reader in readers:
            reader.start()
        self._end_with(_of_shell(process.wait()))
        self._ended.set()
        for reader in readers:
            reader.join(LEFT_OPEN_SECONDS_MAX + QUIET_SECONDS)
        self._report_end(starting)
        for reader in readers:
            reader.join()  # whoever reads slowly gets all of it
        return self._code

    def _could_not_start(self, error: OSError, starting: threading.Thread) -> int:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        text = f"{self._command[0]}: {error.strerror}"
        _remark(text)
        self._tail += f"0cron exec: {text}".encode()
        self._end_with(code)
        self._report_end(starting)
        return code

    def _end_with(self, code: int) -> None:
        """The command is over. From now on a signal ends this process at once, with the command's exit code."""
        self._code = code
        for number in self._caught:
            signal.signal(number, lambda _number, _frame: os._exit(code))
        if self._came_too_late or (self._pending and self._process is None):
            os._exit(code)

    def _copy(self, source: IO[bytes], sink: TextIO | None) -> None:
        """Pass on what the command writes, as it comes, and keep the end of it."""
        bytes_left, seconds_left = LEFT_OPEN_BYTES_MAX, LEFT_OPEN_SECONDS_MAX
        with source:
            while bytes_left > 0 and seconds_left > 0:
                begun = _monotonic()
                has_more = bool(select.select([source], [], [], QUIET_SECONDS)[0])
                if not has_more and self._ended.is_set():
                    return
                part = os.read(source.fileno(), 65_536) if has_more else b""
                if has_more and not part:
                    return
                if self._ended.is_set():
                    bytes_left -= len(part)
                    seconds_left -= _monotonic() - begun
                with self._lock:
                    self._tail += part
                    del self._tail[:-BODY_BYTES_MAX]
                if not _passed_on(part, sink):
                    return  # closed: the command is told by the system, as if it had written there itself

    def _pass_signals_on(self) -> None:
        """To the command, except those that a terminal has sent to it already, and those that are ignored: under
        nohup, so that the command ignores them as well."""
        for name in _PASSED_ON:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._caught.append(number)
                own = name in _FROM_TERMINAL and sys.stdin is not None and sys.stdin.isatty()
                signal.signal(number, _let_pass if own else self._pass_on)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if self._process is None:
            self._pending.append(number)
        elif self._process.returncode is None:
            self._send(number)
        else:  # it has ended in this moment
            os._exit(_of_shell(self._process.returncode))

    def _send(self, number: int) -> None:
        assert self._process is not None
        try:
            os.kill(self._process.pid, number)
        except ProcessLookupError:
            self._came_too_late = True  # it is over, and its exit code is known in a moment
        except PermissionError:
            pass  # it is somebody else's, as by sudo: it goes on, and so do we

    def _report_end(self, starting: threading.Thread) -> None:
        """In a thread, because looking up a name has no time limit of its own."""
        ending = threading.Thread(target=self._try_to_report_end, args=(starting,), daemon=True)
        ending.start()
        ending.join(REPORT_SECONDS_MAX)
        if ending.is_alive():
            _remark(f"the end could not be reported within {REPORT_SECONDS_MAX:.0f} seconds.")

    def _try_to_report_end(self, starting: threading.Thread) -> None:
        starting.join(START_SECONDS_MAX)
        with self._lock:
            tail = bytes(self._tail)
        for left in reversed(range(TRIES)):
            if self._report(str(self._code), tail, is_last=left == 0):
                return
            if left:
                threading.Event().wait(TRY_AGAIN_SECONDS)

    def _report(self, word: str, body: bytes = b"", *, is_last: bool = True) -> bool:
        """Whether there is nothing more to try."""
        if self._reporter is None:
            return True
        try:
            self._reporter.send(word, rid=self._rid, body=body, timeout_seconds=TRY_SECONDS_MAX)
        except ZerocronError as error:
            if is_last:
                _remark(error.message)
            return is_last
        except Exception as error:  # whatever it is, it is not the command's
            _remark(f"the ping could not be sent: {type(error).__name__}")
        return True


def _of_shell(code: int) -> int:
    """The exit code that a shell gives: a signal's number comes on top of 128."""
    return code if code >= 0 else 128 - code


def _passed_on(part: bytes, sink: TextIO | None) -> bool:
    """False when nobody reads there any more. What was closed from the start takes everything, like a pit."""
    if sink is None:
        return True
    rest = memoryview(part)
    try:
        while rest:
            rest = rest[os.write(sink.fileno(), rest) :]
    except BrokenPipeError:
        return False
    except (OSError, ValueError):
        return True
    return True


def _remark(text: str) -> None:
    """A line on standard error, if that is open: the command runs, and ends, whether it is or not."""
    with contextlib.suppress(Exception):
        note(f"0cron exec: {text}")


def _let_pass(_number: int, _frame: FrameType | None) -> None:
    """The command has got it, too, and decides."""
