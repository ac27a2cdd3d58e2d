"""What a model is asked about a branch that is left, and what is stored of its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.session.branch_summary import PREAMBLE, STRUCTURE, stored_summary, summary_request, touched_files
from actors.session.tree import Entry
from protocol.commands import NavigateOptions
from protocol.entries import BranchSummaryDetails
from protocol.entry_head import read_entry
from protocol.model import Model, ModelCost

MODEL = Model("m", "M", "scripted", "p", "", False, ("text",), ModelCost(), 200_000, 100)
NO_FILES = BranchSummaryDetails([], [])


def entry(kind: str, **fields: Any) -> Entry:
    raw = json.dumps({"type": kind, "id": "e", "parentId": None, "timestamp": "2026-01-01T00:00:00.000Z", **fields})
    head = read_entry(raw.encode())
    assert head is not None
    return Entry(raw.encode(), head)


def message(role: str, content: Any, **fields: Any) -> Entry:
    return entry("message", message={"role": role, "content": content, "timestamp": 1, **fields})


def user(text: str) -> Entry:
    return message("user", [{"type": "text", "text": text}])


def reply(*content: dict[str, Any]) -> Entry:
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": {}}
    return message("assistant", list(content), api="a", provider="p", model="m", usage=usage, stopReason="toolUse")


def call(name: str, path: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": "1", "name": name, "arguments": {"path": path}}


def result(text: str) -> Entry:
    content = [{"type": "text", "text": text}]
    return message("toolResult", content, toolCallId="1", toolName="read", isError=False)


def summary(text: str, **fields: Any) -> Entry:
    return entry("branch_summary", summary=text, fromId="root", **fields)


def asked(*entries: Entry, window: int = 200_000, reserve: int = 16_384, **options: Any) -> str:
    model = Model("m", "M", "scripted", "p", "", False, ("text",), ModelCost(), window, 100)
    request = summary_request(entries, NavigateOptions(**options), model, "low", reserve)
    assert request is not None
    assert (request.model, request.level) == (model, "low")
    return request.text


def transcript(*entries: Entry, **more: Any) -> str:
    begin, end = "<conversation>\n", "\n</conversation>"
    text = asked(*entries, **more)
    assert text.startswith(begin)
    return text[len(begin) : text.index(end)]


# ---- what is asked ------------------------------------------------------------------------------------------------


def test_the_branch_is_a_transcript_before_the_instructions() -> None:
    text = asked(user("look"), reply(call("read", "a.py")), result("body"), user("thanks"))
    assert text == (
        '<conversation>\n[User]: look\n\n[Assistant tool calls]: read(path="a.py")\n\n[Tool result]: body\n\n'
        f"[User]: thanks\n</conversation>\n\n{STRUCTURE}"
    )


def test_a_branch_on_which_nothing_was_said_asks_nothing() -> None:
    silent = [entry("thinking_level_change", thinkingLevel="low"), entry("label", targetId="e"), user(" ")]
    assert summary_request(silent, NavigateOptions(), MODEL, "off", 16_384) is None
    assert summary_request([], NavigateOptions(), MODEL, "off", 16_384) is None


def test_compactions_are_left_out_and_what_they_replaced_is_told() -> None:
    compaction = entry(
        "compaction", summary="C", firstKeptEntryId=None, tokensBefore=1, details={"strategy": "verbatim-lines"}
    )
    assert transcript(user("old"), compaction, user("new")) == "[User]: old\n\n[User]: new"


def test_a_long_result_is_cut_and_says_by_how_much() -> None:
    told = transcript(result("x" * 2500))
    assert "x" * 2000 in told and "x" * 2001 not in told
    assert "500" in told.removeprefix("[Tool result]: ")


def test_own_instructions_are_a_focus_or_take_the_place_of_ours() -> None:
    assert asked(user("a"), custom_instructions=" the tests ").endswith("the tests")
    assert STRUCTURE in asked(user("a"), custom_instructions="the tests")
    replaced = asked(user("a"), custom_instructions="Only file names.", replace_instructions=True)
    assert replaced.endswith("</conversation>\n\nOnly file names.")
    assert STRUCTURE not in replaced


@pytest.mark.parametrize("own", [None, "", "  \n"])
def test_nothing_replaces_nothing(own: str | None) -> None:
    assert asked(user("a"), custom_instructions=own, replace_instructions=True).endswith(STRUCTURE)


# ---- how much of it -----------------------------------------------------------------------------------------------


def test_the_newest_that_fit_beside_the_reserve_are_told() -> None:
    long = "y" * 392  # with its header 100 tokens
    told = transcript(user("a" + long[1:]), user("b" + long[1:]), user("c" + long[1:]), window=1250, reserve=1000)
    assert told.count("[User]: ") == 2
    assert "[User]: by" in told and "[User]: cy" in told


def test_the_last_message_is_told_even_when_it_is_too_long() -> None:
    assert transcript(user("first"), user("z" * 9000), window=1250, reserve=1000) == "[User]: " + "z" * 9000


def test_a_reserve_that_fills_the_window_leaves_half_of_it() -> None:
    long = "y" * 392
    assert transcript(user(long), user(long), user(long), window=400, reserve=16_384).count("[User]: ") == 2


def test_an_earlier_summary_goes_along_while_there_is_some_room() -> None:
    long = "s" * 4000
    some = transcript(user("old"), summary(long), user("y" * 392), window=1250, reserve=1000)
    assert long in some and "old" not in some
    full = transcript(summary(long), user("y" * 992), window=1250, reserve=1000)
    assert long not in full


# ---- files --------------------------------------------------------------------------------------------------------


def test_files_come_from_the_calls_of_three_tools() -> None:
    entries = [
        reply(call("read", "b"), call("read", "a"), call("edit", "c"), call("write", "d"), call("grep", "no")),
        reply(call("read", "c"), call("read", 5), call("read", "")),
        user("read(path)"),
    ]
    assert touched_files(entries) == BranchSummaryDetails(["a", "b"], ["c", "d"])


def test_files_of_an_earlier_summary_count_unless_an_extension_made_it() -> None:
    details = {"readFiles": ["x", 5, "y"], "modifiedFiles": ["z"]}
    own = summary("S", details=details)
    foreign = summary("S", details={"readFiles": ["no"]}, fromHook=True)
    assert touched_files([own, foreign, reply(call("edit", "y"))]) == BranchSummaryDetails(["x"], ["y", "z"])


@pytest.mark.parametrize("details", [5, None, [], {"readFiles": 5, "modifiedFiles": {"a": 1}}, "text"])
def test_details_of_another_shape_are_passed_over(details: Any) -> None:
    assert touched_files([summary("S", details=details)]) == NO_FILES
    assert touched_files([summary("S")]) == NO_FILES


# ---- what is stored -----------------------------------------------------------------------------------------------


def test_the_stored_text_names_the_files() -> None:
    stored = stored_summary("\n## Goal\nx\n", BranchSummaryDetails(["a", "b"], ["c"]))
    files = "<read-files>\na\nb\n</read-files>\n\n<modified-files>\nc\n</modified-files>"
    assert stored == f"{PREAMBLE}## Goal\nx\n\n{files}"


def test_without_files_nothing_is_added() -> None:
    assert stored_summary("x", NO_FILES) == PREAMBLE + "x"
