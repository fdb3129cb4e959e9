"""A request that takes longer than the schedule's step: what the next slots do is the job's choice."""

from __future__ import annotations

from collections import Counter

from tests.journeys.server import Person, eventually
from tests.support.target import Exchange, Target

HOLD_SECONDS = 1.5


class Slow:
    """A target that takes its time, and counts how many requests it has at once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.arrivals: dict[str, list[float]] = {}

    def url(self, name: str) -> str:
        self._target.on(f"/{name}", lambda exchange: self._take(name, exchange))
        return f"{self._target.url}/{name}"

    def _take(self, name: str, exchange: Exchange) -> None:
        self._now[name] += 1
        self.most[name] = max(self.most[name], self._now[name])
        self.arrivals.setdefault(name, []).append(exchange.request.received_at)

        def answer() -> None:
            self._now[name] -= 1
            exchange.answer(200)

        exchange.later(HOLD_SECONDS, answer)


async def test_three_policies_side_by_side(person: Person, target: Target) -> None:
    slow = Slow(target)
    jobs = {
        policy: await person.creates(name=policy, schedule="* * * * * *", url=slow.url(policy), overlap=policy)
        for policy in ("skip", "queue", "allow")
    }

    async def enough() -> bool | None:
        return True if all(len(slow.arrivals.get(name, ())) >= 3 for name in jobs) else None

    await eventually(enough, "three requests of each job")
    await person.pauses_everything()
    histories = {name: await person.history(job) for name, job in jobs.items()}

    # skip: never two at once; the slot in between is in the history, with the reason.
    assert slow.most["skip"] == 1
    skipped = [run for run in histories["skip"] if run["status"] == "skipped"]
    assert skipped
    assert {run["reason"] for run in skipped} == {"overlap"}
    assert "still running" in skipped[0]["explanation"]
    assert skipped[0]["attempts"] == 0

    # queue: never two at once either, but the next one starts as soon as the one before has ended.
    assert slow.most["queue"] == 1
    first, second, *_ = slow.arrivals["queue"]
    assert HOLD_SECONDS <= second - first < HOLD_SECONDS + 0.5

    # allow: a request every second, whatever the others do.
    assert slow.most["allow"] >= 2
    assert "skipped" not in {run["status"] for run in histories["allow"]}

    # And every second is accounted for, under each policy.
    for name, runs in histories.items():
        slots = [int(run["scheduled_for"][17:19]) for run in runs]
        covered = sum(run["count"] for run in runs)
        assert covered == (slots[-1] - slots[0]) % 60 + 1, (name, runs)
