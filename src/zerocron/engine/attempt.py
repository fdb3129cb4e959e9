"""One attempt on its way through the engine, and what became of it: the value the pipeline hands on."""

from __future__ import annotations

from dataclasses import dataclass

from zerocron.core.exchange import OWN_SHORTAGE_KINDS
from zerocron.core.model import Definition, Execution, Reason, RetryPolicy, Run


@dataclass(frozen=True, slots=True)
class Started:
    """A run whose start is committed. `definition` None: it is still in the ledger (long, or of an older version)."""

    run: Run
    definition: Definition | None
    host: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A started run with the definition it keeps to."""

    run: Run
    definition: Definition


@dataclass(frozen=True, slots=True)
class Result:
    """An attempt that ended: its record, and what decides about a next one."""

    run: Run
    retry: RetryPolicy
    execution: Execution
    retry_after_ms: int | None = None
    """What the target asked to wait."""

    no_retry: Reason | None = None
    """Why a next attempt would be of no use."""

    called_off: Reason | None = None
    """Why nothing was sent: somebody stopped the job before that."""

    @property
    def succeeded(self) -> bool:
        return self.execution.error_kind is None

    @property
    def is_shortage(self) -> bool:
        """This server could not make the attempt for want of something of its own."""
        return self.execution.error_kind in OWN_SHORTAGE_KINDS
