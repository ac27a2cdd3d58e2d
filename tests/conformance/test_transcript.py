"""The reader of cases: a good one is read whole, a bad one is refused with file, line, value and what is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.run import shipped_folder
from conformance.transcript import Case, CaseError, parse_case, read_cases

HEADER: dict[str, Any] = {
    "format": 1,
    "title": "a title",
    "level": "contract",
    "shows": {"file": "rpc-protocol.md", "heading": "bash", "says": "something"},
}


def parse(*lines: Any, header: dict[str, Any] | None = None) -> Case:
    rows = [header or HEADER, *lines]
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    return parse_case(text, "bash/x", "x.jsonl")


def refusal(*lines: Any, header: dict[str, Any] | None = None) -> str:
    with pytest.raises(CaseError) as refused:
        parse(*lines, header=header)
    return str(refused.value)


SEND = {"send": {"id": "1", "type": "get_state"}}


def test_a_case_is_read_whole() -> None:
    case = parse(
        {"reply": "hello"},
        "",
        {"send": [{"type": "bash", "command": "ls"}, {"type": "nonsense"}]},
        {"expect": {"type": "response", "data": {"x": {"$bind": "x"}}}, "as": "answer", "deadline": 30},
        {"none": {"id": "{{x}}"}, "after": "answer"},
        header={**HEADER, "needs": ["event:agent_settled"], "start": {"files": {"cwd/a": "text"}}, "waive": ["runs"]},
    )
    assert (case.name, case.level, case.replies, case.waive) == ("bash/x", "contract", ("hello",), ("runs",))
    assert case.needs == ("event:agent_settled", "bash")  # a command that the protocol does not know is no need
    assert [(step.line, step.verb) for step in case.steps] == [(4, "send"), (5, "expect"), (6, "none")]
    assert case.steps[1].options == {"as": "answer", "deadline": 30}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 2}, "x.jsonl:1: the header: format is 2; allowed is 1"),
        ({"level": "must"}, 'level is "must"; allowed is one of contract, reference, stricter'),
        ({"tittle": "x"}, "no field 'tittle'; allowed are format, title"),
        ({"needs": "bash"}, 'needs is "bash"; allowed is a list of strings'),
        ({"shows": {"file": "a"}}, "shows lacks heading, says"),
        ({"start": {"file": {}}}, "start has no field 'file'"),
        ({"start": {"files": {"/etc/x": "a"}}}, "begin with one of home, agent, cwd, sessions"),
        ({"start": {"files": {"cwd/../../x": "a"}}}, "begin with one of home, agent, cwd, sessions and have no .."),
        ({"start": {"files": {"cwd": "a"}}}, "begin with one of home, agent, cwd, sessions"),
        ({"start": {"files": {"cwd/a": {"hex": "zz"}}}}, "as content a string"),
        ({"start": {"files": {"cwd/a": {"$times": ["x", 3]}}}}, "as content a string"),
        ({"start": {"env": {"A": 1}}}, "an object of strings, or null"),
        ({"waive": ["nope"]}, 'x.jsonl:1: the header: waive is ["nope"]; allowed is a list of answered, answered-once'),
        ({"start": {"args": ["{{nope}}"]}}, "the name 'nope' is used before it is bound"),
    ],
)
def test_a_header_is_refused_by_its_field(change: dict[str, Any], told: str) -> None:
    assert told in refusal(SEND, header={**HEADER, **change})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "x.jsonl:2: not JSON"),
        ("[1]", "a line is a JSON object, not [1]"),
        ({"sent": {}}, "a step has exactly one verb, not sent; there are send, raw"),
        ({"send": {}, "expect": {}}, "exactly one verb, not send, expect"),
        ({"send": 5}, "the step send: send is 5; allowed is a command or a list of commands"),
        ({**SEND, "as": "x"}, "the step send has no field 'as'; allowed are send, repeat"),
        ({"expect": {"type": {"$tpye": 1}}}, "$tpye: no such matcher"),
        ({"expect": "agent_end"}, "the shape of a record"),
        ({"count": {"type": "x"}}, "the step count lacks is"),
        ({"signal": "TREM"}, "a signal such as TERM"),
        ({"expect": {"id": "{{x}}"}}, "the name 'x' is used before it is bound; known are agent, cwd"),
        ({"send": {"type": "prompt", "message": "{{n}}"}}, "the name 'n'"),
        ({"expect": {"type": "x"}, "after": "nobody"}, "no earlier line has the label 'nobody'; there are start"),
        ({"order": ["a", "b"]}, "no line has the label 'a'"),
        ({"raw": {"hex": 5}}, "allowed is a string"),
        ({"sequence": [{"many": "x"}]}, "the shape of a record"),
        ({"raw": {"hex": "zz"}}, 'x.jsonl:2: the step raw: raw is {"hex": "zz"}; allowed is a string'),
        ({"open": "nogate"}, "x.jsonl:2: no reply has the gate 'nogate'"),
        ({"reached": "nogate"}, "no reply has the gate 'nogate'"),
        ({"send": {"type": "x", "message": {"$times": ["x", 3]}}}, "the step send: $times needs [count, text]"),
        ({"expect": {"type": {"$times": [True, "x"]}}}, "needs [count, text]"),
        ({"let": {"x": {"$ref": 5}}}, "the step let: $ref needs a name, not 5"),
        ({"write": "cwd/../../evil", "content": ""}, "allowed is a path below one of home, agent, cwd, sessions"),
        ({"write": "/etc/evil", "content": ""}, "allowed is a path below one of"),
        ({"write": "cwd/a", "content": {"hex": "0"}}, "as content a string, a list of lines"),
        ({"write": "cwd/a", "content": 5}, "as content a string, a list of lines"),
        ('{"let": {"x": ' + "[" * 3000 + "]" * 3000 + "}}", "x.jsonl:2: it is nested too deep"),
    ],
)
def test_a_step_is_refused_by_its_line(line: Any, told: str) -> None:
    assert told in refusal(line)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ({"txet": "x"}, "x.jsonl:2: a reply has no field 'txet'"),
        ({"error": "no"}, 'x.jsonl:2: error is "no"; allowed is a status such as 529'),
        ({"parts": 5}, "parts is 5; allowed is a list of parts"),
        ({"text": [5]}, "a step of a stream needs an object, not 5"),
        ({"text": "x", "usage": {"input": "x"}}, 'usage: input is "x"; allowed is a whole number'),
        ({"raw": [{"hex": "zz"}]}, 'hex is "zz"; allowed are pairs of hexadecimal digits'),
        ({"text": "x", "when": {"$nope": 1}}, "when: $nope: no such matcher"),
        ({"text": {"$times": ["x", 3]}}, "a reply: $times needs [count, text]"),
        ({"text": "x", "asked": {"$nope": 1}}, "asked: $nope: no such matcher"),
        ({"text": "x", "times": 0}, "times is 0; allowed is a whole number from 1 on"),
        ({"text": "x", "times": True}, "times is true; allowed is a whole number from 1 on"),
        ("{{nope}} ", "x.jsonl:2: a reply: no step binds the name 'nope'; known are agent, cwd"),
        ({"text": "x", "asked": {"last": "{{nope}}"}}, "no step binds the name 'nope'"),
    ],
)
def test_a_reply_is_refused_by_its_line(reply: Any, told: str) -> None:
    assert told in refusal({"reply": reply}, SEND)


def test_a_reply_may_say_what_a_step_below_it_binds() -> None:
    case = parse({"reply": "{{x}} of {{pid}}"}, SEND, {"expect": {"type": "x", "id": {"$bind": "x"}}})
    assert case.replies == ("{{x}} of {{pid}}",)


def test_a_gate_of_a_reply_can_be_opened() -> None:
    case = parse({"reply": {"text": ["a", {"gate": "held"}]}}, SEND, {"reached": "held"}, {"open": "held"})
    assert [step.verb for step in case.steps] == ["send", "reached", "open"]


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(json.dumps(HEADER).encode() + b'\n{"note": "\xff"}\n')
    with pytest.raises(CaseError, match=r"x\.jsonl:2: not UTF-8"):
        read_cases(tmp_path)


def test_a_label_is_given_once() -> None:
    lines = [{"expect": {"type": "a"}, "as": "one"}, {"sequence": [{"expect": {"type": "b"}, "as": "one"}]}]
    assert refusal(*lines) == "x.jsonl:3: the label 'one' is taken by an earlier line"


def test_an_expectation_looks_only_at_labels_of_earlier_lines() -> None:
    one = {"expect": {"type": "a"}, "as": "one"}
    told = "no earlier line has the label 'one'"
    assert told in refusal({"expect": {"type": "b"}, "before": "one"}, one)
    assert told in refusal({"expect": {"type": "b"}, "as": "x", "since": "one"}, one)
    parse(one, {"expect": {"type": "b"}, "after": ["one", "start"]})
    parse({"none": {"type": "b"}, "after": "one"}, one)


def test_a_reply_stands_above_the_steps() -> None:
    assert "a reply stands above the first step" in refusal(SEND, {"reply": "late"})


def test_a_case_without_steps_or_lines_is_refused() -> None:
    assert "the case has no steps" in refusal({"reply": "x"})
    with pytest.raises(CaseError, match="the file is empty"):
        parse_case("\n\n", "x", "x.jsonl")


def test_the_shipped_cases_read_and_their_titles_are_their_own() -> None:
    cases = read_cases(shipped_folder())
    titles = [(case.name.partition("/")[0], case.title) for case in cases]
    assert len(cases) >= 18
    assert sorted(title for title in titles if titles.count(title) > 1) == []
    assert sorted({case.name for case in cases if case.name.count("/") != 1}) == []


def test_every_verb_and_option_is_told_in_the_document() -> None:
    from conformance.matchers import MATCHERS
    from conformance.rules import RULES
    from conformance.verbs import VERBS

    root = Path(__file__).resolve().parents[2]
    text = (root / "docs" / "conformance" / "transcript.md").read_text(encoding="utf-8")
    words = [f'"{verb}"' for verb in VERBS] + [f'"{name}"' for name in MATCHERS] + [f"`{rule}`" for rule in RULES]
    options = {option for verb in VERBS.values() for option in verb.options}
    assert [word for word in words if word not in text] == []
    assert sorted(option for option in options if f'"{option}"' not in text and f"`{option}`" not in text) == []
