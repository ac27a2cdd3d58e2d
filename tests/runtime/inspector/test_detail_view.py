"""One task in full: identity, metrics, what can be done, and a body that makes nothing up."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.inspector.detail_view import body, choices, head
from runtime.inspector.input_view import answer_of, input_lines
from runtime.inspector.records import Transcript
from runtime.inspector.transcript import Loaded
from tests.runtime.inspector.scripted_door import agent, entry, settled, task
from tests.runtime.inspector.views import board, detail, read, shown

ASKING = {"state": "inputNeeded", "attention": {"kind": "input-needed", "requestIds": ["q1"]}}
CHOICE = {"type": "single", "question": "Take", "options": ["this", "that"]}
QUESTION = {"requestId": "q1", "reason": "interview_request", "message": "Which one?", "questions": [CHOICE]}


def headed(record: dict[str, Any]) -> list[str]:
    return shown(head(board(record), read(record), 80, 0))


def bodied(record: dict[str, Any], *entries: dict[str, Any], **fields: Any) -> list[str]:
    import msgspec

    loaded = Loaded()
    if entries:
        page = {"entries": entries, "first": entries[0]["index"], "total": len(entries)}
        loaded.take_page(msgspec.convert(page, Transcript))
    return shown(body(read(record), detail(record, **fields), loaded, 80))


def part(lines: list[str], title: str) -> list[str]:
    """The lines below a title."""
    start = next(place for place, line in enumerate(lines) if line.strip().startswith(title)) + 1
    end = next((place for place in range(start, len(lines)) if not lines[place]), len(lines))
    return lines[start:end]


# ---- head and actions


def test_the_head_says_who_how_it_stands_and_what_was_measured() -> None:
    record = agent("t1", title="find it", metrics={"elapsedMs": 134_000, "toolCount": 1, "tokenCount": 34_211})
    assert headed(record) == [
        " Agent  scout · find it",
        " ● Running · in the background · fa/m · thinking medium",
        " 2m 14s · 1 tool · 34.2k tokens",
    ]


def test_a_recorded_zero_is_shown_and_what_was_not_measured_is_not() -> None:
    assert (
        headed(agent("t1", metrics={"elapsedMs": 0, "toolCount": 0, "tokenCount": 0}))[2] == " 0s · 0 tools · 0 tokens"
    )
    assert headed(agent("t1", metrics={"toolCount": 0}))[2] == " 0 tools"
    assert len(headed(task("t1"))) == 2
    output = {"ownerId": "o", "taskId": "t1", "artifactId": "a", "byteCount": "0"}
    assert headed(task("t1", output=output))[2] == " 0 bytes of output"


def test_a_task_without_model_or_level_has_none_made_up() -> None:
    record = {**agent("t1"), "observation": {"kind": "foreground", "waitId": "w"}}
    del record["model"], record["thinking"]
    assert headed(record)[1] == " ● Running · the session waits for it"


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"attention": {"kind": "no-recent-activity"}, "activityState": "needs_attention"}, "no recent activity"),
        ({"activityState": "needs_attention"}, "may need a look"),
        ({"activityState": "active_long_running"}, "at work for long"),
        ({**ASKING, "activityState": "needs_attention"}, ""),
        ({"activityState": "needs_attention", **settled("completed")}, ""),
    ],
)
def test_an_agent_that_may_need_a_look_has_a_hint(fields: dict[str, Any], hint: str) -> None:
    line = headed(agent("t1", **fields))[1]
    told = ("no recent activity", "may need a look", "at work for long")
    assert [each for each in told if each in line] == ([hint] if hint else [])


@pytest.mark.parametrize(
    ("record", "questions", "offered"),
    [
        (agent("t1"), [], ["Transcript", "Stop", "Back"]),
        (agent("t1", **ASKING), [QUESTION], ["Open question", "Transcript", "Stop", "Back"]),
        (agent("t1", **ASKING), [], ["Transcript", "Stop", "Back"]),
        (task("t1"), [], ["Output", "Stop", "Back"]),
        (task("t1", acceptsInput=True), [], ["Output", "Input", "Stop", "Back"]),
        (agent("t1", state="queued", execution={"kind": "queued"}), [], ["Transcript", "Stop", "Back"]),
        (task("t1", state="stopping", execution={"kind": "cancelling", "cause": "user"}), [], ["Output", "Back"]),
        (agent("t1", **settled("completed")), [], ["Transcript", "Back"]),
        (task("t1", **settled("failed", code="SpawnFailed", message="m")), [], ["Output", "Back"]),
        (task("t1", acceptsInput=True, **settled("cancelled", cause="user")), [], ["Output", "Back"]),
    ],
)
def test_only_what_can_be_done_is_offered(record: dict[str, Any], questions: list[Any], offered: list[str]) -> None:
    found = choices(board(record), read(record), detail(record, questions=questions))
    assert [choice.label for choice in found] == offered


def test_without_a_connection_there_is_nothing_to_stop() -> None:
    known = board(agent("t1", **ASKING))
    known.lose("gone", is_alive=False, now=0)
    record = agent("t1", **ASKING)
    found = choices(known, read(record), detail(record, questions=[QUESTION]))
    assert [choice.action for choice in found] == ["transcript", "back"]


# ---- agents


def test_an_agent_shows_its_tools_its_prompt_and_its_latest_words() -> None:
    lines = bodied(
        agent("t1"),
        entry(0, "user", "Look."),
        entry(1, "assistant", "I begin."),
        entry(2, "toolCall", "ls -la", tool="bash", toolCallId="a"),
        entry(3, "toolResult", "x", toolCallId="a"),
        entry(4, "toolCall", "src/gone.py", tool="read", toolCallId="b"),
        entry(5, "toolResult", "no such file", toolCallId="b", isError=True),
        entry(6, "toolCall", "token", tool="search", toolCallId="c"),
        entry(7, "assistant", "Nearly there."),
        prompt="Look.\nThen tell.",
        cwd="/work",
    )
    assert part(lines, "Activity") == ["  ✓ bash  ls -la", "  ✗ read  src/gone.py", "  ● search  token"]
    assert part(lines, "Prompt") == ["  Look.", "  Then tell."]
    assert part(lines, "Latest response") == ["  Nearly there."]
    assert part(lines, "About") == ["  Task t1", "  Folder /work"]


def test_without_a_transcript_the_current_action_and_the_tail_stand_for_it() -> None:
    lines = bodied(agent("t1", currentAction={"tool": "read", "text": "a.py"}), tail="The answer.")
    assert part(lines, "Activity") == ["  ● read  a.py"]
    assert part(lines, "Latest response") == ["  The answer."]


def test_a_long_answer_is_a_preview_and_says_so() -> None:
    lines = bodied(agent("t1"), tail="\n".join(f"line {number}" for number in range(40)))
    found = part(lines, "Latest response")
    assert (len(found), found[-1]) == (13, "  … more in the transcript")


def test_a_failed_agent_keeps_its_error_and_an_open_question_stands_first() -> None:
    failed = agent("t1", **settled("failed", code="AgentFailed", message="400: no such thing"))
    assert part(bodied(failed), "Error") == ["  AgentFailed: 400: no such thing"]
    asking = bodied(agent("t1", **ASKING), questions=[QUESTION])
    assert asking[:5] == [" It asks", "  Which one?", "  Take", "    1. this", "    2. that"]
    assert bodied(agent("t1", **ASKING))[:2] == [" It asks", "  A question is open."]


# ---- shells


def shell_output(count: int, *gaps: tuple[int, int]) -> dict[str, Any]:
    ranges = [{"start": str(start), "end": str(end)} for start, end in gaps]
    return {"ownerId": "o", "taskId": "t1", "artifactId": "a", "byteCount": str(count), "omittedRanges": ranges}


def test_a_shell_shows_its_command_its_exit_and_the_last_ten_lines() -> None:
    record = task("t1", **{**settled("completed", exitCode=3), "state": "failed"})
    tail = "\n".join(f"line {number}" for number in range(30))
    lines = bodied(record, command="make all", tail=tail, fullOutputPath="/tmp/log", timeoutSeconds=300)
    assert part(lines, "Result") == ["  Exit code 3"]
    assert part(lines, "Command") == ["  make all"]
    assert part(lines, "Output   last 10 lines") == [f"  line {number}" for number in range(20, 30)]
    assert part(lines, "All output") == ["  /tmp/log"]
    assert "  Time limit 300 s" in part(lines, "About")


def test_long_lines_count_as_the_lines_that_they_take() -> None:
    lines = part(bodied(task("t1"), tail="x" * 76 * 12), "Output   last 10 lines")
    assert (len(lines), {len(line) for line in lines}) == (10, {78})


def test_what_is_missing_of_the_output_is_labelled() -> None:
    lines = bodied(task("t1", output=shell_output(20_480, (100, 900))), tail="end")
    assert part(lines, "Output") == ["  [Output omitted: bytes 100-900]", "  [The last 8 KiB of 20,480 bytes]", "  end"]
    assert part(bodied(task("t1", output=shell_output(0)), tail=""), "Output") == ["  No output available"]
    assert part(bodied(task("t1")), "Output") == ["  No output available"]
    assert part(bodied(task("t1", output=shell_output(50))), "Output") == ["  The output is no longer kept"]


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (settled("failed", code="SpawnFailed", message="no such shell"), "It could not be started: no such shell"),
        (settled("failed", code="CommandKilled", message="signal 9"), "It was killed by a signal: signal 9"),
        (settled("cancelled", cause="user"), "It was stopped"),
        (settled("cancelled", cause="execution-timeout"), "It was stopped: its time was over"),
        (settled("completed", exitCode=0), "Exit code 0"),
    ],
)
def test_how_a_command_ended(result: dict[str, Any], told: str) -> None:
    assert part(bodied(task("t1", **result)), "Result") == [f"  {told}"]


def test_what_could_not_be_ended_is_named() -> None:
    stuck = {**settled("cancelled", cause="user"), "cleanup": {"kind": "failed", "resources": ["process group 7"]}}
    assert part(bodied(task("t1", **stuck)), "Cleanup") == ["  Not everything could be ended: process group 7"]


def test_escape_sequences_and_markup_in_what_a_task_says_are_only_text() -> None:
    nasty = "\x1b[2J[bold red]x[/]\x1b]0;t\x07"
    lines = bodied(task("t1", title=nasty), command=nasty, tail=nasty, fullOutputPath=nasty)
    assert [line for line in lines if not line.isprintable()] == []
    assert part(lines, "Command") == ["  [bold red]x[/]"]


# ---- input


def test_the_page_of_a_question_shows_it_and_a_number_chooses_an_option() -> None:
    record = agent("t1", **ASKING)
    found = detail(record, questions=[QUESTION])
    lines = shown(input_lines(read(record), found, 80, is_answer=True))
    asked = [" Which one?", " Take", "   1. this", "   2. that", " A number chooses one of them."]
    assert [line for line in lines if line] == asked
    typed = ("2", " 1 ", "3", "0", "neither", "²")
    assert [answer_of(found.questions[0], each) for each in typed] == ["that", "this", "3", "0", "neither", "²"]


def test_several_questions_have_one_answer_that_is_sent_as_typed() -> None:
    record = agent("t1", **ASKING)
    more = {"type": "multi", "question": "And?", "options": ["a", "b"]}
    found = detail(record, questions=[{**QUESTION, "questions": [CHOICE, more]}])
    lines = shown(input_lines(read(record), found, 80, is_answer=True))
    assert [line for line in lines if line][3:] == [
        *("   2. that", " And?", "   1. a", "   2. b", " One answer is for all of them.")
    ]
    assert answer_of(found.questions[0], "2") == "2"
    lone = detail(record, questions=[{**QUESTION, "questions": [{**CHOICE, "type": "multi"}]}]).questions[0]
    assert [answer_of(lone, each) for each in ("2, 1", "1", "1 3", "")] == ["that, this", "this", "1 3", ""]
    plain = {"requestId": "q1", "reason": "need_decision", "message": "Go on?"}
    assert shown(input_lines(read(record), detail(record, questions=[plain]), 80, is_answer=True)) == ["", " Go on?"]


def test_a_question_that_is_gone_is_said_to_be() -> None:
    record = agent("t1")
    assert shown(input_lines(read(record), detail(record), 80, is_answer=True)) == [" There is no open question."]
