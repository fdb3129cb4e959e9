"""A seeded random journey: jobs of every kind, a target that misbehaves, and a node that is killed, stopped and paused.

The same seed makes the same decisions; when they take effect depends on the machine. `test_random.py` plays a short
one, `python -m tests.faults.long` many.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from tests.faults.world import Call, Scene, World, until

STOP_POINTS = ("claimed", "inside-start", "started", "before-finish", "after-finish")
SCHEDULES = ("* * * * * *", "*/2 * * * * *", "every 1 second", "every 3 seconds", "1-59/5 * * * * *", "* * * * *")
TIMEOUT_SECONDS = 2
Act = Callable[[], Awaitable[None]]


class Traffic:
    """Calls of the API, each chosen by the seed, and a target that misbehaves."""

    def __init__(self, scene: Scene, seed: int, *, jobs: int) -> None:
        self.scene = scene
        self.pick = random.Random(seed)
        self.behave = random.Random(seed + 1)
        self.number = 0
        self.jobs: list[str] = []
        self.size = jobs
        self.healthy = False

    @property
    def verbs(self) -> tuple[Act, ...]:
        return (self.create, self.edit, self.pause, self.trigger, self.trigger, self.delete)

    # --- calls

    async def create(self) -> None:
        pick, self.number = self.pick, self.number + 1
        name = f"job-{self.number}"
        body = {
            "name": name,
            "schedule": pick.choice(SCHEDULES),
            "url": self.scene.route(f"/{name}", self.misbehave),
            "timeout": TIMEOUT_SECONDS,
            "overlap": pick.choice(("skip", "queue", "allow")),
            "catchup": pick.choice(("latest", "all", "none")),
            "on_lost": pick.choice(("rerun", "rerun", "give_up")),
            "retry": {
                "attempts": pick.randint(1, 3),
                "backoff": pick.choice(("fixed", "linear", "exponential")),
                "delay": pick.choice((0.2, 0.5, 1)),
            },
        }
        made = await self.scene.operate("create", body=body, key=f"key-{name}")
        if made is not None:
            self.jobs.append(made["id"])

    async def edit(self) -> None:
        change = self.pick.choice(
            (
                {"schedule": self.pick.choice(SCHEDULES)},
                {"catchup": self.pick.choice(("latest", "all", "none"))},
                {"retry": {"attempts": self.pick.randint(1, 3)}},
            )
        )
        if self.jobs:
            await self.scene.operate("edit", self.pick.choice(self.jobs), change)

    async def pause(self) -> None:
        if self.jobs:
            job_id = self.pick.choice(self.jobs)
            await self.scene.operate("pause", job_id)
            if self.pick.random() < 0.7:
                await self.scene.operate("resume", job_id)

    async def trigger(self) -> None:
        if self.jobs:
            self.number += 1
            await self.scene.operate("trigger", self.pick.choice(self.jobs), key=f"trigger-{self.number}")

    async def delete(self) -> None:
        if len(self.jobs) > self.size // 2:
            job_id = self.pick.choice(self.jobs)
            if await self.scene.operate("delete", job_id) is not None:
                self.jobs.remove(job_id)

    # --- the target

    def misbehave(self, call: Call) -> None:
        kind, exchange = self.behave.random(), call.exchange
        if kind < 0.6 or self.healthy:
            call.answer()
        elif kind < 0.7:
            call.answer(500, b"no")
        elif kind < 0.74:
            call.answer(503, b"busy", {"Retry-After": "1"})
        elif kind < 0.88:
            call.later(self.behave.uniform(0.1, 1.5), call.answer)
        elif kind < 0.91:
            exchange.reset()
        elif kind < 0.94:
            exchange.close()
        elif kind < 0.97:
            exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            call.later(0.05, exchange.close)
        # Else nothing: the time-out ends it.


class Chaos(Traffic):
    """One journey over a world."""

    def __init__(self, world: World, seed: int, *, jobs: int = 20) -> None:
        super().__init__(world, seed, jobs=jobs)
        self.world = world

    async def play(self, seconds: float) -> None:
        """Faults and calls for so long, then a node that is left alone."""
        world, pick = self.world, self.pick
        await world.start()
        for _ in range(self.size):
            await self.create()
        end = world.now_ms() + seconds * 1000
        while world.now_ms() < end:
            pause_ms, now = pick.randint(100, 900), world.now_ms()
            await until(lambda: world.now_ms() > now + pause_ms, "the next act")  # noqa: B023
            if world.process is None or world.process.poll() is not None:
                if world.process is not None:
                    await world.died()
                await world.start(stop_at=pick.choice((None, self._stop_point())))
                continue
            faults: tuple[Act, ...] = (self.kill, self.restart, self.freeze, world.kill)
            await pick.choice(faults if pick.random() < 0.4 else self.verbs)()
        await self._heal()

    async def _heal(self) -> None:
        world = self.world
        if world.process is not None:
            if world.process.poll() is None:
                await world.kill()
            else:
                await world.died()
        await world.start()
        self.healthy = True  # or a backlog of `catchup: all` would take minutes
        begun = world.now_ms()
        await until(lambda: world.now_ms() > begun + 2_500, "some time without faults")
        await until(lambda: not world.behind(), "being up to date", 45)

    def _stop_point(self) -> str:
        return f"{self.pick.choice(STOP_POINTS)}:{self.pick.randint(1, 6)}"

    # --- faults

    async def kill(self) -> None:
        """At a stop point, by a new process that is to die there."""
        await self.world.kill()
        await self.world.start(stop_at=self._stop_point())

    async def restart(self) -> None:
        world = self.world
        if world.process is not None and world.process.poll() is None:
            code = await world.stop(20)
            if code != 0:  # it died at its stop point on the way out
                world.died_meanwhile()
        await world.start()

    async def freeze(self) -> None:
        world, length = self.world, self.pick.randint(200, 1_500)
        go_on = world.freeze()
        begun = world.now_ms()
        await until(lambda: world.now_ms() > begun + length, "the end of the pause")
        go_on()
