"""What counts as a body: strict JSON within its bounds, under any content type."""

from __future__ import annotations

import json
import sys
import threading
import tracemalloc
from typing import Any

import pytest
from starlette.types import Message
from tests.api.support import JOB, NOWHERE, Client

from zerocron.api import gate
from zerocron.api.gate import REQUEST_BYTES_MAX, _read
from zerocron.api.json_text import DEPTH_MAX, read_json
from zerocron.core.errors import Invalid


def with_member(name: str, value: str) -> bytes:
    """The text of a job with a member written just so."""
    others = {other: value for other, value in JOB.items() if other != name}
    return json.dumps(others)[:-1].encode() + f', "{name}": {value}}}'.encode()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "This request needs a body: a JSON object."),
        (b"null", "This has to be an object; this is null."),
        (b"[]", "This has to be an object; this is a list."),
        (b'"text"', "This has to be an object; this is text."),
        (b"5", "This has to be an object; this is a number."),
        (b"true", "This has to be an object; this is true."),
        (b"{", "The body is not valid JSON: expecting property name enclosed in double quotes, line 1, column 2."),
        (b'{"a":1,}', "The body is not valid JSON: "),
        (b'{"a":01}', "The body is not valid JSON: expecting ',' delimiter, line 1, column 7."),
        (b"{'a':1}", "The body is not valid JSON: "),
        (b'{"a":1}x', "The body is not valid JSON: extra data, line 1, column 8."),
        (b'{"a":"\x00"}', "The body is not valid JSON: invalid control character, line 1, column 7."),
        (b'{"a":"\n"}', "The body is not valid JSON: invalid control character, line 1, column 7."),
        (b'{"a":"\\x"}', "The body is not valid JSON: invalid \\escape, "),
        (b"name=a&url=b", "The body is not valid JSON: expecting value, line 1, column 1."),
        (b"\xff\xfe{\x00}\x00", "The body is not valid UTF-8, from its byte 0 on. Send JSON in UTF-8."),
        (b'{"name":"\xe9"}', "The body is not valid UTF-8, from its byte 9 on. Send JSON in UTF-8."),
        (b'{"name":"\xed\xa0\x80"}', "The body is not valid UTF-8, from its byte 9 on. Send JSON in UTF-8."),
        (b"[" * 100_000, "This is nested more than 32 levels deep. Flatten it, or send it as text."),
        (b'{"a":' * 50_000, "This is nested more than 32 levels deep. Flatten it, or send it as text."),
        (b"NaN", "JSON has no NaN. Give a number, or null."),
    ],
)
async def test_what_is_no_json_object(api: Client, body: bytes, words: str) -> None:
    assert words in (await api("POST", "/v1/jobs", body=body)).problem(422)


@pytest.mark.parametrize(
    ("member", "value", "field", "words"),
    [
        ("timeout", "9" * 5_000, "timeout", "This number of 5,000 digits cannot be kept exactly."),
        ("timeout", f"-{'9' * 5_000}", "timeout", "This number of 5,000 digits cannot be kept exactly."),
        ("timeout", f"0.{'1' * 5_000}", "timeout", "This number has 5,002 characters; 100 are the most."),
        ("timeout", "1e400", "timeout", "This number is too large."),
        ("timeout", "-1e400", "timeout", "This number is too large."),
        ("timeout", "NaN", "timeout", "JSON has no NaN."),
        ("timeout", "Infinity", "timeout", "JSON has no Infinity."),
        ("timeout", "-Infinity", "timeout", "JSON has no -Infinity."),
        ("catchup_window", "18446744073709551616", "catchup_window", "cannot be kept exactly"),
        ("retry", '{"attempts": 1e999}', "retry.attempts", "This number is too large."),
        ("body", '{"id": 12345678901234567890123}', "body.id", "send it as text"),
        ("body", '[1, {"deep": [NaN]}]', "body.1.deep.0", "JSON has no NaN."),
        ("name", '"\\ud800"', "name", "This holds half of a character (U+D800)."),
        ("name", '"\\udc00\\ud800"', "name", "This holds half of a character (U+DC00)."),
        ("body", '{"\\ud800": 1}', "body.\ud800", "This holds half of a character"),
        ("tags", '["a", "\\u0000"]', "tags.1", "This holds a NUL character (U+0000), which cannot be stored."),
        ("body", '"\\u0000"', "body", "NUL"),
        ("body", '{"a": {"b\\u0000": 1}}', "body.a.b\0", "NUL"),
        ("headers", '{"X-A\\u0000": "1"}', "headers.X-A\0", "NUL"),
        ("headers", '{"X-A": "\\u0000"}', "headers.X-A", "NUL"),
        ("retry", '{"backoff": "\\u0000"}', "retry.backoff", "NUL"),
        ("success", '{"body_contains": "\\u0000"}', "success.body_contains", "NUL"),
        ("schedule", '"\\u0000"', "schedule", "NUL"),
        ("name", '"a", "name": "b"', "name", "This name is given twice. Give it once."),
        ("retry", '{"attempts": 1, "attempts": 2}', "retry.attempts", "This name is given twice."),
        ("body", '[[{"a": 1, "b": 2, "a": 3}]]', "body.0.0.a", "This name is given twice."),
        ("body", "[" * 40 + "]" * 40, "body" + ".0" * 31, "nested more than 32 levels deep"),
    ],
)
async def test_what_json_leaves_open_is_refused_with_its_place(
    api: Client, member: str, value: str, field: str, words: str
) -> None:
    answer = await api("POST", "/v1/jobs", body=with_member(member, value))

    place = field.replace("\ud800", "?")
    assert words in answer.problem(422, place)
    assert answer.problem(422).startswith(f"{place}: ")


