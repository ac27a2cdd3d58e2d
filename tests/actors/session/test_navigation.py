"""A move in the tree with a summary, between a real session and probes: when the leaf moves, and how it can end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.base import Down
from actors.mail import (
    Arm,
    BashFinished,
    BashRecorded,
    CancelCall,
    NoMoreCommands,
    ReplyEnded,
    Retire,
    Retired,
    SessionGone,
    Tick,
)
from actors.probe import Probe
from protocol.messages import AssistantMessage, BashExecutionMessage, TextContent, Usage
from tests.actors.session.test_session import BUSY, RETIRED, Bench

DONE = {"cancelled": False}
ABORTED = {"cancelled": True, "aborted": True}
MOVE_BUSY = "navigate_tree: Wait for the current response to finish before navigating the session tree."


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session of two prompts, the second of which has a reply; the tree is at its end."""
    bench = Bench(tmp_path)
    for text in ("one", "two"):
        bench.prompt(text)
        bench.reply()
    bench.writes()
    return bench


def entries(bench: Bench) -> Any:
    return bench.ask("get_entries")["entries"]


def leaf(bench: Bench) -> Any:
    return bench.ask("get_entries")["leafId"]


def first_reply(bench: Bench) -> str:
    return next(e["id"] for e in entries(bench) if e.get("message", {}).get("role") == "assistant")


def leave(bench: Bench, **options: Any) -> tuple[str, str]:
    """Goes back to the first reply with a summary; the leaf before, and the target."""
    before, target = leaf(bench), first_reply(bench)
    bench.writes()
    bench.send({"type": "navigate_tree", "targetId": target, "options": {"summarize": True, **options}})
    return before, target


def answer(bench: Bench, text: str = "it was nice", **fields: Any) -> None:
    blocks: list[Any] = [TextContent(text)] if text else []
    message = AssistantMessage(blocks, "scripted", "p", "m", Usage(output=9), fields.pop("stop", "stop"), 5, **fields)
    bench.tell(ReplyEnded(bench.requests[-1].call, message))


def response(bench: Bench) -> Any:
    (record,) = [record for record in bench.records() if record["type"] == "response"]
    return record.get("data", record.get("error"))


def clock(bench: Bench) -> Any:
    return bench.session.services.clock


def test_the_leaf_moves_when_the_summary_is_there(bench: Bench) -> None:
    before, target = leave(bench)
    assert bench.told() == []
    assert leaf(bench) == before
    answer(bench)
    assert response(bench) == DONE
    *_, last = entries(bench)
    assert (last["type"], last["parentId"], last["fromId"]) == ("branch_summary", target, target)
    assert last["summary"].endswith("it was nice")
    assert (last["details"], last["usage"]["output"]) == ({"readFiles": [], "modifiedFiles": []}, 9)
    assert leaf(bench) == last["id"]
    assert bench.roles() == ["user", "assistant", "branchSummary"]


def test_the_state_tells_that_a_summary_is_made(bench: Bench) -> None:
    leave(bench)
    state = bench.ask("get_state")
    assert (state["isStreaming"], state["isCompacting"]) == (False, True)
    assert state["compactionReason"] == "branchSummary"
    answer(bench)
    state = bench.ask("get_state")
    assert state["isCompacting"] is False and "compactionReason" not in state


def test_a_label_goes_to_the_summary(bench: Bench) -> None:
    leave(bench, label="tried")
    answer(bench)
    *_, made, label = entries(bench)
    assert (made["type"], label["targetId"], label["label"]) == ("branch_summary", made["id"], "tried")


def test_an_empty_branch_asks_nothing_and_its_label_goes_to_the_target(bench: Bench) -> None:
    bench.send({"type": "set_label", "entryId": leaf(bench), "label": "end"})
    target = entries(bench)[-1]["targetId"]
    bench.writes()
    bench.send({"type": "navigate_tree", "targetId": target, "options": {"summarize": True, "label": "here"}})
    assert response(bench) == DONE
    assert len(bench.requests) == 2
    last = entries(bench)[-1]
    assert (last["type"], last["targetId"], last["parentId"]) == ("label", target, target)


@pytest.mark.parametrize(("command", "first"), [("abort", "navigate"), ("abort_compaction", "abort")])
def test_both_aborts_end_a_summary_and_nothing_has_moved(bench: Bench, command: str, first: str) -> None:
    before, _ = leave(bench)
    bench.writes()
    bench.send(command)
    answers = {record["command"]: record for record in bench.records()}
    assert next(iter(answers)).startswith(first)
    assert answers["navigate_tree"]["data"] == ABORTED and answers[command]["success"]
    assert isinstance(bench.calls[-1].next(), CancelCall)
    answer(bench, "too late")
    assert leaf(bench) == before
    assert bench.roles() == ["user", "assistant", "user", "assistant"]


def test_an_abort_with_nothing_to_end_is_answered(bench: Bench) -> None:
    bench.send("abort_compaction", "abort")
    assert bench.told() == ["abort_compaction ok", "abort ok"]


