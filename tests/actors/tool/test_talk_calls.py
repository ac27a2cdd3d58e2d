"""The calls of `intercom` and `contact_supervisor`: the fields that go together, and what comes of an answer."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from actors.mail import (
    CancelTool,
    ContactParent,
    IntercomAnswer,
    ParentAnswer,
    TaskAnswer,
    ToolEnded,
    ToolPlace,
    ToolRequest,
    UseIntercom,
    WithdrawContact,
)
from actors.probe import Probe
from actors.task.child_message import Contact
from actors.tool.actor import ToolCall
from actors.tool.contact_call import contact_tool
from actors.tool.intercom import NO_OWNER
from actors.tool.schema import check_arguments
from actors.tool.table import Tool, ToolContext, ToolFailure, builtin_tools
from protocol import messages
from protocol.tasks import InterviewQuestion

INTERCOM, CONTACT = builtin_tools()["intercom"], contact_tool()
ASK = {"reason": "need_decision", "message": "?"}
CHOICE = {"type": "single", "question": "which?", "options": ["a"]}


def interview(*questions: Any) -> dict[str, Any]:
    return {"reason": "interview_request", "message": "m", "questions": list(questions)}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (CONTACT, ASK),
        (CONTACT, {**ASK, "questions": None}),
        (CONTACT, {"reason": "progress_update", "message": "m"}),
        (CONTACT, interview(CHOICE, {"type": "info", "question": "x"}, {"type": "image", "question": "x", "id": "i"})),
        (INTERCOM, {"action": "list"}),
        (INTERCOM, {"action": "pending", "to": None}),
        (INTERCOM, {"action": "reply", "message": "m"}),
        (INTERCOM, {"action": "reply", "message": "m", "to": "a", "replyTo": "b"}),
        (INTERCOM, {"action": "send", "message": "m", "to": "a"}),
    ],
)
def test_what_goes_together_is_let_through(tool: Tool, arguments: dict[str, Any]) -> None:
    assert check_arguments(tool, arguments) is None


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (CONTACT, {"reason": "need_decision"}, "message"),
        (CONTACT, {**ASK, "message": " \n"}, "message must not be blank"),
        (CONTACT, {**ASK, "reason": "chat"}, "reason"),
        (CONTACT, {**ASK, "questions": [CHOICE]}, "questions belong to interview_request"),
        (CONTACT, {**ASK, "timeout": 5}, "'timeout' is not a known property"),
        (CONTACT, {"reason": "interview_request", "message": "m"}, "at least one, got null"),
        (CONTACT, interview(), "at least one, got an array of 0"),
        (CONTACT, {**interview(), "questions": "which?"}, "at least one, got 'which?'"),
        (CONTACT, interview({**CHOICE, "type": "secret"}), "questions[0]"),
        (CONTACT, interview(CHOICE, {"type": "multi", "question": "x"}), "questions[1].options must hold"),
        (CONTACT, interview({**CHOICE, "options": []}), "questions[0].options must hold"),
        (CONTACT, interview({**CHOICE, "type": "text"}), "questions[0].options belong to single and multi"),
        (CONTACT, interview({"type": "text"}), "question"),
        (CONTACT, interview("which?"), "questions[0]"),
        (CONTACT, {**ASK, "message": "x" * 8001}, "message"),
        (CONTACT, interview(*[CHOICE] * 21), "questions"),
        (CONTACT, interview({**CHOICE, "options": ["x" * 501]}), "options[0]"),
        (INTERCOM, {}, "action"),
        (INTERCOM, {"action": "ask", "message": "m"}, "'list', 'pending', 'reply', 'send'"),
        (INTERCOM, {"action": "list", "timeout": 1}, "'timeout' is not a known property"),
        (INTERCOM, {"action": "list", "to": "a"}, "'to' does not belong to action list"),
        (INTERCOM, {"action": "send", "to": "a", "message": "m", "replyTo": "b"}, "'replyTo' does not belong"),
        (INTERCOM, {"action": "reply"}, "action reply needs message, got null"),
        (INTERCOM, {"action": "reply", "message": "  "}, "action reply needs message"),
        (INTERCOM, {"action": "send", "message": "m"}, "action send needs to"),
    ],
)
def test_what_does_not_is_refused_by_name(tool: Tool, arguments: dict[str, Any], told: str) -> None:
    assert told in (check_arguments(tool, arguments) or "")


# ---- the call as an actor ----------------------------------------------------------------------------------------


class Bench:
    """A call of either tool, and whom it speaks to."""

    def __init__(self, tool: Tool, arguments: dict[str, Any]) -> None:
        self.session, self.desk, self.supervisor, self.me = Probe[Any](), Probe[Any](), Probe[Any](), Probe[Any]()
        asked = messages.ToolCall("c", tool.name, arguments)
        request = ToolRequest(1, tool, asked, ToolPlace("/", "s", {}, False), self.desk if tool.owned else None)
        supervisor = self.supervisor if tool is CONTACT else None
        self.call = ToolCall(request, self.session, Probe[Any](), self._no_pump, supervisor)
        self.call.me = self.me
        self.call.begin()

    def _no_pump(self, *_: Any) -> Any:
        raise AssertionError("it needs no pump")

    def ended(self, *mails: Any) -> list[tuple[str, Any, bool]]:
        for mail in mails:
            self.call.receive(mail)
        told = self.session.drain()
        assert all(isinstance(mail, ToolEnded) for mail in told)
        assert not told or self.me.stopped
        return [(mail.output.content[0].text, mail.output.details, mail.output.is_error) for mail in told]


def test_a_question_waits_for_its_answer_and_takes_no_second() -> None:
    bench = Bench(CONTACT, interview({**CHOICE, "id": None}))
    (asked,) = bench.supervisor.drain()
    questions = (InterviewQuestion("single", "which?", UNSET, ("a",)),)
    assert asked == ContactParent(Contact("interview_request", "m", questions), bench.me)
    assert bench.ended() == []
    assert bench.ended(ParentAnswer("a", "ask-1"), ParentAnswer("b", "ask-1")) == [("a", {"requestId": "ask-1"}, False)]


def test_an_empty_answer_is_shown_as_one() -> None:
    assert Bench(CONTACT, ASK).ended(ParentAnswer("", "ask-1"))[0][0] == "(no text)"


def test_a_refusal_is_an_error() -> None:
    bench = Bench(CONTACT, ASK)
    assert bench.ended(ParentAnswer("Already waiting for a reply", is_error=True)) == [
        ("Already waiting for a reply", UNSET, True)
    ]


def test_a_cancelled_call_takes_its_question_back_and_ends() -> None:
    bench = Bench(CONTACT, ASK)
    bench.supervisor.drain()
    assert bench.ended(CancelTool(), ParentAnswer("too late", "ask-1"), CancelTool()) == [
        ("Operation aborted", UNSET, True)
    ]
    assert bench.supervisor.drain() == [WithdrawContact(bench.me)]


def test_a_call_that_dies_takes_its_question_back() -> None:
    bench = Bench(CONTACT, ASK)
    bench.supervisor.drain()
    bench.call.last_words([])
    assert bench.supervisor.drain() == [WithdrawContact(bench.me)]


def test_an_answer_that_was_taken_is_not_taken_back() -> None:
    bench = Bench(CONTACT, ASK)
    bench.supervisor.drain()
    bench.ended(ParentAnswer("a", "ask-1"))
    bench.call.receive(CancelTool())
    assert bench.supervisor.drain() == []


def test_the_parents_call_asks_the_desk_and_shows_its_answer_as_json() -> None:
    bench = Bench(INTERCOM, {"action": "reply", "to": "scout", "message": "blue"})
    assert bench.desk.drain() == [UseIntercom("reply", "scout", None, "blue", bench.me)]
    told = {"kind": "replied", "taskId": "t", "requestId": "ask-1"}
    ((shown, details, is_error),) = bench.ended(IntercomAnswer(told))
    assert (shown, details, is_error) == ('{"kind":"replied","taskId":"t","requestId":"ask-1"}', told, False)


def test_what_the_desk_refuses_is_an_error() -> None:
    bench = Bench(INTERCOM, {"action": "reply", "message": "blue"})
    assert bench.ended(TaskAnswer("No pending ask")) == [("No pending ask", UNSET, True)]


@pytest.mark.parametrize(("tool", "told"), [(INTERCOM, NO_OWNER), (CONTACT, "Supervisor channel is not authorized")])
def test_where_there_is_nobody_to_talk_with_it_says_so(tool: Tool, told: str) -> None:
    context: Any = ToolContext.__new__(ToolContext)
    with pytest.raises(ToolFailure, match=told):
        tool.run(context, {})