async def test_every_text_of_a_job_refuses_nul(api: Client) -> None:
    for path, method in (("/v1/jobs", "POST"), (f"/v1/jobs/{NOWHERE}", "PATCH")):
        for name in ("name", "schedule", "url", "timezone", "method", "body", "overlap", "unheard-of"):
            answer = await api(method, path, {name: "a\0b"})
            assert "NUL" in answer.problem(422, name)
    assert "NUL" in (await api("POST", "/v1/api-keys", {"name": "\0"})).problem(422, "name")
    assert "NUL" in (await api("POST", "/v1/schedules/preview", {"after": "\0"})).problem(422, "after")


async def test_numbers_that_fit_are_kept_exactly(api: Client) -> None:
    numbers = [0, -1, 2**53 + 1, -(2**63), 2**64 - 1, 0.1, 1e300, -2.5e-300]

    made = await api.job(method="POST", body=numbers)

    assert json.loads(made["body"]) == numbers


async def test_letters_of_the_whole_world_are_kept(api: Client) -> None:
    name = "Zoë 日本語 🚀 \u2028 e\u0301"

    made = await api.job(name=name, body={"ключ": ["значение", "🚀"]})

    assert made["name"] == name
    assert json.loads(made["body"]) == {"ключ": ["значение", "🚀"]}
    escaped = await api("POST", "/v1/jobs", body=with_member("tags", '["\\ud83d\\ude80"]'))
    assert escaped.json["tags"] == ["🚀"]


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "text/plain", "application/x-www-form-urlencoded", "application/octet-stream", "", "nonsense"],
)
async def test_json_is_taken_under_any_content_type(api: Client, content_type: str) -> None:
    answer = await api("POST", "/v1/jobs", JOB, headers={"Content-Type": content_type})

    assert answer.status == 201, answer.body


async def test_a_byte_order_mark_is_passed_over(api: Client) -> None:
    answer = await api("POST", "/v1/jobs", body=b"\xef\xbb\xbf" + json.dumps(JOB).encode())

    assert answer.status == 201


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, gzip", "IDENTITY, gzip"])
async def test_compressed_bodies_are_not_taken(api: Client, coding: str) -> None:
    answer = await api("POST", "/v1/jobs", JOB, headers={"Content-Encoding": coding})

    assert answer.problem(415) == "Bodies are taken as they are. Leave out the Content-Encoding."
    assert (await api("POST", "/v1/jobs", JOB, headers={"Content-Encoding": "Identity"})).status == 201


async def test_a_body_that_is_too_large_is_refused_as_soon_as_that_is_known(api: Client) -> None:
    words = "1,572,864 bytes"
    declared = await api("POST", "/v1/jobs", body=b"{}", headers={"Content-Length": str(REQUEST_BYTES_MAX + 1)})
    assert words in declared.problem(413)
    absurd = await api("POST", "/v1/jobs", body=b"{}", headers={"Content-Length": "9" * 500})
    assert words in absurd.problem(413)
    streamed = await api("POST", "/v1/jobs", body=[b" " * 65_536] * 25)
    assert words in streamed.problem(413)
    for method in ("GET", "DELETE"):  # a body where none belongs has the same bound
        assert words in (await api(method, f"/v1/jobs/{NOWHERE}", body=[b" " * 65_536] * 25)).problem(413)


