"""The context of a leaf: messages, thinking level and model, boundaries, and messages that older writers left."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.session.context import Context, ContextMessage, build_context, messages_data, provider_messages
from actors.session.tree import Tree
from protocol.entry_head import read_entry
from protocol.messages import (
    AssistantMessage,
    BashExecutionMessage,
    CustomMessage,
    ImageContent,
    TextContent,
    ToolResultMessage,
    Usage,
    UserMessage,
)

TIME = "2026-02-01T10:00:05.000Z"
TIME_MS = 1769940005000
VERBATIM = {"strategy": "verbatim-lines", "rung": "planned"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def entry(kind: str, entry_id: str, parent: str | None, **fields: Any) -> bytes:
    base = {"type": kind, "id": entry_id, "parentId": parent, "timestamp": TIME, **fields}
    return json.dumps(base, separators=(",", ":")).encode()


def message(entry_id: str, parent: str | None, role: str = "user", content: Any = "hi", **fields: Any) -> bytes:
    stored = {"role": role, "content": content, "timestamp": 5, **fields}
    return entry("message", entry_id, parent, message=stored)


def assistant(entry_id: str, parent: str | None, content: Any, **fields: Any) -> bytes:
    names = {"api": "x-api", "provider": "x", "model": "m-1", "usage": {}, "stopReason": "stop"}
    return message(entry_id, parent, "assistant", content, **{**names, **fields})


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def tree_of(*lines: bytes) -> Tree:
    tree = Tree()
    for raw in lines:
        head = read_entry(raw)
        assert head is not None
        tree.add(raw, head)
    return tree


def context_of(*lines: bytes) -> Context:
    tree = tree_of(*lines)
    return build_context(tree, tree.leaf_id)


def shown(context: Context) -> list[Any]:
    """The messages as `get_messages` sends them."""
    data = json.loads(messages_data(context.messages))
    assert list(data) == ["messages"]
    return [each.get("content", each.get("summary", each.get("command"))) for each in data["messages"]]


def test_an_empty_session_has_no_messages_level_off_and_no_model() -> None:
    for context in (build_context(Tree(), None), build_context(tree_of(message("a", None)), None)):
        assert (context.messages, context.thinking_level, context.model) == ([], "off", None)


def test_an_unknown_leaf_means_the_last_entry() -> None:
    tree = tree_of(message("a", None, content="one"), message("b", "a", content="two"))
    assert shown(build_context(tree, "zz")) == ["one", "two"]


def test_behind_a_missing_parent_only_the_reachable_part_is_used() -> None:
    assert shown(context_of(message("a", None, content="lost"), message("b", "zz", content="kept"))) == ["kept"]


def test_messages_of_other_branches_and_inert_entries_are_left_out() -> None:
    context = context_of(
        message("a", None, content="a"),
        message("off", "a", content="off"),
        entry("custom", "c", "a", customType="x", data=1),
        entry("context_compaction", "cc", "c", deletedTargets=["a"]),
        entry("label", "l", "cc", targetId="a", label="L"),
        entry("session_summary", "s", "l", summary="S", summarizedThroughId="a"),
        entry("hologram", "h", "s", content="x"),
        message("b", "h", "hologram", content="unknown role"),
        entry("branch_summary", "e", "b", summary="", fromId="off"),
        entry("branch_summary", "f", "e", summary="was there", fromId="off"),
        entry("custom_message", "m", "f", customType="note", content="N", display=False, details={"k": 1}),
    )
    assert shown(context) == ["a", "was there", "N"]
    assert [each.entry_id for each in context.messages] == ["a", "f", "m"]
    assert json.loads(context.messages[1].raw) == {
        "role": "branchSummary",
        "summary": "was there",
        "fromId": "off",
        "timestamp": TIME_MS,
    }
    assert json.loads(context.messages[2].raw) == {
        "role": "custom",
        "customType": "note",
        "content": "N",
        "display": False,
        "details": {"k": 1},
        "timestamp": TIME_MS,
    }


def test_stored_messages_are_shown_byte_for_byte() -> None:
    stored = b'{"role":"user","content":"a","timestamp":1.5e3,"extra":{"x":[1.0, 2]}}'
    raw = b'{"type":"message","id":"a","parentId":null,"timestamp":"t","message":' + stored + b"}"
    assert messages_data(context_of(raw).messages) == b'{"messages":[' + stored + b"]}"


def test_level_and_model_are_the_last_ones_of_the_branch() -> None:
    context = context_of(
        entry("model_change", "a", None, provider="p", modelId="m"),
        entry("thinking_level_change", "b", "a", thinkingLevel="high"),
        assistant("c", "b", []),
        entry("thinking_level_change", "off", "b", thinkingLevel="low"),
        entry("thinking_level_change", "d", "c", thinkingLevel="ultra"),
    )
    assert (context.thinking_level, context.model) == ("high", ("x", "m-1"))
    last = context_of(assistant("a", None, []), entry("model_change", "b", "a", provider="p", modelId="m"))
    assert last.model == ("p", "m")


# ---- boundaries ---------------------------------------------------------------------------------------------------


def boundary(entry_id: str, parent: str, kept: str | None, summary: str, **fields: Any) -> bytes:
    details = {"summary": summary, "firstKeptEntryId": kept, "tokensBefore": 9, "details": VERBATIM, **fields}
    return entry("compaction", entry_id, parent, **details)


def test_an_old_compaction_without_the_strategy_changes_nothing() -> None:
    for details in ({"strategy": "other"}, None, 7):
        old = boundary("c", "a", "a", "SUMMARY", details=details)
        assert shown(context_of(message("a", None, content="a"), old, message("b", "c", content="b"))) == ["a", "b"]


def test_a_boundary_stands_for_all_before_it_and_only_the_latest_counts() -> None:
    context = context_of(
        message("a", None, content="a"),
        boundary("c1", "a", None, "FIRST"),
        message("b", "c1", content="b"),
        boundary("c2", "b", None, "SECOND"),
        message("d", "c2", content="d"),
    )
    first, *later = shown(context)
    assert later == ["d"] and len(first) == 1 and first[0]["text"].endswith("\n\nSECOND")
    assert "FIRST" not in first[0]["text"]
    stored = context.messages[0].message()
    assert isinstance(stored, CustomMessage)
    assert (stored.custom_type, stored.display, stored.details, stored.timestamp) == (
        "compaction",
        True,
        VERBATIM,
        TIME_MS,
    )


def test_branching_above_a_boundary_brings_the_history_back() -> None:
    tree = tree_of(message("a", None, content="a"), message("b", "a", content="b"), boundary("c", "b", None, "S"))
    assert shown(build_context(tree, "b")) == ["a", "b"]


@pytest.mark.parametrize("kept", ["zz", "later"])
def test_a_kept_id_that_does_not_stand_before_the_boundary_leaves_the_summary_alone(kept: str) -> None:
    context = context_of(
        message("a", None, content="a"), boundary("c", "a", kept, "S"), message("later", "c", content="d")
    )
    first, *later = shown(context)
    assert first[0]["text"].endswith("\n\nS") and later == ["d"]


def test_a_reply_in_the_tail_that_was_asked_for_again_is_not_shown() -> None:
    path = (message("a", None, content="do it"), assistant("b", "a", [text("partial")]))
    for ids, is_shown in ((["b"], False), (["x", 7], True), ("b", True), (None, True)):
        details = {**VERBATIM, "retriedEntryIds": ids}
        ((first,),) = shown(context_of(*path, boundary("c", "b", "a", "S", details=details)))
        assert "[User]: do it" in first["text"] and ("partial" in first["text"]) is is_shown


def test_the_kept_tail_is_written_into_the_boundary_without_loss() -> None:
    call = {"type": "toolCall", "id": "t", "name": "read", "arguments": {"path": "a.ts", "n": 1, "o": {"k": "\u00e9"}}}
    blocks = [call, {"type": "thinking", "thinking": "hm"}, text("ok"), text("two")]
    long = "x" * 20_000

    def result(entry_id: str, parent: str, content: list[Any]) -> bytes:
        return message(entry_id, parent, "toolResult", content, toolCallId="t", toolName="read", isError=False)

    context = context_of(
        message("a", None, content="gone"),
        result("r0", "a", [text(long)]),
        message("b", "r0", content="hello\nworld"),
        assistant("c", "b", blocks),
        result("r1", "c", [text("T1"), IMAGE, text("T2")]),
        result("r2", "r1", []),
        message("d", "r2", content=[IMAGE]),
        boundary("e", "d", "r0", "S"),
    )
    ((first, image, middle, last),) = shown(context)
    assert first["text"].endswith(
        f"\n\nS\n\n[Tool result]: {long}\n\n[User]: hello\nworld\n\n"
        "[Assistant thinking]: hm\n\n[Assistant]: ok\ntwo\n\n"
        '[Assistant tool calls]: read(path="a.ts", n=1, o={"k":"\u00e9"})\n\n[Tool result]: T1\n'
    )
    assert (image, middle, last) == (IMAGE, text("T2\n\n[User]: "), IMAGE)
    assert [type(each) for each in provider_messages(context.messages)] == [UserMessage]


def test_an_empty_summary_leaves_the_tail_alone() -> None:
    ((first,),) = shown(context_of(message("a", None, content="a"), boundary("c", "a", "a", "")))
    assert first["text"].endswith("that are gone.\n\n[User]: a")


# ---- messages of other writers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [None, ...])
@pytest.mark.parametrize("role", ["user", "assistant", "toolResult", "custom"])
def test_null_or_missing_content_is_an_empty_list_in_the_copy(role: str, content: Any) -> None:
    stored = {"role": role, "timestamp": 5, "details": {"content": [1]}}
    raw = entry("message", "a", None, message=stored if content is ... else {**stored, "content": None})
    context = context_of(raw)
    assert shown(context) == [[]]
    assert context.messages[0].message().content == []  # type: ignore[union-attr]


def test_a_message_that_lacks_fields_or_has_unknown_blocks_is_read_as_far_as_it_can_be() -> None:
    blocks = [{"type": "hologram"}, text("seen"), 7, {"type": "text"}]
    raw = entry("message", "a", None, message={"role": "assistant", "content": blocks, "usage": None, "model": 3})
    found = context_of(raw).messages[0].message()
    assert found == AssistantMessage([TextContent("seen")], "", "", "", Usage(), "stop", TIME_MS)


def test_null_for_an_optional_field_is_absence() -> None:
    raw = message("a", None, "bashExecution", command="ls", output="", exitCode=None, cancelled=True, truncated=False)
    found = context_of(raw).messages[0].message()
    assert found == BashExecutionMessage("ls", "", True, False, 5)


def test_lone_surrogates_and_other_separators_reach_the_message() -> None:
    context = context_of(message("a", None, content=[text("bad \ud83d end\u2028x")]))
    found = context.messages[0].message()
    assert found == UserMessage([TextContent("bad \ud83d end\u2028x")], 5)
    assert shown(context) == [[text("bad \ud83d end\u2028x")]]


def test_a_message_that_is_no_object_adds_nothing() -> None:
    assert context_of(entry("message", "a", None, message=[1]), entry("message", "b", "a")).messages == []


def test_a_message_handed_over_is_not_decoded_again() -> None:
    live = ToolResultMessage("t", "bash", [ImageContent("d", "image/png")], False, 1)
    assert ContextMessage(b"{}", None, live).message() is live
