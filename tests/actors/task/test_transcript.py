"""Entries of a child's messages, what of them is kept, and pages: numbered without a gap, and nothing invented."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, to_builtins

from actors.task.subagent.live import Live
from actors.task.transcript import (
    ENTRY_CHARS,
    PAGE_BYTES,
    History,
    Span,
    Tail,
    earlier,
    entries_of,
    numbered,
    page,
    span_of,
)
from protocol.codec import decode_any, encode
from protocol.tasks import TranscriptEntry

Record = dict[str, Any]


def reply(*content: Record, **more: Any) -> Record:
    return {"role": "assistant", "content": list(content), "timestamp": 5, "stopReason": "stop", **more}


def said(text: str) -> Record:
    return {"type": "text", "text": text}


def call(**arguments: Any) -> Record:
    return {"type": "toolCall", "id": "c1", "name": "bash", "arguments": arguments}


def result(*content: Record, is_error: bool = False) -> Record:
    return {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "bash",
        "content": list(content),
        "isError": is_error,
        "timestamp": 6,
    }


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def shown(*messages: Record) -> list[Record]:
    return [to_builtins(entry) for message in messages for entry in entries_of(message)]


# ---- entries -----------------------------------------------------------------------------------------------------


def test_each_message_shows_what_was_said_and_no_hidden_reasoning() -> None:
    thinking = {"type": "thinking", "thinking": "secret plan", "thinkingSignature": "s"}
    found = shown(
        {"role": "user", "content": "do it", "timestamp": 1},
        reply(thinking, said("a"), said("b"), call(command="ls"), said("c")),
        result(said("out"), IMAGE, is_error=True),
        {"role": "custom", "customType": "x", "content": [said("note")], "display": True, "timestamp": 7},
    )
    assert found == [
        {"index": 0, "role": "user", "text": "do it", "timestamp": 1},
        {"index": 0, "role": "assistant", "text": "a\n\nb", "timestamp": 5},
        {
            "index": 0,
            "role": "toolCall",
            "text": '{"command":"ls"}',
            "tool": "bash",
            "toolCallId": "c1",
            "timestamp": 5,
        },
        {"index": 0, "role": "assistant", "text": "c", "timestamp": 5},
        {
            "index": 0,
            "role": "toolResult",
            "text": "out\n[image]",
            "tool": "bash",
            "toolCallId": "c1",
            "isError": True,
            "timestamp": 6,
        },
        {"index": 0, "role": "notice", "text": "note", "timestamp": 7},
    ]
    assert "secret" not in str(found)


def test_a_failed_reply_ends_with_a_notice_and_a_hidden_message_shows_nothing() -> None:
    failed = reply(said("half"), errorMessage="overloaded", stopReason="error")
    assert [(entry["role"], entry["text"]) for entry in shown(failed)] == [
        ("assistant", "half"),
        ("notice", "overloaded"),
    ]
    hidden = {"role": "custom", "customType": "x", "content": "no", "display": False, "timestamp": 1}
    assert shown(hidden, reply(said("  ")), reply()) == []


def test_a_long_text_is_cut_and_says_so() -> None:
    (entry,) = entries_of({"role": "user", "content": "x" * (ENTRY_CHARS + 3), "timestamp": 1})
    assert entry.text == "x" * ENTRY_CHARS + "\n[Truncated: 3 more characters]"
    (entry,) = entries_of({"role": "user", "content": "x" * ENTRY_CHARS, "timestamp": 1})
    assert entry.text == "x" * ENTRY_CHARS


@pytest.mark.parametrize(
    "message",
    [
        None,
        3,
        "x",
        [],
        {},
        {"role": "assistant"},
        {"role": "user"},
        {"role": "odd"},
        {"role": "toolResult", "content": 1},
    ],
)
def test_what_is_no_message_shows_nothing(message: Any) -> None:
    assert entries_of(message) == []


# ---- what is kept ------------------------------------------------------------------------------------------------


def users(count: int, size: int = 1) -> list[Record]:
    return [{"role": "user", "content": f"{number}".rjust(size, "-"), "timestamp": 1} for number in range(count)]


def tail_of(count: int, size: int = 1, kept_bytes: int = 1000) -> Tail:
    tail = Tail(kept_bytes)
    for message in users(count, size):
        tail.add(message)
    return tail


def numbers(entries: Any) -> list[int]:
    return [decode_any(bytes(entry))["index"] for entry in entries]


@given(st.integers(0, 60), st.integers(1, 400))
def test_the_tail_is_the_end_and_never_larger_than_its_bound_but_for_one_entry(count: int, size: int) -> None:
    history = tail_of(count, size).history()
    assert history.total == count
    assert numbers(history.entries) == list(range(history.first, count))
    assert len(history.entries) <= 1 or sum(map(len, history.entries)) <= 1000
    assert (len(history.entries) >= 1) == (count >= 1)


def test_what_is_new_since_a_number_is_told_as_far_as_it_is_kept() -> None:
    tail = tail_of(10)
    assert numbers(tail.since(8)) == [8, 9]
    assert tail.since(10) == tail.since(11) == []
    assert numbers(tail_of(50).since(0)) == list(range(50))[-len(tail_of(50).since(0)) :]


# ---- pages -------------------------------------------------------------------------------------------------------


def ask(history: History, before: int | None, limit: int | None, on_file: list[Record] | None) -> Any:
    span = span_of(history.total, before, limit)
    wanted = earlier(history, span)
    read = None
    if wanted is not None and on_file is not None:
        read = numbered(map(encode, on_file), wanted)
    return page(history, span, read)


@given(st.integers(0, 60), st.integers(0, 70) | st.none(), st.integers(1, 200) | st.none(), st.booleans())
def test_a_page_with_the_file_at_hand_misses_nothing(
    count: int, before: int | None, limit: int | None, cut: bool
) -> None:
    history = tail_of(count, kept_bytes=300 if cut else 10_000).history("/session.jsonl")
    found = ask(history, before, limit, users(count))
    end = count if before is None else min(before, count)
    first = max(end - (limit or 50), 0)
    assert numbers(found.entries) == list(range(first, end))
    assert (found.first, found.total, found.missing) == (first, count, 0)


@given(st.integers(0, 60), st.integers(0, 70) | st.none(), st.integers(1, 200) | st.none(), st.booleans())
def test_without_a_file_what_is_not_kept_is_counted_and_not_invented(
    count: int, before: int | None, limit: int | None, was_there: bool
) -> None:
    """`was_there`: the file cannot be read any more, which only a page that needs it finds out."""
    history = tail_of(count, kept_bytes=300).history("/session.jsonl" if was_there else None)
    found = ask(history, before, limit, None)
    end = count if before is None else min(before, count)
    first = max(end - (limit or 50), 0)
    kept = range(max(first, history.first), max(end, history.first))
    assert numbers(found.entries) == list(kept)
    assert found.total == count
    assert found.missing == (history.first if first < min(history.first, end) or not was_there else 0)
    assert found.first == (kept.start if kept else min(end, max(first, found.missing)))


def test_a_file_that_holds_less_than_was_said_counts_as_unreadable() -> None:
    history = tail_of(60, kept_bytes=300).history("/session.jsonl")
    assert ask(history, None, 200, users(3)).missing == history.first


def test_a_page_is_bounded_and_goes_on_before_its_first() -> None:
    large = [{"role": "user", "content": "x" * ENTRY_CHARS, "timestamp": 1}] * 60
    tail = Tail()
    for message in large:
        tail.add(message)
    history, seen, before = tail.history("/session.jsonl"), [], None
    while before != 0:
        found = ask(history, before, 200, large)
        assert sum(len(bytes(entry)) for entry in found.entries) <= PAGE_BYTES
        seen = [*numbers(found.entries), *seen]
        before = found.first
    assert seen == list(range(60))


def test_the_live_entry_has_the_number_that_comes_next() -> None:
    found = page(tail_of(3).history(), Span(0, 3), None, TranscriptEntry(0, "assistant", "so far"))
    assert to_builtins(found.live) == {"index": 3, "role": "assistant", "text": "so far"}
    assert page(tail_of(3).history(), Span(0, 3), None).live is UNSET


# ---- what is said now --------------------------------------------------------------------------------------------


def delta(text: str, block: int = 0, kind: str = "text_delta") -> bytes:
    change = {"type": kind, "contentIndex": block, "delta": text}
    return encode({"type": "message_update", "usage": {}, "assistantMessageEvent": change}) + b"\n"


def partial(text: str, id: str = "c1") -> bytes:
    given = {"content": [said(text)], "details": None}
    record = {"type": "tool_execution_update", "toolCallId": id, "toolName": "bash", "args": {}, "partialResult": given}
    return encode(record) + b"\n"


def now(live: Live) -> str | None:
    entry = live.entry()
    return None if entry is None else entry.text


def test_the_text_of_a_reply_grows_however_its_deltas_are_gathered() -> None:
    live = Live()
    live.reply_began()
    assert now(live) is None
    assert live.reply_grew(delta("a") + delta("b"))
    assert now(live) == "ab"
    assert not live.reply_grew(delta("hidden", kind="thinking_delta"))
    assert live.reply_grew(delta("c") + delta("hidden", kind="thinking_delta") + delta("d", block=2))
    assert now(live) == now(live) == "abc\n\nd"
    live.reply_began()
    assert now(live) is None


def test_of_a_long_text_the_end_is_shown_and_little_is_kept() -> None:
    live = Live()
    live.reply_began()
    for number in range(20_000):
        live.reply_grew(delta(f"{number:06}"))
    assert live._size <= 524_288
    text = now(live)
    assert text is not None
    assert text.startswith("[Earlier text omitted]\n") and text.endswith("019999")
    assert len(text) == ENTRY_CHARS + len("[Earlier text omitted]\n")


def test_a_tool_shows_its_last_partial_result_until_it_has_ended() -> None:
    live = Live()
    live.tool_gave(partial("1"))
    live.tool_gave(partial("12"))
    assert to_builtins(live.entry()) == {
        "index": 0,
        "role": "toolResult",
        "text": "12",
        "tool": "bash",
        "toolCallId": "c1",
        "isError": False,
    }
    live.message_ended("other")
    assert now(live) == "12"
    live.message_ended("c1")
    assert now(live) is None


def test_text_that_looks_like_a_record_is_text() -> None:
    live = Live()
    live.reply_began()
    live.reply_grew(delta('"assistantMessageEvent":{"type":"text_delta"'))
    assert now(live) == '"assistantMessageEvent":{"type":"text_delta"'


@pytest.mark.parametrize("record", [b"{", b"[]\n", b"null\n", b'{"partialResult":3}\n'])
def test_a_record_that_cannot_be_read_shows_nothing(record: bytes) -> None:
    live = Live()
    live.tool_gave(record)
    live.message_ended("c1")
    live.reply_grew(b'"assistantMessageEvent":{"type":"text_delta"' + record)
    assert now(live) is None
