"""What a subagent reads out of its child's records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.task.subagent.child_log import ChildLog
from protocol.tasks import Action, TaskCompleted, TaskFailed


def log(*records: dict[str, Any]) -> ChildLog:
    read = ChildLog("a/own", "high")
    for record in records:
        kind = record.pop("type")
        read.read(json.dumps({"type": kind, **record}, separators=(",", ":")).encode() + b"\n")
    return read


def reply(*texts: str, stop: str = "stop", **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    usage = {"input": 10, "output": 2, "totalTokens": 12}
    message = {"role": "assistant", "content": content, "stopReason": stop, "usage": usage, **more}
    return {"type": "message_end", "message": message}


def start(call: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_execution_start", "toolCallId": call, "toolName": name, "args": arguments}


def end(call: str) -> dict[str, Any]:
    return {"type": "tool_execution_end", "toolCallId": call, "toolName": "x", "result": {}, "isError": False}


SETTLED = {"type": "agent_settled"}


@pytest.mark.parametrize(
    ("replies", "text"),
    [([reply("one"), reply("two", "three")], "three"), ([reply("one"), reply("  ")], "one"), ([reply()], "")],
)
def test_the_answer_is_the_last_text_that_is_not_blank(replies: list[Any], text: str) -> None:
    assert log(*replies).text == text


def test_tools_tokens_and_what_runs_now_are_counted() -> None:
    read = log(start("a", "read", path="x.py"), start("b", "bash", command="make\ntest"), reply("y"))
    assert (read.tools, read.tokens, read.action) == (2, 12, Action("bash", "make test"))
    assert log(start("a", "read", path="x.py"), start("b", "bash"), end("b")).action == Action("read", "x.py")
    assert log(start("a", "read"), end("a")).action is None


def test_it_is_over_when_the_session_has_settled_and_the_last_reply_says_how() -> None:
    assert not log(reply("x")).is_over
    done = log(reply("x", stop="error", errorMessage="529"), reply("y"), SETTLED.copy())
    assert done.is_over and done.outcome == TaskCompleted()
    failed = log(reply("y"), reply(stop="error", errorMessage="no credit"), SETTLED.copy())
    assert failed.outcome == TaskFailed("AgentFailed", "no credit")
    assert failed.text == "y"
    assert log(SETTLED.copy()).outcome == TaskFailed("AgentFailed", "the agent ended without a reply")


def test_a_refused_prompt_is_its_end() -> None:
    read = log({"type": "response", "command": "prompt", "success": False, "error": "no key"})
    assert read.is_over and read.outcome == TaskFailed("AgentFailed", "no key")
    assert not log({"type": "response", "command": "prompt", "success": True}).is_over


def test_the_model_that_took_over_is_the_one_that_is_named() -> None:
    read = log({"type": "model_fallback_start", "to": "b/qwen:free:low", "reason": "", "attempt": 1})
    assert (read.model, read.level) == ("b/qwen:free", "low")


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"message_update","usage":{}}\n{"type":"message_update"}\n',
        b'{"type":"agent_end","messages":[{"role":"assistant"}]}\n',
        b'{"type":"turn_end"}\n',
        b'{"type":"message_end","message":7}\n',
        b"not json\n",
        b"",
    ],
)
def test_deltas_repetitions_and_what_is_no_record_are_passed_over(line: bytes) -> None:
    assert not ChildLog("a", "off").read(line)
