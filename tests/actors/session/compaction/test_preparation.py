"""What a compaction works on: region and tail, the focus, and what an earlier boundary leaves to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.compaction.parameters import GENERIC_QUERY, CompactionSettings, ModelBudget, Wish
from actors.session.compaction.preparation import Interrupted, Preparation, prepare
from actors.session.context import context_message
from actors.session.tokens import utf16_length
from actors.session.transcript import compacted, retained
from actors.session.tree import Entry
from protocol.entry_head import read_entry
from protocol.messages import TextContent, ToolResultMessage
from protocol.model import Model, ModelCost

TIME = "2026-02-01T10:00:05.000Z"
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def entry(kind: str, entry_id: str, **fields: Any) -> Entry:
    raw = json.dumps({"type": kind, "id": entry_id, "parentId": None, "timestamp": TIME, **fields}).encode()
    head = read_entry(raw)
    assert head is not None
    return Entry(raw, head)


def message(entry_id: str, role: str, content: Any, **fields: Any) -> Entry:
    stored = {"role": role, "content": content, "timestamp": 5, **fields}
    return entry("message", entry_id, message=stored)


def user(entry_id: str, text: str) -> Entry:
    return message(entry_id, "user", [{"type": "text", "text": text}])


def assistant(entry_id: str, *content: Any, stop: str = "stop", **usage: int) -> Entry:
    names = {"api": "x-api", "provider": "x", "model": "m-1", "usage": usage, "stopReason": stop}
    blocks = [block if isinstance(block, dict) else {"type": "text", "text": block} for block in content]
    return message(entry_id, "assistant", blocks, **names)


def result(entry_id: str, *content: Any) -> Entry:
    blocks = [block if isinstance(block, dict) else {"type": "text", "text": block} for block in content]
    return message(entry_id, "toolResult", blocks, toolCallId="t", toolName="read", isError=False)


def boundary(entry_id: str, summary: str, kept: str | None, **more: Any) -> Entry:
    details = {"strategy": "verbatim-lines", **more}
    return entry("compaction", entry_id, summary=summary, firstKeptEntryId=kept, tokensBefore=1, details=details)


def prepared(
    *path: Entry, recent: int = 0, query: str | None = None, dropped: str = "", again: str | None = None
) -> Preparation:
    """`dropped` are ids of one letter each."""
    found = prepare(path, Wish(0.5, recent, query), Interrupted(frozenset(dropped), again))
    assert found is not None
    return found


def text_of(preparation: Preparation) -> str:
    return "\n".join(preparation.region.lines)


def test_every_kind_of_message_in_the_grammar_of_the_transcript() -> None:
    call = {"type": "toolCall", "id": "t", "name": "read", "arguments": {"path": "a.ts", "n": 1, "o": {"k": "\u00e9"}}}
    path = (
        user("a", "hello\nworld"),
        assistant("b", call, {"type": "thinking", "thinking": "hm"}, "ok", "two", stop="toolUse"),
        result("c", "T1", IMAGE, "T2"),
        result("d"),
        message("e", "user", [IMAGE]),
    )
    assert text_of(prepared(*path)) == (
        "[User]: hello\nworld\n\n[Assistant thinking]: hm\n\n[Assistant]: ok\ntwo\n\n"
        '[Assistant tool calls]: read(path="a.ts", n=1, o={"k":"\u00e9"})\n\n'
        "[Tool result]: T1\n[image]\nT2\n\n[User]: [image]"
    )


def test_a_long_result_is_cut_by_utf16_units_and_says_how_much_is_gone() -> None:
    text = text_of(prepared(result("a", "x" * 15_999 + "\U0001f600" + "y" * 10)))
    assert text == "[Tool result]: " + "x" * 15_999 + "\n\n[12 more characters were cut]"
    whole = "x" * 15_998 + "\U0001f600"
    assert text_of(prepared(result("a", whole))) == "[Tool result]: " + whole


@given(st.text("x\U0001f600", max_size=40), st.integers(0, 60))
def test_a_cut_result_counts_every_unit_that_is_gone(text: str, units: int) -> None:
    (line, *note) = compacted([ToolResultMessage("t", "read", [TextContent(text)], False, 1)], units).split("\n\n")
    gone = utf16_length(text) - utf16_length(line.removeprefix("[Tool result]: "))
    assert note == ([f"[{gone} more characters were cut]"] if utf16_length(text) > units else [])


def test_white_space_between_words_is_kept_and_nothing_else_is_no_section() -> None:
    blocks = [{"type": "text", "text": text} for text in ("one", "\n", "two", " ")]
    custom = entry("custom_message", "c", customType="n", content=blocks, display=True)
    path = (message("a", "user", blocks), assistant("b", "one", " ", "two"), custom, result("d", "one", "\n", "two"))
    assert text_of(prepared(*path)) == (
        "[User]: one\ntwo \n\n[Assistant]: one\n \ntwo\n\n[User]: one\ntwo \n\n[Tool result]: one\ntwo"
    )
    stored = context_message(path[0])
    assert stored is not None
    tail = "".join(piece for piece in retained([stored.message()]) if isinstance(piece, str))
    assert tail == "[User]: one\ntwo "
    assert prepare((message("a", "user", blocks[1:2]), assistant("b", " ", "\n")), Wish(0.5, 0, None)) is None


def test_one_line_feed_at_the_end_of_a_section_is_not_shown() -> None:
    assert text_of(prepared(user("a", "one\n"), user("b", "two\n\n"))) == "[User]: one\n\n[User]: two\n"
    images = message("c", "user", [IMAGE, IMAGE, {"type": "text", "text": "t\n"}, IMAGE])
    assert text_of(prepared(images)) == "[User]: [image]\n[image]\nt\n[image]"


@pytest.mark.parametrize(("recent", "kept"), [(0, None), (1, "f"), (2, "e"), (3, "d"), (4, "a"), (9, "a")])
def test_the_tail_counts_visible_messages_wherever_they_stand(recent: int, kept: str | None) -> None:
    path = (
        user("a", "one"),
        user("b", " "),
        entry("custom_message", "c", customType="n", content="no", display=True, excludeFromContext=True),
        assistant("d", "failed", stop="error"),
        entry("label", "l", targetId="a", label="x"),
        result("e", "orphan"),
        entry("branch_summary", "f", summary="was there", fromId="a"),
    )
    found = prepare(path, Wish(0.5, recent, None))
    assert (found.first_kept if found else "a") == kept
    assert (found is None) == (kept == "a")
    if recent == 2:
        assert found is not None
        assert text_of(found) == "[User]: one\n\n[Assistant]: failed"
        assert found.tail_tokens > 0


def test_an_earlier_boundary_gives_its_text_and_its_tail_to_the_new_region() -> None:
    old = (user("a", "old"), user("b", "kept"), boundary("c", "[User]: gone\n(filtered 4 lines)", "b"))
    found = prepared(*old, user("d", "new"))
    assert text_of(found) == "[User]: gone\n(filtered 4 lines)\n[User]: kept\n\n[User]: new"
    assert found.region.markers == {2: 4}
    assert prepared(*old, user("d", "new"), recent=2).first_kept == "b"
    lost = (*old[:2], boundary("c", "S", "nowhere"), user("d", "new"))
    assert text_of(prepared(*lost)) == "S\n[User]: new"
    empty = (*old[:2], boundary("c", "", None), user("d", "new"))
    assert text_of(prepared(*empty)) == "[User]: new"


@pytest.mark.parametrize("recent", [0, 1, 2, 3])
@pytest.mark.parametrize("failures", ["", "d", "de"])
def test_the_prompt_that_runs_again_is_kept_and_no_reply_that_was_asked_for_again_is(
    recent: int, failures: str
) -> None:
    failed = [assistant(each, "partial", stop="error") for each in (*failures, "z")]
    path = (user("a", "old"), assistant("b", "fine"), user("c", "do the thing"), *failed)
    found = prepared(*path, recent=recent, dropped=failures, again="z")
    assert found.first_kept == ("b" if recent == 3 else "c")
    assert found.retried == (*failures, "z")
    assert "partial" not in text_of(found) and len(found.tail) == (2 if recent == 3 else 1)
    answered = prepared(*path, recent=0, dropped=failures)
    assert text_of(answered).count("partial") == 1, "a failure that stands is part of the conversation"


def test_of_a_turn_that_runs_again_more_than_half_of_the_context_is_not_kept() -> None:
    def turn(size: int) -> Preparation:
        old = (user("a", "y" * 2000), assistant("b", "hm"), user("c", "do it"), user("d", "and this"))
        rest = (assistant("e", "calls", stop="toolUse"), result("f", "x" * size), assistant("g", stop="error"))
        return prepared(*old, *rest, recent=2, again="g")

    assert turn(1500).first_kept == "c", "prompts that stand together run again together"
    assert turn(4000).first_kept == "f"


def test_replies_that_an_earlier_boundary_left_out_stay_out() -> None:
    old = (user("a", "kept"), assistant("b", "partial", stop="error"), boundary("c", "S", "a", retriedEntryIds=["b"]))
    assert text_of(prepared(*old, user("d", "new"))) == "S\n[User]: kept\n\n[User]: new"
    found = prepared(*old, user("d", "new"), recent=2)
    assert (found.first_kept, found.retried) == ("a", ("b",))
    odd = (*old[:2], boundary("c", "S", "a", retriedEntryIds={"b": [1]}), user("d", "new"))
    assert "partial" in text_of(prepared(*odd))


def test_legacy_records_are_no_boundary() -> None:
    inert = (
        entry("context_compaction", "x", deletedTargets=["a"]),
        entry("compaction", "y", summary="S", firstKeptEntryId="a", tokensBefore=1),
    )
    assert text_of(prepared(user("a", "one"), *inert)) == "[User]: one"


def test_the_tokens_are_those_of_the_whole_context_and_of_the_tail() -> None:
    path = (user("a", "x" * 400), assistant("b", "y", input=1000, output=20), user("c", "z" * 8))
    found = prepared(*path, recent=1)
    assert (found.tokens_before, found.tail_tokens) == (1022, 2)


def test_the_focus_is_explicit_or_configured_or_what_was_said_last() -> None:
    bash = {"role": "bashExecution", "command": "ls", "output": "", "cancelled": False, "truncated": False}
    path = (user("a", "  first "), assistant("b", "answer"), result("c", "result"))
    assert prepared(*path).parameters.query == "first"
    assert prepared(*path, query="mine").parameters.query == "mine"
    assert prepared(*path, entry("message", "d", message={**bash, "timestamp": 1})).parameters.query == (
        "Ran `ls`\n(no output)"
    )
    assert prepared(assistant("b", "answer")).parameters.query == GENERIC_QUERY
    assert prepared(user("a", "x" * 100_000)).parameters.query == "x" * 100_000


MODEL = Model("m", "m", "a", "p", "http://x", False, ("text",), ModelCost(), 1000, 100)


def test_each_parameter_is_looked_up_by_itself() -> None:
    settings = CompactionSettings(
        reserve_tokens=100,
        compression_ratio=0.3,
        preserve_recent=4,
        query=" configured ",
        model_budgets={"p/m": ModelBudget(preserve_recent=7), "p/other": ModelBudget(reserve_tokens=5)},
    )
    assert settings.reserve_of(MODEL) == 100
    assert settings.wish(MODEL) == Wish(0.3, 7, "configured")
    assert settings.wish(None) == Wish(0.3, 4, "configured")
    assert settings.wish(MODEL, Wish(preserve_recent=0, query="\ufeff ")) == Wish(0.3, 0, "configured")
    assert settings.wish(MODEL, Wish(compression_ratio=0.9, query=" now ")) == Wish(0.9, 7, "now")


def test_the_budget_of_a_model_is_found_by_its_exact_key() -> None:
    for key in ("P/m", "p/M", "p/m:high", "p/*", "m"):
        assert CompactionSettings(model_budgets={key: ModelBudget(1, 1)}).reserve_of(MODEL) == 16384
    assert CompactionSettings(model_budgets={"p/m": ModelBudget(0, 0)}).wish(MODEL).preserve_recent == 0


def test_what_nobody_said_has_its_default() -> None:
    assert Wish().effective("").compression_ratio == 0.5
    assert Wish().effective(" said ").query == "said"
    assert Wish().effective("").preserve_recent == 2