def test_a_retry_is_told_and_its_wait_can_be_cancelled(bench: Bench) -> None:
    leave(bench)
    answer(bench, "", stop="error", error_message="529 overloaded")
    assert bench.told() == ["summarization_retry_scheduled"]
    arm = clock(bench).of(Arm)
    bench.tell(Tick(arm.key))
    assert bench.told() == ["summarization_retry_attempt_start"]
    answer(bench, "", stop="error", error_message="529 overloaded")
    bench.writes()
    bench.send("abort")
    assert bench.told() == ["summarization_retry_finished", "navigate_tree ok", "abort ok"]
    bench.tell(Tick(clock(bench).of(Arm).key))
    assert len(bench.requests) == 4


def test_a_model_that_fails_leaves_everything_as_it_was(bench: Bench) -> None:
    before, _ = leave(bench)
    answer(bench, "", stop="error", error_message="401 Unauthorized")
    assert response(bench) == "401 Unauthorized"
    assert leaf(bench) == before


def test_a_request_that_dies_is_an_error_of_the_command(bench: Bench) -> None:
    before, _ = leave(bench)
    bench.tell(Down(bench.requests[-1].call, "KeyError at x.py:1"))
    assert "KeyError at x.py:1" in response(bench)
    assert leaf(bench) == before


@pytest.mark.parametrize(("text", "moves"), [("it was nice", True), (" ", False)])
def test_a_shell_result_in_between_is_recorded_once_and_where_it_was_run(bench: Bench, text: str, moves: bool) -> None:
    before, _ = leave(bench, label="tried")
    shell: Probe[Any] = Probe()
    bench.tell(BashFinished(9, BashExecutionMessage("ls", "in between", False, False, 7, 0), shell))
    assert shell.drain() == [BashRecorded(None)], "it is answered at once"
    answer(bench, text)
    recorded = [entry for entry in entries(bench) if entry.get("message", {}).get("role") == "bashExecution"]
    assert [entry["parentId"] for entry in recorded] == [before]
    roles = [message["role"] for message in bench.ask("get_messages")["messages"]]
    assert roles == ["user", "assistant", *(["branchSummary"] if moves else ["user", "assistant", "bashExecution"])]


@pytest.mark.parametrize("options", [{"label": "here"}, {"label": "here", "summarize": True}])
def test_a_move_to_where_one_is_sets_the_label_and_nothing_else(bench: Bench, options: dict[str, Any]) -> None:
    target, said = leaf(bench), bench.roles()
    for wanted in ({"label": ""}, {"summarize": True}):
        bench.send({"type": "navigate_tree", "targetId": target, "options": wanted})
        assert leaf(bench) == target
    bench.writes()
    bench.send({"type": "navigate_tree", "targetId": target, "options": options})
    assert response(bench) == DONE
    last = entries(bench)[-1]
    assert (last["type"], last["targetId"], last["parentId"], last["label"]) == ("label", target, target, "here")
    assert len(bench.requests) == 2 and bench.roles() == said


def test_a_label_that_cannot_be_written_is_an_error_also_where_one_is(bench: Bench) -> None:
    target, path = leaf(bench), Path(str(bench.session.history.path))
    path.unlink()
    bench.writes()
    bench.send({"type": "navigate_tree", "targetId": target, "options": {"label": "here"}})
    told = f"Session file was removed or replaced: {path}"
    assert response(bench) == told and bench.complaints == [told]


def test_an_answer_without_text_is_no_summary(bench: Bench) -> None:
    before, _ = leave(bench)
    answer(bench, " \n")
    assert response(bench) == "The model answered without a summary of the branch"
    assert leaf(bench) == before


def test_a_model_that_may_not_be_used_is_not_asked(bench: Bench) -> None:
    bench.catalog.no_key = "No API key found for p."
    leave(bench)
    assert response(bench) == "No API key found for p."
    assert len(bench.requests) == 2


def test_without_a_model_there_is_no_summary(bench: Bench) -> None:
    bench.session.setting.model = None
    leave(bench)
    assert response(bench) == "No model available for summarization"


def test_a_summary_that_cannot_be_written_leaves_the_leaf_where_it_was(bench: Bench) -> None:
    before, _ = leave(bench)
    path = Path(str(bench.session.history.path))
    path.unlink()
    answer(bench)
    told = f"Session file was removed or replaced: {path}"
    assert response(bench) == told and bench.complaints == [told]
    assert bench.session.history.tree.leaf_id == before


def test_while_a_summary_is_made_prompts_and_moves_are_refused(bench: Bench) -> None:
    _, target = leave(bench)
    bench.send({"type": "prompt", "message": "x"}, {"type": "navigate_tree", "targetId": target})
    assert bench.told() == [BUSY, MOVE_BUSY]
    answer(bench)
    bench.writes()
    bench.prompt()
    assert bench.told()[0] == "prompt ok"


def test_a_session_that_lets_go_answers_the_command_first(bench: Bench) -> None:
    leave(bench)
    bench.tell(Retire())
    assert response(bench) == ABORTED
    assert bench.desk.of(Retired) == RETIRED
    bench.tell(NoMoreCommands())
    assert bench.desk.drain() == []
    answer(bench, "too late")
    assert [type(mail) for mail in bench.desk.drain()] == [SessionGone]
    assert bench.records() == []


def test_the_summary_is_part_of_what_models_see(bench: Bench) -> None:
    leave(bench)
    answer(bench)
    bench.prompt("and now?")
    texts = [message.content[0].text for message in bench.requests[-1].prompt.messages]
    assert texts[2].index("<summary>") < texts[2].index("it was nice") < texts[2].index("</summary>")
    assert texts[3] == "and now?"
