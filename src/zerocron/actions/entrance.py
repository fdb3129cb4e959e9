"""By which people come in: the verbs on people, made together because they share limits and the threads that hash."""

from __future__ import annotations

from zerocron.actions.hashing import Hashing
from zerocron.actions.invitations import Invitations
from zerocron.actions.mailing import Mailing
from zerocron.actions.people import People
from zerocron.actions.resets import Resets
from zerocron.actions.second_factors import SecondFactors
from zerocron.actions.secrets import Secrets
from zerocron.actions.sign_ins import Limits, SignIns
from zerocron.channels.sending import Outlets
from zerocron.clock import Clock
from zerocron.storage.ledger.database import Ledger


class Entrance:
    """One of each, for one node."""

    def __init__(self, *, ledger: Ledger, clock: Clock, secrets: Secrets, outlets: Outlets) -> None:
        self.hashing = hashing = Hashing()
        limits = Limits()
        self.second_factors = SecondFactors(ledger=ledger, clock=clock, secrets=secrets)
        self.sign_ins = SignIns(
            ledger=ledger, clock=clock, hashing=hashing, second_factors=self.second_factors, limits=limits
        )
        self.people = People(ledger=ledger, clock=clock, hashing=hashing, sign_ins=self.sign_ins, limits=limits)
        self.mailing = Mailing(ledger=ledger, clock=clock, outlets=outlets)
        self.resets = Resets(
            ledger=ledger,
            clock=clock,
            hashing=hashing,
            people=self.people,
            sign_ins=self.sign_ins,
            second_factors=self.second_factors,
            mailing=self.mailing,
            limits=limits,
        )
        self.invitations = Invitations(
            ledger=ledger, clock=clock, hashing=hashing, people=self.people, sign_ins=self.sign_ins
        )

    async def close(self) -> None:
        """Let end what goes on. Closing twice is no error."""
        await self.mailing.close()
        await self.sign_ins.close()
        await self.hashing.close()
