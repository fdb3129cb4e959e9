"""Id tokens of OpenID Connect: what an issuer says of somebody, and whether it is really the issuer who says so.

Owns every check on a token: its signature by a key of the issuer, in an algorithm with a key pair (never `none`, never
one whose key both sides share), from that issuer, for this client, for this sign-in, and of now. Pure: the keys and the
time are arguments.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey
from joserfc.jws import extract_compact

from zerocron.core.model import Instant

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
LEEWAY_SECONDS = 60
"""By how much the issuer's clock may differ."""

TOKEN_CHARACTERS_MAX = 32_768
KEYS_MAX = 100
SUBJECT_CHARACTERS_MAX = 255


class NotGenuine(Exception):
    """The token is not what it has to be; the message says why, and repeats nothing of it."""


class UnknownKey(NotGenuine):
    """It is signed with a key that is none of these: the issuer may have a new one."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Who somebody is at the issuer. `auth_time`: when they last proved it there; None where it does not say."""

    subject: str
    email: str
    is_email_verified: bool
    name: str
    auth_time: Instant | None


def read_id_token(
    token: str, keys: Sequence[Mapping[str, Any]], *, issuer: str, client_id: str, nonce: str, now: Instant
) -> Claims:
    """What the token says. `keys`: the issuer's, as JSON Web Keys. Raises NotGenuine, UnknownKey."""
    claims = _verified(token, keys)
    if claims.get("iss") != issuer:
        raise NotGenuine("it is another issuer's")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if client_id not in audiences:
        raise NotGenuine("it is for another client")
    if claims.get("azp", client_id) != client_id or (len(audiences) > 1 and "azp" not in claims):
        raise NotGenuine("it was given to another client")
    seconds = now / 1000
    if _number(claims, "exp") <= seconds - LEEWAY_SECONDS:
        raise NotGenuine("it has expired")
    if _number(claims, "iat") > seconds + LEEWAY_SECONDS:
        raise NotGenuine("it is from the future: compare the clocks")
    if not isinstance(claims.get("nonce"), str) or not hmac.compare_digest(claims["nonce"].encode(), nonce.encode()):
        raise NotGenuine("it is of another sign-in")
    return claims_of(claims)


def claims_of(claims: Mapping[str, Any]) -> Claims:
    """What of a token, or of an answer about somebody, is used here. Raises NotGenuine when it is about nobody."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_CHARACTERS_MAX or not subject.isascii():
        raise NotGenuine("it does not say about whom it is")
    email, name = claims.get("email"), claims.get("name")
    is_verified = claims.get("email_verified")
    auth_time = claims.get("auth_time")
    return Claims(
        subject=subject,
        email=email if isinstance(email, str) else "",
        is_email_verified=is_verified is True or is_verified == "true",
        name=name if isinstance(name, str) else "",
        auth_time=int(auth_time * 1000) if isinstance(auth_time, int | float) and 0 <= auth_time < 1e11 else None,
    )


def _verified(token: str, keys: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    if len(token) > TOKEN_CHARACTERS_MAX:
        raise NotGenuine("it is too long")
    try:
        header = extract_compact(token.encode()).headers()
    except (JoseError, ValueError, UnicodeError):
        raise NotGenuine("it is no token") from None
    if header.get("alg") not in ALGORITHMS:
        raise NotGenuine("its algorithm is not accepted")
    candidates = [key for key in _keys(keys) if header.get("kid") in (None, key.kid)]
    for key in candidates:
        try:
            return jwt.decode(token, key, algorithms=list(ALGORITHMS)).claims
        except (JoseError, ValueError):
            continue
    if candidates:
        raise NotGenuine("its signature is wrong")
    raise UnknownKey("it is signed with a key that the issuer does not show")


def _keys(keys: Sequence[Mapping[str, Any]]) -> list[Key]:
    """Those with which a token can be signed; an issuer may show others, and kinds that nobody here knows."""
    usable: list[Key] = []
    for raw in keys[:KEYS_MAX]:
        if raw.get("use", "sig") != "sig":
            continue
        try:
            key = JWKRegistry.import_key(dict(raw))
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if isinstance(key, RSAKey | ECKey | OKPKey):
            usable.append(key)
    return usable


def _number(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotGenuine(f"it has no {name}")
    return float(value)
