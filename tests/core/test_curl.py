"""Commands as people paste them, and the requests they make."""

from __future__ import annotations

import base64
import shlex
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zerocron.core import shell_words
from zerocron.core.curl import COMMAND_CHARACTERS_MAX, WARNINGS_MAX, CurlRequest, parse
from zerocron.core.errors import Invalid

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
WARNED = "a warning"

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "the least": ("curl https://example.com", {"url": "https://example.com"}),
    "a prompt and a path": ("$ /usr/bin/curl -sS https://example.com/a", {"url": "https://example.com/a"}),
    "an environment": ("TOKEN=x sudo curl https://example.com", {"url": "https://example.com"}),
    "a query without quotes": (
        "curl https://example.com/?a=1&b=2",
        {"url": "https://example.com/?a=1&b=2", "warnings": WARNED},
    ),
    "JSON over lines": (
        """curl -X POST https://api.example.com/v1/things \\
          -H 'Content-Type: application/json' \\
          -H "X-Team: reporting" \\
          -d '{"name": "it'\\''s", "n": 1}'""",
        {
            "url": "https://api.example.com/v1/things",
            "method": "POST",
            "headers": {"Content-Type": JSON, "X-Team": "reporting"},
            "body": '{"name": "it\'s", "n": 1}',
        },
    ),
    "lines that nobody continued": (
        "curl https://example.com\n  -X PUT\n  -H 'A: b'",
        {"url": "https://example.com", "method": "PUT", "headers": {"A": "b"}},
    ),
    "data makes a POST and a form": (
        "curl --url https://example.com -d a=1 --data b=2 --data-raw @literal",
        {
            "url": "https://example.com",
            "method": "POST",
            "headers": {"Content-Type": FORM},
            "body": "a=1&b=2&@literal",
        },
    ),
    "a browser's copy": (
        """curl 'https://example.com/api' -H 'accept: */*' -H 'content-type: application/json' """
        """--data-raw $'{"text":"line\\n\\u00e9 \\'x\\'"}' --compressed""",
        {
            "url": "https://example.com/api",
            "method": "POST",
            "headers": {"accept": "*/*", "content-type": JSON},
            "body": '{"text":"line\né \'x\'"}',
        },
    ),
    "a browser's copy for Windows": (
        'curl ^"https://example.com/a?x=1^&y=2^" ^\r\n  -H ^"accept: */*^" ^\r\n  --data-raw ^"^{^\\^"a^\\^":1^}^"',
        {
            "url": "https://example.com/a?x=1&y=2",
            "method": "POST",
            "headers": {"accept": "*/*", "Content-Type": FORM},
            "body": '{"a":1}',
        },
    ),
    "carets at the ends of lines": (
        'curl.exe "https://example.com" ^\n -X DELETE',
        {"url": "https://example.com", "method": "DELETE"},
    ),
    "--json": (
        "curl --json '{\"a\":1}' https://example.com",
        {
            "url": "https://example.com",
            "method": "POST",
            "headers": {"Content-Type": JSON, "Accept": JSON},
            "body": '{"a":1}',
        },
    ),
    "-G": (
        "curl -G https://example.com/search?p=1 --data-urlencode 'q=a b&c' -d n=2 --data-urlencode '=x/y'",
        {"url": "https://example.com/search?p=1&q=a%20b%26c&n=2&x%2Fy"},
    ),
    "--data-urlencode of a bare text": (
        "curl https://example.com --data-urlencode 'a b'",
        {"url": "https://example.com", "method": "POST", "headers": {"Content-Type": FORM}, "body": "a%20b"},
    ),
    "-u": (
        "curl -u 'me:s3cret' https://example.com",
        {
            "url": "https://example.com",
            "headers": {"Authorization": "Basic " + base64.b64encode(b"me:s3cret").decode()},
            "warnings": WARNED,
        },
    ),
    "credentials in the address": (
        "curl https://me:p%40ss@example.com/x",
        {
            "url": "https://example.com/x",
            "headers": {"Authorization": "Basic " + base64.b64encode(b"me:p@ss").decode()},
            "warnings": WARNED,
        },
    ),
    "a bearer": (
        "curl -H 'Authorization: Bearer abc' https://example.com",
        {"url": "https://example.com", "headers": {"Authorization": "Bearer abc"}, "warnings": WARNED},
    ),
    "a secret of ours": (
        'curl -H "Authorization: Bearer ${secrets.KEY}" https://example.com',
        {"url": "https://example.com", "headers": {"Authorization": "Bearer ${secrets.KEY}"}},
    ),
    "a variable of the shell": (
        'curl -H "X-Key: $KEY" https://example.com',
        {"url": "https://example.com", "headers": {"X-Key": "$KEY"}, "warnings": WARNED},
    ),
    "single quotes keep a dollar": (
        "curl -d '$5' https://example.com",
        {"url": "https://example.com", "method": "POST", "headers": {"Content-Type": FORM}, "body": "$5"},
    ),
    "flags that stand together": (
        "curl -sSLkXPOST -HA:b -m5 https://example.com",
        {
            "url": "https://example.com",
            "method": "POST",
            "headers": {"A": "b"},
            "redirects": 5,
            "verify_tls": False,
            "timeout_seconds": 5.0,
            "warnings": WARNED,
        },
    ),
    "-I, an agent, a referrer, a cookie": (
        "curl -I -A 'me/1' -e https://a.example -b 'a=1; b=2' https://example.com",
        {
            "url": "https://example.com",
            "method": "HEAD",
            "headers": {"User-Agent": "me/1", "Referer": "https://a.example", "Cookie": "a=1; b=2"},
            "warnings": WARNED,
        },
    ),
    "as many redirects as it says": (
        "curl -L --max-redirs 2 --max-time 1.5 https://example.com",
        {"url": "https://example.com", "redirects": 2, "timeout_seconds": 1.5},
    ),
    "no scheme": ("curl example.com/x", {"url": "http://example.com/x", "warnings": WARNED}),
    "a pipe": ("curl -s https://example.com | jq .", {"url": "https://example.com", "warnings": WARNED}),
    "sent elsewhere": ("curl https://example.com 2>/dev/null", {"url": "https://example.com", "warnings": WARNED}),
    "another command behind it": (
        "curl https://example.com && echo done",
        {"url": "https://example.com", "warnings": WARNED},
    ),
    "a header that is ours": (
        "curl -H 'Host: other' -H 'Content-Length: 3' https://example.com",
        {"url": "https://example.com", "warnings": WARNED},
    ),
    "a header twice": (
        "curl -H 'a: 1' -H 'A: 2' https://example.com",
        {"url": "https://example.com", "headers": {"A": "2"}, "warnings": WARNED},
    ),
    "an empty header and one taken away": (
        "curl -H 'X-Empty;' -H 'Accept:' https://example.com",
        {"url": "https://example.com", "headers": {"X-Empty": ""}, "warnings": WARNED},
    ),
    "--option=value": (
        "curl --request=PATCH --header='A: b' https://example.com",
        {"url": "https://example.com", "method": "PATCH", "headers": {"A": "b"}},
    ),
    "the end of the options": ("curl -- https://example.com", {"url": "https://example.com"}),
    "two addresses": ("curl https://a.example https://b.example", {"url": "https://a.example", "warnings": WARNED}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_people_paste(name: str) -> None:
    command, expected = CASES[name]
    found = parse(command)
    warned = expected.pop("warnings", None)
    assert found == CurlRequest(**expected, warnings=found.warnings)
    assert bool(found.warnings) == (warned is not None), found.warnings


LEFT_OUT = {
    "-F file=@a.txt": "-F file=@a.txt",
    "--form a=b": "--form a=b",
    "-o out.json": "-o out.json",
    "-x http://proxy:3128": "-x http://proxy:3128",
    "--retry 3": "--retry 3",
    "--cacert ca.pem": "--cacert ca.pem",
    "-E cert.pem": "-E cert.pem",
    "--connect-timeout 3": "--connect-timeout 3",
    "--some-option-of-tomorrow": "--some-option-of-tomorrow",
    "-5": "-5",
    "-m soon": "-m soon",
    "-H nonsense": "nonsense",
}


@pytest.mark.parametrize("option", LEFT_OUT)
def test_what_has_no_counterpart_is_told(option: str) -> None:
    found = parse(f"curl {option} https://example.com")
    assert found.url == "https://example.com"
    assert any(LEFT_OUT[option] in warning for warning in found.warnings), found.warnings


@pytest.mark.parametrize(
    "command",
    [
        "",
        "wget https://example.com",
        "curl",
        "curl -X POST",
        "curl https://example.com -H",
        "curl 'https://example.com",
        'curl "https://example.com',
        "curl $'https://example.com",
        "curl -d @body.json https://example.com",
        "curl --data-binary @- https://example.com",
        "curl --json @body.json https://example.com",
        "curl --data-urlencode a@file https://example.com",
        "curl -H @headers https://example.com",
        "curl -b cookies.txt https://example.com",
        "curl -T up.bin https://example.com",
        "curl -K curlrc",
        "curl " + "x" * COMMAND_CHARACTERS_MAX,
    ],
)
def test_what_is_refused_says_what_to_do(command: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse(command)
    assert refusal.value.message.endswith((".", "`"))
    assert [fault.field for fault in refusal.value.fields] == ["command"]


def test_a_file_is_named_in_its_refusal() -> None:
    with pytest.raises(Invalid, match=r"-d '@body\.json' reads a file on your machine"):
        parse("curl -d @body.json https://example.com")


@given(st.text())
def test_a_quote_that_is_not_closed_reaches_to_the_end(text: str) -> None:
    """Else each quote within it would be looked at to the end again: 20,000 characters took more than a second."""
    for quote in ('"', "$'"):
        assert shell_words._QUOTED.match(quote + text)


@pytest.mark.parametrize(
    ("command", "body"),
    [
        ("""curl https://x.example --data-raw $'{"p":"it\\'s ^"}'""", """{"p":"it's ^"}"""),
        ("""curl https://x.example -H it\\'s:1 -d 'a^"b'""", 'a^"b'),
        ("curl https://x.example -d a^'b'\n -H 'x: y^z'", "a^b"),
        ("""curl ^"https://x.example^" ^\n -H ^"accept: it's^" ^\n --data-raw ^"^{^\\^"a^\\^":1^}^\"""", '{"a":1}'),
        ("""curl "https://x.example" ^\r\n -H "a: it's" -d "it's\"""", "it's"),
    ],
)
def test_a_caret_escapes_in_a_command_of_windows_alone(command: str, body: str) -> None:
    assert parse(command).body == body


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200), st.booleans())
@example('^"', False)
@example("^\n", False)
@example("it's ^\n", False)
def test_what_was_quoted_comes_back_as_it_was(body: str, is_ansi: bool) -> None:
    quoted = "$'" + "".join(f"\\U{ord(char):08x}" for char in body) + "'" if is_ansi else shlex.quote(body)
    assert parse(f"curl --data-raw {quoted} https://example.com").body == body


