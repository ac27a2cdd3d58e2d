"""Verdicts: passed, a fault, a feature that is not there, or our own mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.driver import Record
from conformance.fault import Fault
from conformance.play import Played
from conformance.transcript import Case, parse_case
from conformance.verdict import Verdict, is_final, judge, lacking, late_needs, settle

FAULT = Fault("something else came", 3)


def case(*needs: str, command: str = "bash") -> Case:
    header = {
        "format": 1,
        "title": "a title",
        "level": "contract",
        "shows": {"file": "rpc-protocol.md", "heading": "bash", "says": "something"},
        "needs": list(needs),
    }
    lines = [header, {"send": {"id": "1", "type": command}}]
    return parse_case("\n".join(map(json.dumps, lines)), "x/y", "y.jsonl")


def played(*records: dict[str, Any], stderr: str = "", faults: tuple[Fault, ...] = (FAULT,)) -> Played:
    return Played(list(faults), list(records), stderr, [], 0.1)


def outcome(verdict: Verdict) -> tuple[str, str]:
    return verdict.outcome, verdict.reason


def refusal(command: str, error: str) -> dict[str, Any]:
    return {"type": "response", "command": command, "success": False, "error": error}


def test_no_fault_is_passed() -> None:
    assert outcome(judge(case(), played(faults=()))) == ("passed", "")


def test_a_fault_is_failed_and_the_first_is_the_reason() -> None:
    assert outcome(judge(case(), played())) == ("failed", "something else came")


def test_a_command_that_is_unknown_is_missing_when_the_case_needs_it() -> None:
    unknown = refusal("bash", "Unknown command: bash")
    assert outcome(judge(case(), played(unknown))) == ("missing", "it answers: Unknown command: bash")
    assert judge(case(), played(unknown, faults=())).outcome == "missing"  # also where a refusal is awaited
    raw = played(unknown, faults=())._replace(sent=frozenset({"bash"}))
    assert judge(case(command="abort"), raw).outcome == "missing"  # sent as bytes
    assert judge(case(command="abort"), played(unknown)).outcome == "failed"
    assert judge(case(), played(refusal("bash", "no shell"))).outcome == "failed"
    assert (
        judge(case(command="frobnicate"), played(refusal("frobnicate", "Unknown command: frobnicate"), faults=()))[1]
        == "passed"
    )
    assert judge(case(), played({**unknown, "success": True})).outcome == "failed"


def test_a_flag_that_is_refused_at_the_start_is_missing() -> None:
    refused = played(stderr="error: unknown option '--name'")
    assert outcome(judge(case("flag:--name"), refused)) == ("missing", "it refuses the flag --name")
    assert judge(case("flag:--continue"), refused).outcome == "failed"
    assert judge(case("flag:--name"), played({"type": "x"}, stderr=refused.stderr)).outcome == "failed"


DELTA = {"type": "bash_execution_update", "delta": ""}
LEVEL = {"type": "response", "command": "set_thinking_level", "success": True}


@pytest.mark.parametrize(
    ("need", "without", "with_"),
    [
        ("event:agent_settled", {"type": "agent_end"}, {"type": "agent_settled"}),
        ("field:bash_execution_update.channel", DELTA, {**DELTA, "channel": "stdout"}),
        ("field:x.list.a", {"type": "x", "list": [{"b": 1}, 5]}, {"type": "x", "list": [{"b": 1}, {"a": None}]}),
        ("field:set_thinking_level.data.level", {**LEVEL, "data": {}}, {**LEVEL, "data": {"level": None}}),
    ],
)
def test_what_is_never_sent_in_any_case_is_missing(need: str, without: Record, with_: Record) -> None:
    one, other = case(need), case()
    wanted = late_needs([one, other])
    failed = judge(one, played(without, {"type": "response", "command": "bash", "success": True}), wanted)
    assert outcome(settle([failed])[0]) == ("missing", f"it never sends {need.partition(':')[2]}")
    assert [v.outcome for v in settle([failed, judge(other, played(with_, faults=()), wanted)])] == ["failed", "passed"]


def test_a_tool_that_the_model_is_never_offered_is_missing() -> None:
    one, other = case("tool:kill"), case()
    wanted = late_needs([one, other])
    failed = judge(one, played(ANSWER)._replace(tools=frozenset({"bash"})), wanted)
    assert outcome(settle([failed])[0]) == ("missing", "it never offers the tool kill")
    offers = judge(other, played(ANSWER, faults=())._replace(tools=frozenset({"kill"})), wanted)
    assert [each.outcome for each in settle([failed, offers])] == ["failed", "passed"]


ANSWER = {"type": "response", "command": "get_state", "success": True}


def test_a_command_that_is_unknown_in_another_case_is_missing_where_an_earlier_step_failed() -> None:
    early = judge(case(command="new_session"), played(ANSWER))
    heard = judge(case(command="new_session"), played(refusal("new_session", "Unknown command: new_session")))
    assert (early.outcome, is_final(early)) == ("failed", False)
    assert [outcome(each) for each in settle([early, heard])] == [
        ("missing", "it answers: Unknown command: new_session")
    ] * 2
    knows = judge(case(), played({**ANSWER, "command": "new_session"}, faults=()))
    assert settle([early, heard, knows])[0].outcome == "failed"  # it knows it somewhere


@pytest.mark.parametrize(
    ("records", "rule"),
    [([], ""), ([{"type": "agent_start"}], ""), *(([ANSWER], rule) for rule in ("process", "answered", "envelope"))],
)
def test_a_program_that_does_not_work_lacks_nothing(records: list[Record], rule: str) -> None:
    heard = judge(case(command="bash"), played(refusal("bash", "Unknown command: bash")))
    dead = judge(case("event:agent_settled"), played(*records, faults=(FAULT, Fault("x", rule=rule))))
    assert is_final(dead)
    assert settle([dead, heard])[0].outcome == "failed"


def test_a_verdict_is_final_when_no_other_case_can_change_it() -> None:
    answered = {**ANSWER, "command": "bash"}
    assert is_final(judge(case(), played(faults=())))
    assert is_final(judge(case(), played(answered)))
    assert not is_final(judge(case("event:x"), played(answered), ["event:x"]))
    assert is_final(judge(case("event:x"), played(answered, {"type": "x"}), ["event:x"]))


def test_a_feature_that_a_profile_says_is_lacking_is_missing_without_a_play() -> None:
    verdict = lacking(case(), {"bash": "it has no shell"})
    assert verdict is not None
    assert outcome(verdict) == ("missing", "bash: it has no shell")
    assert lacking(case(), {"abort": "no"}) is None
