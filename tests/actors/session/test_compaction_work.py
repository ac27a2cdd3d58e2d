"""What pumps do for a compaction: facts about a planner's answer, and boundaries with or without a file."""

from __future__ import annotations

from typing import Any

import pytest

from actors.session.compaction.boundary import Boundary
from actors.session.compaction.ladder import Plan
from actors.session.compaction.outcome import Overflowed, Ranked
from actors.session.compaction.parameters import Wish
from actors.session.compaction.preparation import Preparation
from actors.session.compaction.region import region_of
from actors.session.compaction_work import Place, finish, judge
from protocol.codec import decode_any
from protocol.compaction import PlannerModel
from protocol.messages import AssistantMessage, TextContent, Usage, UserMessage
from protocol.model import Model, ModelCost

MODEL = Model("m", "m", "a", "p", "http://x", False, ("text",), ModelCost(), 1000, 100)
REGION = region_of("\n".join("abcdefghij"))


class Kept:
    """Files in memory."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, Any]] = []

    def back_up(self, session_path: str, label: str) -> str:
        return f"{session_path}.{label}.bak"

    def keep_answer(self, session_path: str, category: str, facts: Any) -> str:
        self.answers.append((category, facts))
        return f"{category}.json"


def prepared(tail_tokens: int = 10) -> Preparation:
    tail = (UserMessage("one\n<keepContext>\nkeep\n</keepContext>\ntwo", 1),)
    return Preparation(REGION, Wish(query="q").effective(""), "e1", tail_tokens, 100, tail, ("e2",))


def reply(text: str, stop: Any = "stop", **fields: Any) -> AssistantMessage:
    return AssistantMessage([TextContent(text)], "a", "p", "m", Usage(), stop, 1, **fields)


@pytest.mark.parametrize(
    ("answer", "category", "extra"),
    [
        (reply("1,2"), "success", {}),
        (reply("1,2\n3", "length"), "recovery", {"recoveredRangeCount": 1}),
        (reply("hello"), "diagnostic", {}),
        (
            reply("", "error", error_message="429 slow down"),
            "diagnostic",
            {"providerError": "429 slow down", "rateLimitExhausted": True},
        ),
        (reply("", "error", error_message="401"), "diagnostic", {"providerError": "401"}),
    ],
)
def test_a_planners_answer_is_kept_with_what_it_amounts_to(answer: Any, category: str, extra: Any) -> None:
    kept = Kept()
    judged = judge(answer, REGION, MODEL, True, Place(kept, "/s.jsonl"))
    assert judged.path == f"{category}.json"
    ((told, facts),) = kept.answers
    known = {"response", "stopReason", "usage", "model"}
    assert (told, {name: value for name, value in facts.items() if name not in known}) == (category, extra)
    assert facts["model"] == {"provider": "p", "id": "m", "api": "a", "contextWindow": 1000, "maxTokens": 100}


def test_a_session_in_memory_keeps_nothing() -> None:
    kept = Kept()
    judged = judge(reply("1,2"), REGION, MODEL, False, Place(kept, None))
    assert (judged.outcome, judged.path) == (Ranked(((1, 2),)), None)
    assert kept.answers == []
    boundary, complaint = finish(prepared(), Plan(((1, 2),)), 1000, "compact", Place(kept, None))
    assert complaint == "" and b"backupPath" not in boundary.encoded + boundary.details


def planned(plan: Plan, tail_tokens: int = 10, window: int = 1000) -> Boundary:
    return finish(prepared(tail_tokens), plan, window, "compact", Place(Kept(), "/s.jsonl"))[0]


def test_a_boundary_is_encoded_as_the_file_and_the_wire_want_it() -> None:
    borrowed = PlannerModel("o", "big", "high")
    boundary = planned(Plan(((2, 9),), planner=borrowed))
    told, details = decode_any(boundary.encoded), decode_any(boundary.details)
    assert told["compactedText"] == decode_any(boundary.summary) == "a\n(filtered 8 lines)\nj"
    assert details["strategy"] == "verbatim-lines" and details["backupPath"] == "/s.jsonl.compact.bak"
    assert details["plannerModel"] == {"provider": "o", "id": "big", "thinkingLevel": "high"}
    files_own = ("strategy", "retriedEntryIds")
    assert {name: told[name] for name in details if name not in files_own} == {
        name: value for name, value in details.items() if name not in files_own
    }
    assert details["retriedEntryIds"] == ["e2"] and "retriedEntryIds" not in told
    assert sorted(boundary.entry) == ["details", "firstKeptEntryId", "summary", "tokensBefore"]


@pytest.mark.parametrize(
    ("fresh", "tail_tokens", "window", "kept"),
    [(True, 1000, 1000, "e1"), (True, 1001, 1000, None), (False, 1001, 1000, "e1"), (True, 1001, 0, "e1")],
)
def test_a_run_that_drops_everything_drops_a_tail_that_would_not_fit(
    fresh: bool, tail_tokens: int, window: int, kept: str | None
) -> None:
    boundary = planned(Plan(((1, 10),), fresh=fresh), tail_tokens, window)
    protected = "<keepContext>\nkeep\n</keepContext>"
    dropped = f"(filtered 12 lines)\n{protected}\n(filtered 1 lines)"
    assert boundary.result.compacted_text == ("(filtered 10 lines)" if kept else dropped)
    assert decode_any(boundary.details).get("retriedEntryIds") == (["e2"] if kept else None)
    assert boundary.result.first_kept_entry_id == kept
    assert boundary.result.rung == ("fresh" if fresh else "planned")
    stats = boundary.result.stats
    assert stats.lines_before == (10 if kept else 16)
    assert stats.tokens_after == (5 + tail_tokens if kept else -(-len(dropped) // 4))


def test_half_a_surrogate_pair_survives() -> None:
    region = region_of("a \ud83d\nb\nc")
    found = Preparation(region, Wish(query="\ud83d").effective(""), "e1", 0, 100)
    boundary, _ = finish(found, Plan(((2, 2),)), 1000, "compact", Place(Kept(), None))
    for text in (decode_any(boundary.summary), decode_any(boundary.encoded)["compactedText"]):
        assert text == "a \ud83d\n(filtered 1 lines)\nc"
    assert decode_any(boundary.details)["parameters"]["query"] == "\ud83d"


def test_a_boundary_may_begin_its_tail_later() -> None:
    boundary = planned(Plan(((1, 10),))).keeping_from("e9")
    assert decode_any(boundary.encoded)["firstKeptEntryId"] == boundary.entry["firstKeptEntryId"] == "e9"


def test_an_overflow_of_the_planner_is_told_apart() -> None:
    long = reply("1,2", "error", error_message="prompt is too long")
    assert judge(long, REGION, MODEL, False, Place(Kept(), None)).outcome == Overflowed()
