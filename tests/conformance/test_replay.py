"""Replaying: each line waits for its causes, ids of the recording become those of now, and what never comes is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from conformance.compare import compare
from conformance.player import Target
from conformance.profile import Profile
from conformance.recording import Line, Recording
from conformance.replay import Causes, Replayed, kind_of, replay, stand_ins, translated

SETTLED = Line("out", {"type": "agent_settled"})
AGENT = Path(__file__).with_name("small_agent.py")


def replayed(recording: Recording, fault: str = "", deadline: float = 10.0) -> Replayed:
    words = [sys.executable, "-I", "-S", str(AGENT), f"--break={fault}"]
    return replay(recording, Target(words, Profile("small"), deadline))


def recorded() -> Recording:
    """What the small agent says to two commands, recorded by replaying them once."""
    prompt = Line("in", {"id": "1", "type": "prompt", "message": "hi"})
    bash = Line("in", {"id": "2", "type": "bash", "command": "x"})
    out = [line for line in replayed(Recording(lines=(prompt, bash, Line("end", "stdin")))).lines if line.kind == "out"]
    at = out.index(SETTLED) + 1
    return Recording(lines=(prompt, *out[:at], bash, *out[at:], Line("end", "stdin")))


def test_a_recording_comes_again_as_it_was() -> None:
    recording = recorded()
    again = replayed(recording)
    assert again.problems == ()
    assert compare(recording.records, again.records) == []
    assert [line.kind for line in again.lines if line.kind != "out"] == ["in", "in", "end", "end", "exit"]


def test_a_line_waits_for_what_came_before_it() -> None:
    kinds = [
        line.value.get("id", "settled") for line in replayed(recorded()).lines if line.kind == "in" or line == SETTLED
    ]
    assert kinds == ["1", "settled", "2"]


def test_what_never_comes_is_told_once_and_the_replay_goes_on() -> None:
    lines = list(recorded().lines)
    at = next(index for index, line in enumerate(lines) if line.kind == "end")
    more = [Line("in", {"id": "3", "type": "get_state"}), Line("in", {"id": "4", "type": "get_state"})]
    again = replayed(Recording(lines=(*lines[:at], *more, *lines[at:])), fault="agent_settled", deadline=0.3)
    assert len(again.problems) == 1
    assert again.problems[0].endswith("there should be: agent_settled")
    assert {"3", "4"} <= {record.get("id") for record in again.records}


def test_a_program_that_ends_badly_is_told() -> None:
    assert replayed(recorded(), fault="exit-3").problems == ("exit code 3 after stdin was closed, 0 was due",)


def test_differences_are_found() -> None:
    recording = recorded()
    for fault in ("swapped-deltas", "lost-output", "double-message_end"):
        assert compare(recording.records, replayed(recording, fault, 0.3).records) != []


def test_causes_count_kinds_and_output() -> None:
    def delta(text: str) -> dict[str, Any]:
        return {"type": "bash_execution_update", "id": "b", "delta": text}

    wanted = Causes([{"type": "agent_end"}, {"type": "agent_end"}, delta("ab"), {"type": "message_update"}])
    assert str(wanted.lacking(Causes([{"type": "agent_end"}, delta("a")]))) == 'agent_end, output of "b"'
    assert not wanted.lacking(Causes([{"type": "agent_end"}, {"type": "agent_end"}, delta("a"), delta("b")]))
    assert not Causes([{"type": "x"}], ignore=["x"])


def test_a_response_is_known_by_its_id_and_a_message_by_its_role() -> None:
    assert kind_of({"type": "response", "id": 1}) != kind_of({"type": "response", "id": "1"})
    assert kind_of({"type": "message_end", "message": {"role": "user"}}) == ("message_end", "user")
    assert kind_of({"type": "tool_execution_update"}) is None


def test_an_id_of_the_recording_becomes_the_one_of_now() -> None:
    old = {"type": "response", "id": "f", "data": {"messages": [{"entryId": "a1", "text": "x"}]}}
    new = {"type": "response", "id": "f", "data": {"messages": [{"entryId": "b2", "text": "x"}]}}
    words = stand_ins([{"type": "response", "id": "lost"}, old], [new])
    assert words == {"a1": "b2"}
    assert translated({"id": "a1", "entryId": "a1", "more": ["a1"]}, words) == {
        "id": "a1",
        "entryId": "b2",
        "more": ["b2"],
    }
