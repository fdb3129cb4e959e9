"""A sealed value opens with its key, for its row, and for nothing else; and no key is guessed, shown or used up."""

from __future__ import annotations

import base64
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.errors import Invalid
from zerocron.core.sealing import (
    NONCE_BYTES,
    USES_ALARM,
    USES_MAX,
    CannotOpen,
    DataKey,
    Keyring,
    MasterKey,
    new_master_key,
    read_master_keys,
)

A, B = bytes(range(32)), bytes(range(1, 33))
KEY = DataKey("key-1", "team-1", A)
ROW = {"secret_id": "secret-1", "name": "API_KEY"}


@given(st.text())
def test_what_was_sealed_opens(value: str) -> None:
    assert KEY.open(KEY.seal(value, **ROW), **ROW) == value


def test_the_same_value_is_never_sealed_the_same_way() -> None:
    sealed = [base64.b64decode(KEY.seal("the same", **ROW)) for _ in range(1_000)]
    assert len({text[1 : 1 + NONCE_BYTES] for text in sealed}) == 1_000
    assert len({text[1 + NONCE_BYTES :] for text in sealed}) == 1_000


@pytest.mark.parametrize(
    ("key", "row"),
    [
        (KEY, ROW | {"secret_id": "secret-2"}),
        (KEY, ROW | {"name": "OTHER"}),
        (DataKey("key-1", "team-2", A), ROW),
        (DataKey("key-2", "team-1", A), ROW),
        (DataKey("key-1", "team-1", B), ROW),
    ],
    ids=["another secret", "another name", "another team", "another key id", "another key"],
)
def test_moved_to_another_row_it_does_not_open(key: DataKey, row: dict[str, str]) -> None:
    with pytest.raises(CannotOpen):
        key.open(KEY.seal("a value", **ROW), **row)


@given(st.data())
def test_a_changed_text_does_not_open(data: st.DataObject) -> None:
    sealed = bytearray(base64.b64decode(KEY.seal("a value", **ROW)))
    sealed[data.draw(st.integers(0, len(sealed) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CannotOpen):
        KEY.open(base64.b64encode(sealed).decode(), **ROW)


@given(st.text())
def test_no_other_text_opens(text: str) -> None:
    with pytest.raises(CannotOpen):
        KEY.open(text, **ROW)


def test_parts_of_what_it_belongs_to_cannot_be_pushed_into_each_other() -> None:
    one, other = DataKey("k", "a", A), DataKey("k", "a", A)
    with pytest.raises(CannotOpen):
        other.open(one.seal("a value", secret_id='x","y', name="z"), secret_id="x", name='y","z')


def test_a_data_key_is_kept_sealed_and_belongs_to_its_team() -> None:
    master = MasterKey(A)
    key, wrapped = master.new_data_key("key-1", "team-1")
    again = master.open_data_key(wrapped, key_id="key-1", team_id="team-1")
    assert again.open(key.seal("a value", **ROW), **ROW) == "a value"
    for other in ({"key_id": "key-2", "team_id": "team-1"}, {"key_id": "key-1", "team_id": "team-2"}):
        with pytest.raises(CannotOpen):
            master.open_data_key(wrapped, **other)
    with pytest.raises(CannotOpen):
        MasterKey(B).open_data_key(wrapped, key_id="key-1", team_id="team-1")


def test_a_check_value_knows_its_key() -> None:
    master = MasterKey(A)
    assert master.made(master.check_value())
    assert not MasterKey(B).made(master.check_value())
    assert not master.made("")


def test_the_newest_key_seals_and_all_open() -> None:
    old, new = MasterKey(A), MasterKey(B)
    _, wrapped = old.new_data_key("key-1", "team-1")
    both = Keyring([new, old])
    assert both.newest is new
    assert both.ids == (new.id, old.id)
    where = {"key_id": "key-1", "team_id": "team-1"}
    assert both.open_data_key(wrapped, master_key_id=old.id, **where).id == "key-1"
    with pytest.raises(CannotOpen):
        both.open_data_key(wrapped, master_key_id=new.id, **where)
    with pytest.raises(CannotOpen):
        Keyring([new]).open_data_key(wrapped, master_key_id=old.id, **where)
    assert not Keyring()


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(A).decode(),
        base64.b64encode(A).decode().rstrip("="),
        base64.urlsafe_b64encode(A).decode(),
        A.hex(),
        A.hex().upper(),
        f" {A.hex()} \n",
        f"{A.hex()},",
    ],
)
def test_a_key_is_written_in_base64_or_hex(text: str) -> None:
    assert read_master_keys(text, source="S").ids == (MasterKey(A).id,)


@pytest.mark.parametrize("around", ["{}\n", " {} ", "\ufeff{}\r\n", "\t{}", "\n\n{}\n\n", "{},", ",\n{}\n,"])
def test_a_key_may_come_from_a_file_as_editors_write_it(around: str) -> None:
    for text in (A.hex(), A.hex().upper(), base64.b64encode(A).decode(), f"{A.hex()[:32]}\n{A.hex()[32:]}"):
        assert read_master_keys(around.format(text), source="S").ids == (MasterKey(A).id,)


def test_several_keys_are_separated_by_commas() -> None:
    ring = read_master_keys(f"{B.hex()}, {base64.b64encode(A).decode()}", source="S")
    assert ring.ids == (MasterKey(B).id, MasterKey(A).id)


@pytest.mark.parametrize(
    ("text", "which"),
    [
        ("", "The key"),
        ("hunter2hunter2", "The key"),
        (A.hex()[:-2], "The key"),
        (A.hex() + "00", "The key"),
        (A.hex()[:48] + " " * 16, "The key"),
        ("z" * 64, "The key"),
        (base64.b64encode(A[:16]).decode(), "The key"),
        (f"{A.hex()},hunter2", "Key 2"),
        ("00" * 32, "The key"),
        ("aa" * 32, "The key"),
    ],
)
def test_a_bad_key_is_refused_with_what_to_do_and_without_itself(text: str, which: str) -> None:
    with pytest.raises(Invalid) as error:
        read_master_keys(text, source="ZEROCRON_SECRET_KEY")
    message = error.value.message
    assert message.startswith(f"ZEROCRON_SECRET_KEY: {which} is not ")
    assert message.endswith("Make one with: 0cron secrets new-key")
    assert not [part for part in text.split(",") if len(part) > 4 and part in message]


def test_keys_are_few() -> None:
    with pytest.raises(Invalid, match="at most 10 keys"):
        read_master_keys(",".join(new_master_key() for _ in range(11)), source="S")


def test_new_keys_are_good_and_new() -> None:
    keys = {new_master_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(read_master_keys(key, source="S") for key in keys)


def test_keys_are_shown_to_nobody() -> None:
    master = MasterKey(A)
    data_key, _ = master.new_data_key("key-1", "team-1")
    for thing in (master, data_key, Keyring([master])):
        assert A.hex() not in repr(thing)
        assert base64.b64encode(A).decode() not in f"{thing} {thing!r}"
    for key in (master, data_key):
        with pytest.raises(TypeError):
            pickle.dumps(key)
    assert not {A.hex()[i : i + 8] for i in range(0, 64, 8)} & {master.id[:8], master.id[8:]}


def test_the_alarm_comes_long_before_the_end() -> None:
    assert USES_ALARM * 100 < USES_MAX < 2**32
