"""Secrets on their way through an attempt: put into the request, and taken out of all that is kept of it."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.house import TIMINGS, answered
from tests.storage.samples import NOON, a_definition, a_job, a_run
from tests.support.canary import spellings
from tests.support.clock import ManualClock

from zerocron.core.exchange import Failure, Hop, Outcome, Request, Response
from zerocron.core.model import BODY_BYTES_MAX, Execution, JsonRule, RetryPolicy, SuccessRule
from zerocron.core.secret import Secret
from zerocron.engine.attempt import Attempt, Result, Started
from zerocron.engine.executor import Executor
from zerocron.engine.rendering import NotSent, render, secrets_named
from zerocron.metrics import Metrics

RUN = a_run(a_job())
CANARY = 'canary "5f/é+1'
MASK = "[secret KEY]"


def known(value: str = CANARY, *hosts: str, **others: str) -> dict[str, Secret]:
    return {"KEY": Secret("KEY", value, hosts)} | {name: Secret(name, text) for name, text in others.items()}


def rendered(secrets: Mapping[str, Secret] | None = None, **definition: Any) -> Request:
    return render(Attempt(RUN, a_definition(**definition)), known() if secrets is None else secrets)


def refusal(secrets: Mapping[str, Secret] | None = None, **definition: Any) -> NotSent:
    with pytest.raises(NotSent) as error:
        rendered(secrets, **definition)
    return error.value


# what is sent


def test_a_value_is_put_into_url_headers_and_body_as_each_can_hold_it() -> None:
    request = rendered(
        known('a b/c&"d'),
        url="https://example.com/${secrets.KEY}?k=${secrets.KEY}",
        headers=(("Authorization", "Bearer ${secrets.KEY}"), ("X-Plain", "1")),
        body='{"k": "${secrets.KEY}"}',
    )
    assert request.url == "https://example.com/a%20b%2Fc%26%22d?k=a%20b%2Fc%26%22d"
    assert dict(request.headers)["Authorization"] == 'Bearer a b/c&"d'
    assert json.loads(request.body or b"") == {"k": 'a b/c&"d'}
    assert request.secret_headers == {"authorization"}


@pytest.mark.parametrize(
    ("content_type", "body", "sent"),
    [
        (None, '{"k": "${secrets.KEY}"}', '{"k": "a\\"&b"}'),
        (None, "k=${secrets.KEY}", 'k=a"&b'),
        ("application/json", "${secrets.KEY}", 'a\\"&b'),
        ("text/plain", '{"k": "${secrets.KEY}"}', '{"k": "a"&b"}'),
        ("application/x-www-form-urlencoded", "k=${secrets.KEY}&l=1", "k=a%22%26b&l=1"),
    ],
)
def test_the_type_of_the_body_says_how(content_type: str | None, body: str, sent: str) -> None:
    headers = () if content_type is None else (("content-TYPE", content_type),)
    request = rendered(known('a"&b'), headers=headers, body=body)
    assert (request.body or b"").decode() == sent


def test_a_value_is_put_in_once() -> None:
    request = rendered(known("${secrets.OTHER}", OTHER="never sent"), body="${secrets.KEY}", url="https://h.example/")
    assert request.body == b"${secrets.OTHER}"


@given(st.sampled_from("\r\n\0\t\x7f\x1b☃"), st.text(max_size=5))
def test_a_header_takes_no_value_that_could_end_it(sign: str, around: str) -> None:
    value = f"{around}12345678{sign}X-Evil: 1"
    stopped = refusal(known(value), headers=(("X-Token", "${secrets.KEY}"),))
    assert stopped.kind == "secret_unusable"
    assert "The secret KEY does not fit into the header X-Token" in stopped.message
    assert "Evil" not in stopped.message


def test_what_becomes_too_long_is_not_sent() -> None:
    long = known("x" * 9_000)
    assert refusal(long, url="https://h.example/${secrets.KEY}").kind == "secret_unusable"
    assert refusal(long, headers=(("A", "${secrets.KEY}"),)).kind == "secret_unusable"
    body = "x" * (BODY_BYTES_MAX - 8_000) + "${secrets.KEY}"
    stopped = refusal(long, body=body)
    assert stopped.kind == "secret_unusable"
    assert "9,000" not in stopped.message


def test_an_unknown_secret_stops_the_request() -> None:
    assert refusal({}, body="${secrets.KEY}").kind == "secret_unknown"
    assert refusal(known(), url="https://${secrets.KEY}/").kind == "secret_unusable"


def test_a_bound_secret_goes_to_its_hosts_only() -> None:
    url = "https://API.example.com:8443/${secrets.KEY}"
    assert rendered(known(CANARY, "*.example.com", "other.test"), url=url).allowed_hosts == (
        ("*.example.com", "other.test"),
    )
    stopped = refusal(known(CANARY, "other.test"), url=url)
    assert stopped.kind == "secret_host_refused"
    assert "may not be sent to api.example.com" in stopped.message
    assert rendered(known(), url=url).allowed_hosts == ()


def test_only_what_names_a_secret_asks_for_one() -> None:
    assert secrets_named(a_definition(body="${secrets.lower} ${secret.A}")) == frozenset()
    named = a_definition(
        url="https://h.example/${secrets.A}", headers=(("X", "${secrets.B}"),), body="${secrets.C}${secrets.A}"
    )
    assert secrets_named(named) == {"A", "B", "C"}


def test_neither_a_request_nor_an_answer_shows_what_is_in_it() -> None:
    request = rendered(
        body="${secrets.KEY}", headers=(("A", "${secrets.KEY}"),), url="https://h.example/${secrets.KEY}"
    )
    response = Response(200, (("A", CANARY),), CANARY.encode(), 9, truncated=False, content_type=None)
    hop = Hop("GET", f"https://h.example/{CANARY}", 200, with_body=False)
    outcome = Outcome(response, None, TIMINGS, (hop,))
    assert "canary" not in repr([request, response, hop, outcome])


# what is kept


class Stage:
    """An executor with a scripted target, and the result it hands on."""

    def __init__(self, *outcomes: Outcome, secrets: Mapping[str, Secret] | None = None) -> None:
        self.requests: list[Request] = []
        self.asked: list[tuple[str, frozenset[str]]] = []
        self.results: list[Result] = []
        self._outcomes = list(outcomes)
        self._secrets = known() if secrets is None else secrets
        self.executor = Executor(
            load=self._load,
            send=self._send,
            settle=self._settle,
            clock=ManualClock(NOON),
            metrics=Metrics(),
            capacity=10,
            secrets=self._find,
        )

    async def _load(self, _run: object) -> Any:
        raise AssertionError("the definition is at hand")

    async def _send(self, request: Request) -> Outcome:
        self.requests.append(request)
        return self._outcomes.pop(0)

    async def _settle(self, result: Result) -> None:
        self.results.append(result)

    async def _find(self, team_id: str, names: frozenset[str]) -> Mapping[str, Secret]:
        self.asked.append((team_id, names))
        missing = names - self._secrets.keys()
        if missing:
            raise NotSent("secret_unknown", f"There is no secret {', '.join(sorted(missing))}.")
        return {name: self._secrets[name] for name in names}

    async def run(self, **definition: Any) -> Execution:
        self.executor.launch(Started(RUN, a_definition(**definition)))
        await self.executor.drain(10)
        [result] = self.results
        return result.execution


def an_answer(body: bytes, *headers: tuple[str, str], truncated: bool = False, kind: str | None = None) -> Outcome:
    response = Response(200, headers, body, len(body), truncated=truncated, content_type=kind)
    return Outcome(response, None, TIMINGS)


WITH_SECRET: dict[str, Any] = {
    "method": "POST",
    "url": "https://h.example/${secrets.KEY}",
    "headers": (("Authorization", "Bearer ${secrets.KEY}"),),
    "body": '{"k": "${secrets.KEY}"}',
}


def document_of(execution: Execution) -> str:
    """All that the finisher is given, unescaped."""
    return orjson.dumps(dataclasses.asdict(execution)).decode() + repr(execution)


async def test_what_is_kept_shows_where_a_secret_was_and_not_what() -> None:
    echo = an_answer(
        f"{CANARY} {json.dumps(CANARY)} {base64.b64encode(CANARY.encode()).decode()}".encode(), ("X-Echo", CANARY)
    )
    stage = Stage(echo)
    execution = await stage.run(**WITH_SECRET)
    assert CANARY in dict(stage.requests[0].headers)["Authorization"]
    assert stage.asked == [(RUN.team_id, frozenset(["KEY"]))]
    assert execution.status == "success"
    assert execution.request["url"] == f"https://h.example/{MASK}"
    assert ("Authorization", f"Bearer {MASK}") in execution.request["headers"]
    assert execution.request_body == f'{{"k": "{MASK}"}}'
    assert execution.response is not None
    assert execution.response["headers"] == (("X-Echo", MASK),)
    assert execution.response_body == f'{MASK} "{MASK}" {MASK}'
    assert "canary" not in document_of(execution)


async def test_a_binary_answer_is_masked_too() -> None:
    execution = await Stage(an_answer(b"\xff\xfe\0" + CANARY.encode() + b"\0\xff")).run(**WITH_SECRET)
    assert execution.response is not None
    assert execution.response["encoding"] == "base64"
    assert base64.b64decode(execution.response_body or "") == b"\xff\xfe\0" + MASK.encode() + b"\0\xff"


async def test_an_answer_that_was_cut_within_a_value() -> None:
    body = b"it is " + CANARY.encode()[:9]
    execution = await Stage(an_answer(body, truncated=True)).run(**WITH_SECRET)
    assert execution.response_body == f"it is {MASK}"
    failure = Failure("incomplete_body", "It ended early.", 200, an_answer(body).response)
    execution = await Stage(Outcome(None, failure, TIMINGS)).run(**WITH_SECRET)
    assert execution.response_body == f"it is {MASK}"


PIECES = [CANARY[start:end] for start in range(len(CANARY)) for end in range(start + 1, len(CANARY) + 1)]
QUESTIONS = st.one_of(
    st.builds(SuccessRule, body_contains=st.sampled_from(PIECES)),
    st.builds(
        SuccessRule, body_contains=st.sampled_from(PIECES).map(lambda piece: "x" * (79 - len(piece)) + piece + "…")
    ),
    st.builds(SuccessRule, body_not_contains=st.sampled_from(PIECES)),
    st.builds(SuccessRule, body_matches=st.integers(0, 200).map("^.{{0,{}}}$".format)),
    st.builds(SuccessRule, body_matches=st.sampled_from(PIECES).map(re.escape)),
    st.builds(SuccessRule, json=st.sampled_from(PIECES).map(lambda piece: (JsonRule("$.k", json.dumps(piece)),))),
    st.builds(SuccessRule, headers=st.sampled_from(PIECES).map(lambda piece: (("X-Echo", piece),))),
    st.builds(SuccessRule, headers=st.integers(0, 200).map(lambda size: (("Content-Length", str(size)),))),
)


def repeated(value: str, spelling: str) -> Outcome:
    """The answer of a target that knows nothing better than to repeat what it was sent."""
    body = (
        b"\xff" + value.encode() if spelling == "bytes" else spellings(value)[spelling].join(['{"k": "', '"}']).encode()
    )
    return an_answer(body, ("X-Echo", value), ("Content-Length", str(len(body))))


@pytest.mark.parametrize("spelling", ["bytes", *(name for name in spellings() if "base64" not in name)])
@given(rule=QUESTIONS)
async def test_no_rule_tells_one_value_from_another(spelling: str, rule: SuccessRule) -> None:
    """Else whoever may edit the job finds the value out, one run after the other: not a word of the record, and not
    the verdict, depends on it."""
    told = []
    for value in (CANARY, "another, and a longer one"):
        execution = await Stage(repeated(value, spelling), secrets=known(value)).run(**WITH_SECRET, success=rule)
        told.append(dataclasses.asdict(execution))
    assert told[0] == told[1]


async def test_a_rule_judges_what_history_shows() -> None:
    ok = await Stage(an_answer(CANARY.encode())).run(**WITH_SECRET, success=SuccessRule(body_contains=f"{MASK}"))
    assert ok.status == "success"
    no = await Stage(an_answer(CANARY.encode())).run(**WITH_SECRET, success=SuccessRule(body_contains="canary"))
    assert no.error_message == f"The body does not contain 'canary'; it begins with '{MASK}'."
    for padding in range(60, 90):
        body = "x" * padding + CANARY + "y" * 99
        broken = await Stage(an_answer(body.encode())).run(**WITH_SECRET, success=SuccessRule(body_contains="z"))
        assert broken.error_kind == "rule"
        assert "can" not in (broken.error_message or "").removeprefix("The body does not contain")


async def test_a_failure_tells_nothing_either() -> None:
    failure = Failure("redirect_refused", f"The target redirected to https://h.example/{CANARY}.", 302)
    hops = (Hop("GET", f"https://h.example/?{CANARY}", 302, with_body=False),)
    execution = await Stage(Outcome(None, failure, TIMINGS, hops)).run(**WITH_SECRET)
    assert execution.error_message == f"The target redirected to https://h.example/{MASK}."
    assert "canary" not in document_of(execution)


async def test_an_answer_without_a_body_has_none() -> None:
    execution = await Stage(an_answer(b"", ("X-Echo", CANARY))).run(**WITH_SECRET)
    assert execution.response is not None
    assert execution.response["headers"] == (("X-Echo", MASK),)
    assert not execution.response_body


async def test_masks_do_not_blow_up_what_is_kept() -> None:
    secrets = {"K" * 64: Secret("K" * 64, "abcdefgh")}
    body = b"abcdefgh " * 100_000
    execution = await Stage(an_answer(body), secrets=secrets).run(body="${secrets." + "K" * 64 + "}")
    assert len(execution.response_body or "") <= BODY_BYTES_MAX
    assert execution.response is not None
    assert execution.response["truncated"] is True
    assert "abcdefgh" not in (execution.response_body or "")


async def test_a_request_that_cannot_be_made_is_not_sent_and_says_why() -> None:
    stage = Stage(secrets={})
    execution = await stage.run(**WITH_SECRET, retry=RetryPolicy(3))
    assert stage.requests == []
    assert (execution.status, execution.error_kind) == ("error", "secret_unknown")
    assert execution.error_message == "There is no secret KEY."
    assert execution.request["url"] == WITH_SECRET["url"]
    assert execution.request_body == WITH_SECRET["body"]
    stage = Stage(secrets=known("line\r\nbreak"))
    execution = await stage.run(**WITH_SECRET)
    assert stage.requests == []
    assert execution.error_kind == "secret_unusable"
    assert "break" not in document_of(execution).replace("a line break", "")


async def test_a_job_without_placeholders_asks_for_nothing() -> None:
    stage = Stage(answered(200, CANARY.encode()))
    execution = await stage.run(body="plain", headers=(("X", "${secret.KEY}"),))
    assert stage.asked == []
    assert execution.response_body == CANARY


async def test_a_fault_of_ours_names_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    """The stack is logged, and no locals with it."""
    stage = Stage()  # it has no answer, which is an IndexError in the midst of the attempt
    execution = await stage.run(**WITH_SECRET)
    assert execution.error_kind == "internal"
    logged = capsys.readouterr().out
    assert "attempt_failed_inside" in logged
    assert "IndexError" in logged
    assert "canary" not in logged + document_of(execution)