@pytest.mark.parametrize("length", ["-1", "+5", "1.5", "0x10", "nonsense", "", "１２"])
async def test_a_content_length_that_makes_no_sense_is_no_reason_to_fail(api: Client, length: str) -> None:
    header = {"Content-Length": length} if length.isascii() else {}

    assert (await api("POST", "/v1/jobs", JOB, headers=header)).status == 201


async def test_the_largest_job_fits(api: Client) -> None:
    body = "x" * 1_048_576

    made = await api.job(method="POST", body=body, headers={f"X-{n}": "v" * 8_000 for n in range(50)})

    assert made["body"] == body
    answer = await api("POST", "/v1/jobs", JOB | {"body": body + "x"})
    assert "1048576 bytes" in answer.problem(422, "body").replace(",", "")


async def test_the_deepest_body_fits(api: Client) -> None:
    nested = "[" * (DEPTH_MAX - 1) + "]" * (DEPTH_MAX - 1)

    assert (await api("POST", "/v1/jobs", body=with_member("body", nested))).status == 201
    answer = await api("POST", "/v1/jobs", body=with_member("body", f"[{nested}]"))
    assert "32 levels" in answer.problem(422)


async def test_a_large_body_is_checked_beside_the_event_loop(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a million brackets take half a second to walk: runs must not be late for that."""
    here = threading.current_thread()
    checked_in: list[threading.Thread] = []

    def watched(body: bytes) -> Any:
        checked_in.append(threading.current_thread())
        return read_json(body)

    monkeypatch.setattr(gate, "read_json", watched)
    brackets = b'{"body":[' + b"[]," * 400_000 + b"[]]}"
    assert (await api("POST", "/v1/jobs", body=brackets)).problem(422, "name")
    assert checked_in[0] is not here
    assert (await api("POST", "/v1/jobs", JOB)).status == 201
    assert checked_in[1] is here


async def test_a_body_where_none_belongs_is_refused(api: Client) -> None:
    job = await api.job()
    for method, path in (
        ("POST", f"/v1/jobs/{job['id']}/pause"),
        ("POST", f"/v1/jobs/{job['id']}/resume"),
        ("POST", f"/v1/jobs/{job['id']}/trigger"),
        ("DELETE", f"/v1/jobs/{job['id']}"),
        ("GET", "/v1/jobs"),
    ):
        assert (await api(method, path, {"force": True})).problem(422) == "This request takes no body. Leave it out."
    assert (await api("POST", f"/v1/jobs/{job['id']}/pause", {})).status == 200  # some clients always send one


async def test_a_flood_of_fields_is_cut_short(api: Client) -> None:
    many = {f"field{n}": n for n in range(50_000)}

    for document, words in (
        (JOB | many, "At most 100 items; these are 50,003."),
        (JOB | {"headers": {f"X-{n}": n for n in range(50_000)}}, "At most 50 items; these are 50,000."),
        (JOB | {"retry": many}, "At most 100 items; these are 50,000."),
        (JOB | {"tags": [1] * 100_000}, "At most 20 items"),
    ):
        answer = await api("POST", "/v1/jobs", document)
        assert words in answer.problem(422)
        assert len(answer.body) < 1_000


async def test_what_is_told_about_an_input_is_short(api: Client) -> None:
    long = "x" * 100_000
    for document in (
        JOB | {long: 1},
        JOB | {"headers": {long: "v"}},
        JOB | {"overlap": long},
        JOB | {"body": {long: [float("1e300"), "\0"]}},
        JOB | {"retry": {long: {long: long}}},
        {long + str(n): n for n in range(10)},
    ):
        answer = await api("POST", "/v1/jobs", document)
        answer.problem(422)
        assert len(answer.body) < 10_000


def test_reading_leaves_the_recursion_limit_alone() -> None:
    limit = sys.getrecursionlimit()

    with pytest.raises(Invalid, match="32 levels"):
        read_json(b'[{"a":' * 500_000)

    assert sys.getrecursionlimit() == limit


async def test_a_body_in_tiny_pieces_takes_no_more_than_its_bound() -> None:
    """Measured in bytes that are held: kept as they came, pieces of four bytes would take a dozen times as much."""
    left = REQUEST_BYTES_MAX // 4

    async def receive() -> Message:
        nonlocal left
        left -= 1
        return {"type": "http.request", "body": left.to_bytes(4), "more_body": left > 0}

    tracemalloc.start()
    try:
        body = await _read({"type": "http", "headers": []}, receive)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert body is not None
    assert len(body) == REQUEST_BYTES_MAX
    assert most < 3 * REQUEST_BYTES_MAX
