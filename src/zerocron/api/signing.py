"""/v1/signing-key: with what the requests of a team are signed."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from zerocron.actions.signing import SigningKey
from zerocron.api.access import needs
from zerocron.api.fields import Identifier, InstantText, Output, instant, maybe_instant
from zerocron.api.services import OnceKey, Use, Who
from zerocron.core.access import Permission

router = APIRouter(prefix="/v1/signing-key", tags=["signing"])


class SigningKeyOut(Output):
    """The signing key of a team, without the key itself."""

    id: Identifier
    created_at: InstantText
    previous_expires_at: InstantText | None = Field(
        description="Until then requests are signed with the key before, too; null when there is none that still signs."
    )


class NewSigningKeyOut(SigningKeyOut):
    """A new signing key, which is shown this once and never again."""

    key: str = Field(
        description="The key itself: `whsec_` and 32 random bytes in base64. Give it to whoever verifies signatures.",
        examples=["whsec_" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="],
    )


@router.get("", response_model=SigningKeyOut, responses={404: {"description": "No key was made yet."}})
@needs(Permission.READ)
async def show_signing_key(who: Who, services: Use) -> SigningKeyOut:
    """What is known of the key that signs."""
    return _out(await services.signing.show(who.team_id))


@router.post(
    "/rotate",
    response_model=NewSigningKeyOut,
    responses={
        409: {
            "description": "The server has no master key, somebody else rotated at the same moment, or the "
            "`Idempotency-Key` made a key before, and that is shown only once."
        }
    },
)
@needs(Permission.ADMIN, elevated=True)
async def rotate_signing_key(who: Who, services: Use, once: OnceKey = None) -> NewSigningKeyOut:
    """Make a new key, which is in this answer only. The first rotation makes the first key.

    For a day requests carry two signatures, by the new key and by the one before, so that receivers can be changed one
    by one. After two rotations in a day there are three.
    """
    made, text = await services.signing.rotate(who.team_id, once, by=who.actor)
    return NewSigningKeyOut(**_out(made).model_dump(), key=text)


def _out(key: SigningKey) -> SigningKeyOut:
    return SigningKeyOut(
        id=key.id,
        created_at=instant(key.created_at),
        previous_expires_at=maybe_instant(key.previous_expires_at),
    )
