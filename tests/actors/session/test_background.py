"""The line about a session is written while it is idle, and whatever the session is asked to do ends that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from actors.mail import Arm, CancelCall, ReplyEnded, Retire, Retired, Tick
from protocol.messages import AssistantMessage, TextContent, Usage
from tests.actors.session.test_session import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session with the setting on, after its first turn: the line is being written."""
    bench = Bench(tmp_path)
    bench.session.setting.surroundings = replace(bench.session.setting.surroundings, session_summary=True)
    bench.prompt()
    bench.reply()
    return bench


def answer(bench: Bench, text: str = "About cats", **fields: Any) -> None:
    message = AssistantMessage(
        [TextContent(text)], "scripted", "p", "m", Usage(output=4), fields.pop("stop", "stop"), 5, **fields
    )
    bench.tell(ReplyEnded(bench.requests[-1].call, message))


def lines(bench: Bench) -> list[Any]:
    return [entry for entry in bench.ask("get_entries")["entries"] if entry["type"] == "session_summary"]


def is_cancelled(bench: Bench, place: int = 1) -> bool:
    return any(isinstance(mail, CancelCall) for mail in bench.calls[place].drain())


def test_it_is_asked_after_the_session_has_settled(bench: Bench) -> None:
    assert bench.told()[-1] == "agent_settled"
    assert len(bench.requests) == 2
    assert bench.requests[1].options.thinking_level == "off"
    state = bench.ask("get_state")
    assert (state["isStreaming"], state["isCompacting"]) == (False, False)


def test_the_line_is_an_entry_and_no_message(bench: Bench) -> None:
    (said,) = [e for e in bench.ask("get_entries")["entries"] if e.get("message", {}).get("role") == "assistant"]
    answer(bench)
    (line,) = lines(bench)
    assert (line["summary"], line["summarizedThroughId"], line["usage"]["output"]) == ("About cats", said["id"], 4)
    assert line["parentId"] == said["id"]
    assert bench.roles() == ["user", "assistant"]


def test_each_turn_gets_a_new_line(bench: Bench) -> None:
    answer(bench)
    bench.prompt()
    bench.reply()
    answer(bench, "About dogs")
    assert [line["summary"] for line in lines(bench)] == ["About cats", "About dogs"]


def test_it_is_off_unless_the_settings_say_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.prompt()
    bench.reply()
    assert len(bench.requests) == 1


def test_a_prompt_ends_it(bench: Bench) -> None:
    bench.prompt()
    assert is_cancelled(bench)
    assert len(bench.requests) == 3
    bench.tell(
        ReplyEnded(bench.requests[1].call, AssistantMessage([TextContent("x")], "a", "p", "m", Usage(), "stop", 5))
    )
    assert lines(bench) == []


@pytest.mark.parametrize("command", ["abort", "navigate_tree"])
def test_an_abort_and_a_move_end_it(bench: Bench, command: str) -> None:
    target = bench.ask("get_entries")["entries"][2]["id"]
    bench.send({"type": command, "targetId": target})
    assert is_cancelled(bench)


def test_letting_go_does_not_wait_for_it(bench: Bench) -> None:
    bench.tell(Retire())
    assert is_cancelled(bench)
    assert isinstance(bench.desk.of(Retired), Retired)


def test_failures_are_silent(bench: Bench) -> None:
    bench.writes()
    answer(bench, "", stop="error", error_message="529 overloaded")
    bench.tell(Tick(bench.session.services.clock.of(Arm).key))  # type: ignore[attr-defined]
    answer(bench, "half", stop="error", error_message="401")
    assert bench.told() == []
    assert lines(bench) == []
    assert bench.complaints == []


def test_an_empty_answer_is_no_line(bench: Bench) -> None:
    answer(bench, " \n")
    assert lines(bench) == []


def test_a_line_that_cannot_be_written_is_told_on_stderr(bench: Bench) -> None:
    path = Path(str(bench.session.history.path))
    path.unlink()
    answer(bench)
    assert bench.complaints == [f"Session file was removed or replaced: {path}"]


def test_without_a_credential_nothing_is_asked(bench: Bench) -> None:
    answer(bench)
    bench.prompt()
    bench.catalog.no_key = "No API key found for p."
    bench.reply()
    assert len(bench.requests) == 3