@given(st.text(st.sampled_from("abc'\"\\ \t-="), max_size=60))
def test_words_are_those_of_a_shell(text: str) -> None:
    try:
        expected = shlex.split(text, posix=True)
    except ValueError:
        return
    if not text.endswith("\\"):
        assert shell_words.split(text).words == expected


@given(st.text(max_size=300))
def test_nothing_that_is_pasted_breaks_it(text: str) -> None:
    for command in (text, f"curl {text}", f"curl https://example.com {text}"):
        try:
            found = parse(command)
        except Invalid:
            continue
        assert found.url
        assert len(found.warnings) <= WARNINGS_MAX + 12


_TOKENS = [
    "-X",
    "POST",
    "-H",
    "A: b",
    "-d",
    "x",
    "-L",
    "-k",
    "--json",
    "{}",
    "-G",
    "-u",
    "a:b",
    "-F",
    "--nope",
    "^\n",
    "'",
]


@given(st.lists(st.sampled_from(_TOKENS), max_size=12))
@example(["-X", "^\n", "--nope"])
@example(["x", "^\n", "--nope"])
def test_no_option_is_dropped_in_silence(tokens: list[str]) -> None:
    try:
        found = parse(f"curl https://example.com {' '.join(tokens)}")
    except Invalid:
        return
    words = [token for token in tokens if token != "^\n"]
    is_option = any(
        word == "--nope" and not before.startswith("-") for before, word in pairwise(["https://example.com", *words])
    )
    if is_option and "'" not in tokens:  # within quotes it is a part of something else
        assert any("--nope" in warning for warning in found.warnings)


def test_an_address_that_is_left_out_is_named() -> None:
    found = parse("curl https://example.com/a https://example.com/b -d x ' --nope '")
    assert found.warnings == [
        "Only the first of 3 addresses was taken; make a job for each other: 'https://example.com/b, --nope'"
    ]


@pytest.mark.parametrize(
    "piece",
    ["-H 'a: b' ", "$A ", "'", '"', "\\", '\\"', '"\\', "$'", "^\n", "-sS ", "-H 'x: y' -d a ", "--x ", "{[", "`"],
)
def test_a_hostile_command_makes_little(piece: str) -> None:
    text = ("curl https://example.com " + piece * COMMAND_CHARACTERS_MAX)[:COMMAND_CHARACTERS_MAX]
    try:
        found = parse(text)
    except Invalid:
        return
    assert len(found.warnings) <= WARNINGS_MAX + 12
    assert len(found.headers) <= 51
