"""What the program says is what the inspector reads: types of the wire, read by those of the inspector."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from protocol import events, inspector, responses, tasks
from protocol.codec import encode
from runtime.inspector import records
from runtime.inspector.records import read_data, read_record
from tests.runtime.inspector.scripted_door import agent
from tests.runtime.inspector.views import read

FACTS: dict[str, Any] = {
    "session_id": "s",
    "cwd": "/w",
    "session_name": "n",
    "session_file": "/f",
    "model": "p/m",
    "thinking_level": "high",
}
SAID = tasks.TranscriptEntry(3, "toolResult", "text", tool="bash", tool_call_id="c", is_error=True, timestamp=5)
ASKED = tasks.InterviewQuestion("single", "Which?", id="i", options=("a", "b"))
QUESTION = tasks.TaskQuestion("q", "interview_request", "Choose.", (ASKED,))
PAGE = tasks.Transcript([Raw(encode(SAID))], first=3, total=4, missing=1, live=SAID)


def same(told: Any, got: Any) -> None:
    """All that was told is in what was read."""
    sent, read_back = msgspec.to_builtins(told), msgspec.to_builtins(got)
    assert {name: read_back.get(name) for name in sent} == sent


@pytest.mark.parametrize(
    "told",
    [
        inspector.InspectorHello(version=1, pid=7, **FACTS),
        inspector.InspectorHello(version=1, pid=7, session_id="s", cwd="/w"),
        inspector.InspectorSession(**FACTS),
        events.TaskUpdate(read(agent("t1"))),
    ],
)
def test_records(told: Any) -> None:
    same(told, read_record(encode(told)))


def test_changes_of_a_transcript() -> None:
    got = read_record(encode(events.TaskTranscript("t1", 3, [Raw(encode(SAID))], live=SAID)))
    assert isinstance(got, records.TaskTranscript)
    assert (got.task_id, got.first) == ("t1", 3)
    same(SAID, got.entries[0])
    same(SAID, got.live)


def test_details() -> None:
    told = responses.TaskDetail(
        read(agent("t1")), "c", "p", "/w", 300, tail="t", full_output_path="/f", questions=[QUESTION], transcript=PAGE
    )
    response = read_record(b'{"type":"response","success":true,"data":' + encode(told) + b"}")
    assert isinstance(response, records.Response)
    got = read_data(response, records.Detail)
    assert (got.command, got.prompt, got.cwd, got.timeout_seconds) == ("c", "p", "/w", 300)
    assert (got.tail, got.full_output_path, got.task) == ("t", "/f", told.task)
    assert (got.questions[0].request_id, got.questions[0].questions[0].options) == ("q", ("a", "b"))
    assert got.transcript and (got.transcript.first, got.transcript.total, got.transcript.missing) == (3, 4, 1)
    same(SAID, got.transcript.entries[0])
    same(SAID, got.transcript.live)
