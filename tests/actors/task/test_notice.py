"""Notices of tasks show what others wrote: nothing in it steers a terminal or turns the direction of writing."""

from __future__ import annotations

import pytest

from actors.task import child_message, notice
from actors.task.child_message import ChildMessage
from protocol import tasks as t
from runtime.inspector import texts

BIDI = [chr(code) for code in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))]
CONTROLS = ["\0", "\x1b", "\r", "\x7f", "\x9b", *BIDI]


@pytest.mark.parametrize("bad", CONTROLS, ids=ascii)
def test_no_text_of_a_notice_holds_a_character_that_steers(bad: str) -> None:
    written = f"a{bad}b"
    envelope = t.CompletionEnvelope("c", "o", "t", "1", t.TaskFailed("RunnerFailed", written))
    told = notice.TaskNotice(envelope, written, "Background shell", f"{written}\n\tx")
    card = notice.details(told)["notification"]
    assert bad not in notice.text(told) + card["title"] + card["preview"]
    assert "a b" in card["title"] and "a b\n\tx" in notice.text(told)


@pytest.mark.parametrize("bad", CONTROLS, ids=ascii)
def test_no_text_of_a_question_does(bad: str) -> None:
    written = f"a{bad}b"
    asked = t.InterviewQuestion("single", written, id=written, options=(written,))
    told = ChildMessage("ask-1", "o", "t", "scout", written, "interview_request", written, (asked,))
    card = child_message.details(told)["notification"]
    assert bad not in child_message.text(told) + card["title"] + card["preview"]


@pytest.mark.parametrize("bad", CONTROLS, ids=ascii)
def test_the_inspector_shows_none_of_them(bad: str) -> None:
    assert bad not in texts.harmless(f"a{bad}b") + texts.one_line(f"a{bad}b")
