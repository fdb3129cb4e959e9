"""What is counted and measured, for Prometheus.

Owns the names and the help texts; `docs/operating.md` explains what to do about them. One object a process, handed
down like the clock. Must never be read back to decide anything.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

_LATENESS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)
_TRANSACTION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
_PREFIX = "zerocron_"


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.build = Info("zerocron_build", "Version of 0cron and of its time zone data.", registry=self.registry)
        self._count_work()
        self._watch_the_timetable()
        self._watch_the_cluster()
        self._watch_the_outbox()

    def _count_work(self) -> None:
        self.runs = self._counter("runs_total", "Runs that ended, by status.", "status")
        self.executions = self._counter("executions_total", "HTTP attempts that ended, by status.", "status")
        self.lateness = self._histogram(
            "lateness_seconds", "From the slot to the sending of its first request.", _LATENESS_BUCKETS
        )
        self.duration = self._histogram(
            "execution_duration_seconds", "From sending a request to the end of its answer.", _DURATION_BUCKETS
        )
        self.transaction = self._histogram(
            "transaction_seconds",
            "Time a ledger transaction of the engine took, waiting for its turn included.",
            _TRANSACTION_BUCKETS,
            "kind",
        )
        self.in_flight = self._gauge("requests_in_flight", "Requests sent and not yet recorded.")
        self.capacity = self._gauge("requests_in_flight_max", "How many requests may be in flight.")
        self.places = self._gauge("places", "Requests in flight allowed now; fewer while the ledger is slow.")
        self.deferred = self._counter(
            "claims_deferred_total", "Times something due was left for later, by what was at its bound.", "reason"
        )
        self.overdue = self._gauge("overdue_seconds", "How long the oldest slot that is due has waited to be started.")
        self.loop_errors = self._counter(
            "loop_errors_total", "Ticks of a loop that failed and were tried again.", "loop"
        )
        self.loop_age = self._gauge("loop_age_seconds", "Since a loop last finished a tick.", "loop")

    def _watch_the_timetable(self) -> None:
        self.timetable_up = self._gauge(
            "timetable_up", "1 while the timetable answers, 0 while the node works without it."
        )
        self.timetable_size = self._gauge("timetable_members", "Members in the timetable (due within two minutes).")
        self.repaired = self._counter(
            "timetable_repaired_total", "Members the sweep put back because the timetable had lost them."
        )
        self.rebuilt = self._counter("timetable_rebuilt_total", "Times the timetable was lost and loaded anew.")
        self.direct_claims = self._counter(
            "direct_claims_total", "Claims made straight from the ledger because the timetable was away."
        )

    def _watch_the_cluster(self) -> None:
        self.session_valid = self._gauge("session_valid", "1 while this node may start runs.")
        self.sessions_fenced = self._counter("sessions_fenced_total", "Sessions of silent nodes that this node ended.")
        self.lost_runs = self._counter("lost_runs_total", "Attempts whose node was lost before it recorded a result.")
        self.ledger_unavailable = self._counter(
            "ledger_unavailable_total", "Transactions that failed because the ledger was away."
        )
        self.clock_difference = self._gauge("clock_difference_seconds", "This machine's clock minus the ledger's.")

    def _watch_the_outbox(self) -> None:
        self.alerts = self._counter("alerts_total", "Alerts that were sent, folded into a digest, or died.", "status")
        self.alert_duration = self._histogram(
            "alert_send_seconds", "From the begin of a try to send an alert to its end.", _DURATION_BUCKETS, "kind"
        )
        self.alerts_waiting = self._gauge(
            "alerts_oldest_pending_seconds", "How long the oldest alert that is not sent yet has waited."
        )

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(_PREFIX + name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(_PREFIX + name, text, labels, buckets=buckets, registry=self.registry)
