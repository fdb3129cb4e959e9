"""Signing keys in a ledger: one that is the team's, those before it until they expire, and nobody else's."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError
from tests.storage.samples import DAY, NOON, an_id

from zerocron.core.sealing import CannotOpen, DataKey, Keyring, new_master_key, read_master_keys
from zerocron.core.signing import key_text
from zerocron.storage.ledger import secrets, signing
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.secrets import DataKeyRow
from zerocron.storage.ledger.signing import SigningKeyRow

KEYRING = read_master_keys(new_master_key(), source="test")


def data_key(connection: Connection, team_id: str, generation: int = 1) -> DataKey:
    key, wrapped = KEYRING.newest.new_data_key(an_id(), team_id)
    secrets.add_data_key(connection, DataKeyRow(key.id, team_id, generation, KEYRING.newest.id, wrapped), NOON)
    return key


def add(connection: Connection, key: DataKey, value: bytes, created_at: int = NOON) -> SigningKeyRow:
    key_id = an_id()
    row = SigningKeyRow(key.team_id, key_id, key.id, signing.seal(key, key_id, key_text(value)), created_at)
    signing.insert(connection, row)
    return row


async def test_the_newest_key_comes_first_and_an_expired_one_is_gone(ledger: Ledger) -> None:
    team, other = an_id(), an_id()

    def write(connection: Connection) -> None:
        key = data_key(connection, team)
        add(connection, key, b"1" * 32, NOON - DAY)
        signing.expire(connection, team, NOON + DAY)
        add(connection, key, b"2" * 32)
        add(connection, data_key(connection, other), b"3" * 32)

    await ledger.write(write)

    def keys(connection: Connection, now: int) -> list[bytes]:
        return signing.opened(connection, signing.valid(connection, team, now), KEYRING)

    assert await ledger.read(lambda connection: keys(connection, NOON)) == [b"2" * 32, b"1" * 32]
    assert await ledger.read(lambda connection: keys(connection, NOON + DAY - 1)) == [b"2" * 32, b"1" * 32]
    assert await ledger.read(lambda connection: keys(connection, NOON + DAY)) == [b"2" * 32]
    await ledger.write(lambda connection: signing.remove_expired(connection, team, NOON + DAY))
    assert len(await ledger.read(lambda connection: signing.valid(connection, team, NOON))) == 1
    assert len(await ledger.read(lambda connection: signing.valid(connection, other, NOON))) == 1


async def test_a_team_has_one_key_that_does_not_expire(ledger: Ledger) -> None:
    team = an_id()

    def twice(connection: Connection) -> None:
        key = data_key(connection, team)
        add(connection, key, b"1" * 32)
        add(connection, key, b"2" * 32)

    with pytest.raises(IntegrityError):
        await ledger.write(twice)
    assert await ledger.read(lambda connection: signing.valid(connection, team, NOON)) == []


async def test_keys_are_sealed_anew_as_they_are(ledger: Ledger) -> None:
    team = an_id()

    def write(connection: Connection) -> int:
        old = data_key(connection, team)
        add(connection, old, b"1" * 32)
        new = data_key(connection, team, 2)
        resealed = signing.reseal(connection, team, {old.id: old}, new)
        secrets.remove_data_keys(connection, [old.id])
        return resealed

    assert await ledger.write(write) == 1
    assert (
        await ledger.write(lambda connection: signing.reseal(connection, an_id(), {}, DataKey("x", "y", b"k" * 32)))
        == 0
    )
    rows = await ledger.read(lambda connection: signing.valid(connection, team, NOON))
    assert await ledger.read(lambda connection: signing.opened(connection, rows, KEYRING)) == [b"1" * 32]


async def test_without_its_data_key_or_its_master_key_nothing_opens(ledger: Ledger) -> None:
    team = an_id()

    def write(connection: Connection) -> SigningKeyRow:
        key = data_key(connection, team)
        return add(connection, key, b"1" * 32)

    row = await ledger.write(write)
    with pytest.raises(CannotOpen):
        await ledger.read(lambda connection: signing.opened(connection, [row], Keyring()))
    await ledger.write(lambda connection: secrets.remove_data_keys(connection, [row.data_key_id]))
    with pytest.raises(CannotOpen):
        await ledger.read(lambda connection: signing.opened(connection, [row], KEYRING))
