"""One attempt on its way through the engine, and what became of it: the value the pipeline hands on."""

from __future__ import annotations

from dataclasses import dataclass

from zerocron.core.model import Definition, Execution, Run


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run whose start is committed, with the definition it keeps to."""

    run: Run
    definition: Definition


@dataclass(frozen=True, slots=True)
class Result:
    """An attempt that ended: its record, and what the target asked for about a next one."""

    attempt: Attempt
    execution: Execution
    retry_after_ms: int | None = None

    @property
    def succeeded(self) -> bool:
        return self.execution.error_kind is None
