"""What is counted and measured, for Prometheus.

Owns the names and the help texts; `docs/operating.md` explains what to do about them. One object a process, handed
down like the clock. Must never be read back to decide anything.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

_LATENESS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)
_TRANSACTION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.build = Info("zerocron_build", "Version of 0cron and of its time zone data.", registry=self.registry)
        self.runs = Counter("zerocron_runs_total", "Runs that ended, by status.", ["status"], registry=self.registry)
        self.executions = Counter(
            "zerocron_executions_total", "HTTP attempts that ended, by status.", ["status"], registry=self.registry
        )
        self.lateness = Histogram(
            "zerocron_lateness_seconds",
            "From the slot to the sending of its first request.",
            buckets=_LATENESS_BUCKETS,
            registry=self.registry,
        )
        self.duration = Histogram(
            "zerocron_execution_duration_seconds",
            "From sending a request to the end of its answer.",
            buckets=_DURATION_BUCKETS,
            registry=self.registry,
        )
        self.transaction = Histogram(
            "zerocron_transaction_seconds",
            "Time a ledger transaction of the engine took, waiting for its turn included.",
            ["kind"],
            buckets=_TRANSACTION_BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "zerocron_requests_in_flight", "Requests sent and not yet recorded.", registry=self.registry
        )
        self.capacity = Gauge(
            "zerocron_requests_in_flight_max", "How many requests may be in flight.", registry=self.registry
        )
        self.timetable_size = Gauge(
            "zerocron_timetable_members", "Members in the timetable (due within two minutes).", registry=self.registry
        )
        self.repaired = Counter(
            "zerocron_timetable_repaired_total",
            "Members the sweep put back because the timetable had lost them.",
            registry=self.registry,
        )
        self.loop_errors = Counter(
            "zerocron_loop_errors_total",
            "Ticks of a loop that failed and were tried again.",
            ["loop"],
            registry=self.registry,
        )
        self.loop_age = Gauge(
            "zerocron_loop_age_seconds", "Since a loop last finished a tick.", ["loop"], registry=self.registry
        )

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self.registry)
