"""Playing a case: a program that does it right passes, and each way to break the protocol is told by its rule."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.play import Played, play
from conformance.player import Target
from conformance.profile import Profile
from conformance.run_command import schema_check
from conformance.transcript import parse_case

AGENT = Path(__file__).with_name("small_agent.py")
HEADER = {
    "format": 1,
    "title": "a title",
    "level": "contract",
    "shows": {"file": "rpc-protocol.md", "heading": "bash", "says": "something"},
}
TALK = [
    {"send": [{"id": "1", "type": "get_state"}, {"id": "2", "type": "bash", "command": "echo out"}]},
    {"send": {"id": "3", "type": "prompt", "message": "hi"}},
    {"send": {"id": "4", "type": "nonsense"}},
    {"raw": "no json\n"},
]


def played(*lines: Any, fault: str = "", deadline: float = 10.0, header: dict[str, Any] | None = None) -> Played:
    text = "\n".join(json.dumps(line) for line in ({**HEADER, **(header or {})}, *lines))
    words = [sys.executable, "-I", "-S", str(AGENT), f"--break={fault}"]
    return play(parse_case(text, "x/y", "y.jsonl"), Target(words, Profile("small"), deadline))


def test_a_program_that_keeps_the_rules_passes() -> None:
    assert played(*TALK).faults == []


@pytest.mark.parametrize(
    ("fault", "rule", "told"),
    [
        ("silent-get_state", "answered", 'no response to "{\\"id\\": \\"1\\", \\"type\\": \\"get_state\\"}"'),
        ("double-response", "answered-once", "a second response"),
        ("wrong-id", "answered-once", "a response with an id that was not sent"),
        ("wrong-command", "command-named", "a response to get_state names another command"),
        ("no-success", "envelope", "a response whose success is no boolean"),
        ("errors-succeed", "envelope", "a success with an error"),
        ("wrong-type", "envelope", "a record without a type"),
        ("late-delta", "shell-deltas", "a delta after the response of its request"),
        ("lost-output", "shell-deltas", "the output of a request is not what its deltas said"),
        ("swapped-deltas", "messages", "the text of a message is not what its deltas said"),
        ("double-message_end", "messages", "message_end without its message_start"),
        ("message_end", "messages", "message_start inside of another message"),
        ("double-agent_end", "runs", "agent_end without agent_start"),
        ("turn_end", "runs", None),
        ("agent_start", "runs", "turn_start outside of a run"),
        ("late-event", "runs", "turn_end outside of a run"),
        ("double-agent_settled", "settled", "a second agent_settled"),
        ("agent_end", "settled", "agent_settled inside of a run"),
        ("cut-line", "process", "is not one JSON object"),
        ("banner", "process", "is not one JSON object"),
        ("exit-3", "process", "exit code 3 after stdin was closed, 0 was due"),
    ],
)
def test_each_way_to_break_the_protocol_is_told_by_its_rule(fault: str, rule: str, told: str | None) -> None:
    lines = [*TALK, {"send": {"id": "5", "type": "prompt", "message": "again"}}]
    faults = played(*lines, fault=fault, deadline=1.0).faults
    assert rule in [one.rule for one in faults]
    assert told is None or told in " | ".join(one.what for one in faults)


def test_a_line_that_is_not_as_the_schema_says_is_told() -> None:
    target = Target([sys.executable, "-I", "-S", str(AGENT)], Profile("small"), 10.0, schema_check("on"))
    lines = [HEADER, {"send": {"id": "1", "type": "get_state"}}]
    faults = play(parse_case("\n".join(map(json.dumps, lines)), "x/y", "y.jsonl"), target).faults
    assert [fault.rule for fault in faults] == ["schema"]
    assert "is required" in faults[0].what


def test_a_rule_can_be_waived() -> None:
    faults = played(*TALK, fault="exit-3", header={"waive": ["process"]}).faults
    assert faults == []


def only_fault(*lines: Any, fault: str = "", deadline: float = 0.5) -> str:
    """The text of the first fault."""
    return played(*lines, fault=fault, deadline=deadline).faults[0].text()


PROMPT_3 = {"send": {"id": "3", "type": "prompt", "message": "hi"}}
PROMPT = {"send": {"id": "1", "type": "prompt", "message": "hi"}}
SETTLED = {"expect": {"type": "agent_settled"}, "as": "done"}


def test_a_record_that_does_not_come_is_told_beside_the_nearest() -> None:
    wanted = {"expect": {"type": "message_end", "message": {"role": "assistant", "stopReason": "length"}}}
    text = only_fault(PROMPT, wanted)
    assert text.splitlines()[0].startswith("line 3: no record ")
    assert '  awaited  message.stopReason: "length"' in text
    assert '  came     message.stopReason: "stop"' in text


def test_a_response_that_is_another_fails_at_once() -> None:
    wanted = {"expect": {"type": "response", "id": "1", "success": False}}
    assert "(its response is another)" in only_fault(PROMPT, wanted, deadline=60)


def test_the_response_to_a_command_is_found_though_it_came_before_the_last_send() -> None:
    first, second = ({"send": {"id": id_, "type": "get_state"}} for id_ in "12")
    late = {"expect": {"type": "response", "id": "1"}}
    assert played(first, second, {"expect": {"type": "response", "id": "2"}}, PROMPT_3, late).faults == []


def test_of_two_commands_with_one_id_either_may_be_answered_first() -> None:
    lines = [{"send": {"id": "1", "type": "bash", "command": "x"}}, PROMPT]
    shapes = [{"expect": {"type": "response", "id": "1", "command": command}} for command in ("prompt", "bash")]
    assert played(*lines, *shapes).faults == []


def test_an_expectation_does_not_take_what_came_before_the_last_send() -> None:
    again = {"send": {"id": "2", "type": "get_state"}}
    assert played(PROMPT, SETTLED, again, {"expect": {"type": "agent_end"}}, deadline=0.3).faults != []
    assert played(PROMPT, SETTLED, again, {"expect": {"type": "agent_end"}, "since": "start"}).faults == []


def test_no_record_is_taken_twice() -> None:
    update = {"expect": {"type": "message_update"}}
    assert played(PROMPT, update, update).faults == []
    assert played(PROMPT, update, update, update, deadline=0.3).faults != []


def test_a_record_on_the_wrong_side_of_a_label() -> None:
    lines = [PROMPT, SETTLED, {"expect": {"type": "agent_end"}, "after": "done"}]
    assert "came on the wrong side of done" in only_fault(*lines)
    assert played(PROMPT, SETTLED, {"expect": {"type": "agent_end"}, "before": "done"}).faults == []


def test_a_tight_sequence_lets_nothing_else_come_between() -> None:
    ends = [{"type": "message_end", "message": {"role": "assistant"}}, {"type": "agent_end"}]
    assert played(PROMPT, {"sequence": ends}).faults == []
    assert "another record in the sequence" in only_fault(PROMPT, {"sequence": ends, "tight": True})
    assert played(PROMPT, {"sequence": ends, "tight": True, "ignore": [{"type": "turn_end"}]}).faults == []


def test_a_sequence_in_another_order_tells_what_it_waited_for() -> None:
    text = only_fault(PROMPT, {"sequence": [{"type": "agent_settled"}, {"type": "agent_end"}]})
    assert text.startswith('line 3: no record {"type": "agent_end"} (within 0.5 s)')


WHOLE = [
    ({"none": {"type": "turn_end"}}, "must not be there"),
    ({"count": {"type": "message_update"}, "is": 3}, "how many records"),
    ({"order": ["done", "start_"]}, "records in another order"),
    ({"requests": 1}, "how many requests reached the model"),
    ({"stderr": {"$contains": "x"}}, "stderr"),
    ({"deltas": "2", "is": "other"}, 'the deltas of "2"'),
]


@pytest.mark.parametrize(("line", "told"), WHOLE)
def test_what_does_not_hold_of_the_whole_is_told(line: dict[str, Any], told: str) -> None:
    start = {"expect": {"type": "agent_start"}, "as": "start_"}
    assert told in only_fault(PROMPT, start, SETTLED, line)


def test_what_holds_of_the_whole() -> None:
    lines = [
        PROMPT,
        {"expect": {"type": "agent_start"}, "as": "begun"},
        SETTLED,
        {"send": {"id": "2", "type": "bash", "command": "x"}},
        {"order": ["begun", "done"]},
        {"none": {"type": "bash_execution_update"}, "before": "done"},
        {"count": {"type": "message_update"}, "is": 2, "after": "begun", "before": "done"},
        {"deltas": "2", "is": "out\n", "channel": "stdout", "after": "done"},
        {"requests": 0},
        {"stderr": ""},
    ]
    assert played(*lines).faults == []


def test_files_are_looked_at_now_or_awaited() -> None:
    write = {"write": "cwd/a.txt", "content": ["one", {"two": 2}]}
    assert played(write, {"file": "cwd/a.txt", "is": 'one\n{"two": 2}\n'}).faults == []
    assert "no such file" in only_fault({"file": "cwd/b.txt"})
    assert "it exists" in only_fault(write, {"file": "cwd/a.txt", "exists": False})
    late = {"shell": "(sleep 0.1; echo x > late) > /dev/null 2>&1 &"}
    assert played(late, {"file": "cwd/late", "eventually": True, "is": "x\n"}).faults == []


def test_entries_of_a_session_file() -> None:
    header = {"type": "session", "id": "s"}
    write = {"write": "sessions/s.jsonl", "content": [header, {"type": "message", "id": "a"}, "torn {"]}
    good = {"entries": [{"type": "message"}, {"type": "(no JSON)"}], "header": {"type": "session"}}
    assert played(write, good).faults == []
    assert "the header of s.jsonl" in only_fault(write, {**good, "header": {"id": "other"}})
    assert "exactly one" in only_fault({"entries": []})


def test_the_kits_own_commands_print_and_fail() -> None:
    assert played({"shell": "echo hi", "is": "hi\n"}).faults == []
    assert "failed" in only_fault({"shell": "exit 1"})
    (fault,) = played({"shell": "echo why >&2; exit 3"}).faults
    assert fault.came == "exit code 3: why"
    (fault,) = played({"shell": "exit 3"}).faults
    assert fault.came == "exit code 3, and it printed nothing"


def test_an_exit_code_is_awaited() -> None:
    assert played({"close_stdin": True}, {"exit": 0}).faults == []
    assert "another exit code" in only_fault({"close_stdin": True}, {"exit": 0}, fault="exit-3")
    assert "the process did not end" in only_fault({"close_stdin": True}, {"exit": 0}, fault="deaf")


def test_a_kill_leaves_open_commands_unanswered_and_a_restart_goes_on() -> None:
    lines = [{"send": {"id": "1", "type": "get_state"}}, {"kill": True}, {"exit": -9}, {"restart": {}}]
    assert played(*lines, PROMPT, SETTLED, fault="silent-get_state").faults == []


def test_a_child_that_outlives_the_agent_is_told_and_ended() -> None:
    lines = [{"send": {"id": "1", "type": "get_state"}}, {"close_stdin": True}, {"exit": 0}, {"no_survivors": True}]
    assert "still live" in only_fault(*lines, fault="leaves-a-child")
    assert played(*lines).faults == []


def test_a_reader_that_stops_and_goes_on_loses_nothing() -> None:
    lines = [{"stop_reading": 10}, PROMPT, {"resume_reading": True}, SETTLED]
    assert played(*lines).faults == []


def test_a_closed_stdout_may_lose_responses() -> None:
    lines = [{"close_stdout": True}, {"send": {"id": "1", "type": "get_state"}}, {"exit": {"$any": True}}]
    faults = played(*lines, header={"waive": ["answered"]}).faults
    assert faults == []
