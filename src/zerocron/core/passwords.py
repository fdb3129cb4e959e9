"""Passwords: which are taken, and in what form they are hashed.

Owns the rules of ASVS 6.2: at least 8 characters, none refused for what it is made of, nothing cut off, and none that
everybody tries first. One is normalised (NFC), because keyboards write the same letter in several ways. Pure; how they
are hashed is `zerocron.actions.hashing`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from zerocron.core.common_passwords import COMMON_WORDS
from zerocron.core.errors import Invalid

CHARACTERS_MIN = 8
CHARACTERS_MAX = 256
"""Room for any sentence; more would only give the server work."""

HUNG_ON_MAX = 5
"""So many digits and signs at the ends do not make a common word a password."""

_LOOK_ALIKES = str.maketrans("@4301!5$7", "aaeoiisst")
_ROWS = ("01234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "abcdefghijklmnopqrstuvwxyz")
_OWN_PART_MIN = 4


def normalised(text: str) -> str:
    """The form that is hashed and compared."""
    return unicodedata.normalize("NFC", text)


def check_password(text: str, *, field: str = "password", about: Iterable[str] = ()) -> str:
    """The password in the form that is hashed. `about`: what is known of its owner (address, name), which is no
    password either. Raises Invalid, which repeats nothing of it."""
    password = normalised(text)
    if len(password) < CHARACTERS_MIN:
        raise Invalid(
            f"A password has at least {CHARACTERS_MIN} characters. A few words in a row are easy to remember.",
            field=field,
        )
    if len(password) > CHARACTERS_MAX:
        raise Invalid(f"A password has at most {CHARACTERS_MAX} characters.", field=field)
    if _is_common(password):
        raise Invalid("This is among the first passwords that anybody tries. Take another one.", field=field)
    if _is_about(password, about):
        raise Invalid("This is made of your own address or name. Take another one.", field=field)
    return password


def _is_common(password: str) -> bool:
    plain = password.casefold()
    if len(set(plain)) < 5 or _is_row(plain):
        return True
    return any(core in COMMON_WORDS or _is_doubled(core) for core in _cores(plain))


def _cores(plain: str) -> set[str]:
    """What is left of a password without what people add so that it may pass: blanks, digits, signs, look-alikes."""
    joined = "".join(character for character in plain if character not in " -_.")
    found = set()
    for text in (joined, joined.translate(_LOOK_ALIKES)):
        found |= {text, _without_ends(text), _without_ends(text).translate(_LOOK_ALIKES)}
    return found


def _without_ends(text: str) -> str:
    core = text.strip("".join({character for character in text if not character.isalpha()}))
    return core if core and len(text) - len(core) <= HUNG_ON_MAX else text


def _is_doubled(core: str) -> bool:
    half, odd = divmod(len(core), 2)
    return not odd and core[:half] == core[half:] and (core[:half] in COMMON_WORDS or half <= 4)


def _is_row(plain: str) -> bool:
    """Keys or letters in their order, there or back, such as 123456789 or 0987654321."""
    return any(plain in row * 3 or plain in row[::-1] * 3 for row in _ROWS)


def _is_about(password: str, about: Iterable[str]) -> bool:
    cores = _cores(password.casefold())
    parts = [text.casefold() for text in about]
    parts += [part for text in parts for part in text.replace("@", " ").split()]
    words = {"".join(letter for letter in part if letter not in " -_.") for part in parts}
    return any(word in cores for word in words if len(word) >= _OWN_PART_MIN)
