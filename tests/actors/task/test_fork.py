"""The branch that a forked subagent begins with: the parent's, without what is the parent's alone."""

from __future__ import annotations

import json
from typing import Any

from actors.task.fork import fork_lines
from actors.task.notice import ACK, INTENT, MESSAGE
from tests.actors.task.agents import entry

CALL = {"type": "toolCall", "id": "c", "name": "subagent", "arguments": {}}
TEXT = {"type": "text", "text": "I will"}
OTHER = {"type": "toolCall", "id": "d", "name": "read", "arguments": {"path": "subagent"}}


def reply(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def result(tool: str) -> dict[str, Any]:
    return {"role": "toolResult", "toolName": tool, "toolCallId": "c", "content": []}


def forked(*entries: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in fork_lines(entries)]


def test_what_is_everybodys_stays_as_it_is_byte_for_byte() -> None:
    branch = [entry("a", None), entry("b", "a", reply(TEXT, OTHER)), entry("c", "b", result("read"))]
    assert fork_lines(branch) == [each.raw for each in branch]


def test_calls_of_subagent_and_their_results_are_left_out_and_the_branch_stays_whole() -> None:
    found = forked(
        entry("a", None),
        entry("b", "a", reply({"type": "thinking", "thinking": "hm"}, CALL)),
        entry("c", "b", result("subagent")),
        entry("d", "c", reply(TEXT, CALL, OTHER)),
        entry("e", "d", result("read")),
    )
    assert [(each["id"], each["parentId"]) for each in found] == [("a", None), ("d", "a"), ("e", "d")]
    assert found[1]["message"]["content"] == [TEXT, OTHER]


def test_notices_what_they_owe_and_labels_are_left_out() -> None:
    found = forked(
        entry("a", None),
        entry("b", "a", type="custom", customType=INTENT, data={"completionId": "x"}),
        entry("c", "b", type="custom_message", customType=MESSAGE, content="over", display=True),
        entry("d", "c", type="custom", customType=ACK, data={}),
        entry("e", "d", type="label", targetId="a", label="l"),
        entry("f", "e"),
    )
    assert [(each["id"], each["parentId"]) for each in found] == [("a", None), ("f", "a")]


def test_a_compaction_that_kept_from_an_entry_which_is_left_out_keeps_from_the_next() -> None:
    found = forked(
        entry("a", None, reply(CALL)),
        entry("b", "a", result("subagent")),
        entry("c", "b"),
        entry("d", "c", type="compaction", summary="s", firstKeptEntryId="a", tokensBefore=1),
    )
    assert [each["id"] for each in found] == ["c", "d"]
    assert found[1]["firstKeptEntryId"] == "c"


def test_a_compaction_that_kept_nothing_else_keeps_nothing() -> None:
    found = forked(
        entry("a", None),
        entry("b", "a", reply(CALL)),
        entry("c", "b", result("subagent")),
        entry("d", "c", type="compaction", summary="s", firstKeptEntryId="b", tokensBefore=1),
        entry("e", "d"),
    )
    assert [(each["id"], each["parentId"]) for each in found] == [("a", None), ("d", "a"), ("e", "d")]
    assert found[1]["firstKeptEntryId"] is None
