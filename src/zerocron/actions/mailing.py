"""Letters on their way: links for new passwords and invitations, mailed beside whoever asked for them.

Owns how often a mail is tried. A mail server that does not take it now is asked again, up to four times within a
quarter of an hour, while the link in it is still good. What waits for that is in memory only, and ends with the
process: a letter holds a link that lets its reader in, and the ledger has no more of that than a hash. So letters do
not go through the outbox. Must never tell whoever asked what became of a letter that may be to nobody; must never log
a letter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine

import structlog

from zerocron.channels.contract import Accepted, Again, Delivery
from zerocron.channels.letters import Letter, post
from zerocron.channels.sending import Outlets
from zerocron.clock import Clock
from zerocron.core.errors import Unavailable, ZerocronError
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger.database import Ledger

log = structlog.get_logger(__name__)

AGAIN_AFTER_SECONDS = (15.0, 60.0, 240.0, 600.0)
"""From one attempt to the next; longer where the mail server says so, up to the last of these."""

UNDER_WAY_MAX = 50
"""Letters that are written or sent at a time. More that are asked for beside somebody are not written."""

WAITING_MAX = 500
"""Letters that wait for another attempt. More are given up after their first."""


class Mailing:
    """The letters of one node."""

    def __init__(self, *, ledger: Ledger, clock: Clock, outlets: Outlets) -> None:
        self._ledger = ledger
        self._clock = clock
        self._outlets = outlets
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()
        self._is_closing = False

    @property
    def can_mail(self) -> bool:
        """Whether links can be sent: there is a mail server, and an address of ours that is not a stranger's word."""
        return self._outlets.ways.mail is not None and bool(self._outlets.base_url)

    @property
    def base_url(self) -> str:
        return self._outlets.base_url

    @property
    def under_way(self) -> int:
        """Letters that are written or sent at this moment."""
        return len(self._tasks) - len(self._waiting)

    @property
    def waiting(self) -> int:
        """Letters that wait for another attempt."""
        return len(self._waiting)

    def send_beside(self, write: Callable[[], Awaitable[Letter | None]]) -> None:
        """Write a letter, if there is somebody to write to, and send it, while whoever asked goes on."""
        if self.can_mail and not self._is_closing and self.under_way < UNDER_WAY_MAX:
            self._begin(self._write_and_send(write))

    async def send(self, letter: Letter) -> bool:
        """Whether the mail server took it at once. Where it may take it later, it is asked again beside that."""
        if not self.can_mail:
            return False
        delivery = await self._attempt(letter)
        if isinstance(delivery, Again):
            self._begin(self._guarded(self._try_again(letter, delivery)))
        return isinstance(delivery, Accepted)

    async def close(self) -> None:
        """Let what is being sent be sent; what waits for another attempt gets none."""
        self._is_closing = True
        for task in self._waiting:
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write_and_send(self, write: Callable[[], Awaitable[Letter | None]]) -> None:
        async def whole() -> None:
            letter = await write()
            if letter is None:
                return
            delivery = await self._attempt(letter)
            if isinstance(delivery, Again):
                await self._try_again(letter, delivery)

        await self._guarded(whole())

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except ZerocronError as error:
            log.warning("letter_not_sent", reason=error.message)
        except Exception:
            log.exception("letter_failed")

    async def _attempt(self, letter: Letter) -> Delivery:
        delivery = await post(letter, self._outlets.ways)
        if not isinstance(delivery, Accepted):
            log.warning("letter_not_sent", letter=letter.id, reason=delivery.reason)
        return delivery

    async def _try_again(self, letter: Letter, delivery: Again) -> None:
        for seconds in AGAIN_AFTER_SECONDS:
            asked = (delivery.retry_after_ms or 0) / 1000
            if not await self._has_waited(min(max(seconds, asked), AGAIN_AFTER_SECONDS[-1])):
                break
            try:
                is_good = await self._ledger.read(lambda c: link_rows.is_good(c, letter.id, self._clock.now()))
            except Unavailable:
                continue  # nobody can say; the next time is soon enough
            if not is_good:
                return  # it was used, it expired, or a newer one took its place
            found = await self._attempt(letter)
            if not isinstance(found, Again):
                return
            delivery = found
        log.warning("letter_given_up", letter=letter.id)

    async def _has_waited(self, seconds: float) -> bool:
        """False when there is no waiting: too many do, or the process ends."""
        task = asyncio.current_task()
        if task is None or self._is_closing or len(self._waiting) >= WAITING_MAX:
            return False
        self._waiting.add(task)
        try:
            await self._clock.sleep(seconds)
        finally:
            self._waiting.discard(task)
        return True
