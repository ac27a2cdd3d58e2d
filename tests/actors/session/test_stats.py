"""Counts and sums of a session are over every entry of the file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET

from actors.session.context import build_context
from actors.session.stats import Tally, last_assistant_text, session_stats
from actors.session.tree import Tree
from protocol.codec import encode
from protocol.entry_head import read_entry
from protocol.responses import ContextUsage, TokenTotals


def usage(tokens: int, cost: float = 0.5) -> dict[str, Any]:
    numbers = {"input": tokens, "output": 1, "cacheRead": 10, "cacheWrite": 100, "totalTokens": 999}
    return {**numbers, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost}}


def message(role: str, content: Any = "x", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": content, "timestamp": 1, **fields}}


def assistant(content: Any, stop: str = "stop", **fields: Any) -> dict[str, Any]:
    return message("assistant", content, api="a", provider="p", model="m", stopReason=stop, **fields)


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def tree_of(*entries: dict[str, Any]) -> Tree:
    """A chain of `entries`."""
    tree = Tree()
    for number, entry in enumerate(entries):
        raw = json.dumps({"id": f"e{number}", "parentId": tree.leaf_id, "timestamp": "t", **entry}).encode()
        head = read_entry(raw)
        assert head is not None
        tree.add(raw, head)
    return tree


CALLS = [text("x"), {"type": "toolCall", "id": "1", "name": "n", "arguments": {}}, {"type": "toolCall"}]


def test_messages_are_counted_by_role_and_usage_is_summed_over_all_branches() -> None:
    tree = tree_of(
        message("user"),
        assistant(CALLS, usage=usage(1000)),
        message("toolResult", [], usage=usage(2000, 0.25)),
        message("bashExecution", command="ls"),
        {"type": "branch_summary", "summary": "S", "fromId": "e0", "usage": usage(3000)},
        {"type": "session_summary", "summary": "S", "usage": usage(4000)},
        {"type": "custom", "usage": usage(10_000)},
        assistant([], usage=usage(5000), parentId="e0"),
    )
    stats = session_stats(tree, "s", "/x.jsonl", ContextUsage(1, 2, 50.0))
    assert (stats.session_id, stats.session_file) == ("s", "/x.jsonl")
    counts = (stats.user_messages, stats.assistant_messages, stats.tool_calls, stats.tool_results, stats.total_messages)
    assert counts == (1, 2, 2, 1, 5)
    assert stats.tokens == TokenTotals(15_000, 5, 50, 500, 15_555)
    assert stats.cost == 2.25 and stats.context_usage == ContextUsage(1, 2, 50.0)


def test_a_tally_counts_what_was_appended_since_and_nothing_twice() -> None:
    entries = (message("user"), assistant(CALLS, usage=usage(1000)), assistant([], usage=usage(1)), message("user"))
    whole, tree, tally = tree_of(*entries), Tree(), Tally()
    for entry in whole.entries:
        tree.add(entry.raw, entry.head)
        assert tally.stats(tree, "s", None, None) == session_stats(tree, "s") == tally.stats(tree, "s", None, None)
    assert tally.stats(tree, "s", None, None).total_messages == 4


def test_absurd_counts_are_told_as_the_largest_that_all_clients_can_read() -> None:
    stats = session_stats(tree_of(*[assistant([], usage={"input": 1e308, "cost": {"total": 1e308}})] * 3), "s")
    assert stats.tokens.input == stats.cost == 3 * 2**53
    encode(stats)


def test_a_session_in_memory_without_model_has_neither_file_nor_context_usage() -> None:
    stats = session_stats(Tree(), "s")
    assert stats.session_file is UNSET and stats.context_usage is UNSET
    assert (stats.total_messages, stats.cost, stats.tokens.total) == (0, 0, 0)


@pytest.mark.parametrize("bad", [None, 7, "x", {}, {"input": "many", "cost": None}, {"input": None, "cost": {}}])
def test_usage_that_is_no_usage_counts_nothing(bad: Any) -> None:
    tree = tree_of(assistant(CALLS, usage=bad), {"type": "branch_summary", "usage": bad})
    stats = session_stats(tree, "s")
    assert (stats.tokens.total, stats.cost, stats.tool_calls) == (0, 0, 2)


def test_a_message_with_a_lone_surrogate_is_counted() -> None:
    stats = session_stats(tree_of(assistant([text("bad \ud83d"), *CALLS], usage=usage(1))), "s")
    assert (stats.assistant_messages, stats.tool_calls, stats.tokens.total) == (1, 2, 112)


def last(*entries: dict[str, Any]) -> str | None:
    tree = tree_of(*entries)
    return last_assistant_text(build_context(tree, tree.leaf_id).messages)


def test_the_last_text_is_that_of_the_last_reply_joined_and_trimmed() -> None:
    assert last(assistant([text("old")]), assistant([text(" a"), text("b\n")]), message("user")) == "ab"


def test_an_empty_aborted_reply_is_passed_over_and_a_partial_one_is_not() -> None:
    assert last(assistant([text("old")]), assistant([], "aborted")) == "old"
    assert last(assistant([text("old")]), assistant([text("par")], "aborted")) == "par"


def test_without_a_reply_or_without_text_there_is_none() -> None:
    assert last(message("user")) is None
    assert last(assistant([text("old")]), assistant([text(" ")])) is None
