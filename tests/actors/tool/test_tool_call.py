"""One call of a tool: exactly one end, a cancel in every phase, and a file that is given back in each of them."""

from __future__ import annotations

from typing import Any

import pytest

from actors.mail import (
    AcquireMutation,
    AgentRefusal,
    AgentsPlanned,
    CancelTool,
    DescribeAgents,
    GiveUp,
    LaunchAgents,
    LetGo,
    MutationGranted,
    ReleaseMutation,
    ReleaseWaits,
    TaskAnswer,
    TasksGone,
    ToolEnded,
    ToolPlace,
    ToolProgress,
    ToolRequest,
    ToolReturned,
    ToolUpdated,
    WaitForTask,
)
from actors.probe import Probe
from actors.tool.actor import CANCELLED, NO_DESK, ToolCall
from actors.tool.table import Tool, builtin_tools, text_output
from protocol import messages

RESULT, PARTIAL = text_output("done"), text_output("so far")


class Bench:
    """A call of a tool that is started by hand. With `mutates` it first needs the file /f."""

    def __init__(self, *, mutates: bool = False, name: str = "write") -> None:
        self.session, self.mutations, self.me = Probe[Any](), Probe[Any](), Probe[Any]()
        self.started = 0
        self.cancels = 0
        tool = Tool(name, "", "", {}, lambda context, arguments: RESULT, lambda _, cwd: "/f" if mutates else None)
        request = ToolRequest(4, tool, messages.ToolCall("c1", name, {}), ToolPlace("/", "s", {}, False))
        self.call = ToolCall(request, self.session, self.mutations, self._start)
        self.call.me = self.me
        self.call.begin()

    def _start(self, request: ToolRequest, call: Any) -> Bench:
        assert (request.call, call) == (4, self.me)
        self.started += 1
        return self

    def cancel(self) -> None:
        self.cancels += 1

    def tell(self, *mails: Any) -> None:
        for mail in mails:
            self.call.receive(mail)

    @property
    def released(self) -> bool:
        return ReleaseMutation("/f", self.me) in self.mutations.drain()


def test_a_tool_that_changes_nothing_starts_at_once_and_ends_with_its_result() -> None:
    bench = Bench()
    assert bench.started == 1
    bench.tell(ToolUpdated(PARTIAL), ToolReturned(RESULT))
    assert bench.session.drain() == [ToolProgress(4, PARTIAL), ToolEnded(4, RESULT)]
    assert bench.mutations.drain() == []
    assert bench.me.stopped


def test_a_tool_that_changes_a_file_waits_for_it_and_gives_it_back() -> None:
    bench = Bench(mutates=True)
    assert bench.mutations.drain() == [AcquireMutation("/f", bench.me)]
    assert bench.started == 0
    bench.tell(MutationGranted("/f"))
    assert bench.started == 1
    assert not bench.released
    bench.tell(ToolReturned(RESULT))
    assert bench.released
    assert bench.session.drain() == [ToolEnded(4, RESULT)]


def test_a_cancel_while_it_waits_for_the_file_ends_it_at_once_and_it_never_starts() -> None:
    bench = Bench(mutates=True)
    bench.tell(CancelTool())
    assert bench.session.drain() == [ToolEnded(4, CANCELLED)]
    assert bench.released
    assert bench.me.stopped
    bench.tell(MutationGranted("/f"))  # it was on its way
    assert bench.started == 0


def test_a_cancelled_tool_ends_at_once_but_keeps_its_file_until_it_has_returned() -> None:
    bench = Bench(mutates=True)
    bench.tell(MutationGranted("/f"), CancelTool())
    assert bench.cancels == 1
    assert bench.session.drain() == [ToolEnded(4, CANCELLED)]
    assert not bench.released and not bench.me.stopped
    bench.tell(ToolUpdated(PARTIAL), ToolReturned(RESULT))
    assert bench.released and bench.me.stopped
    assert bench.session.drain() == []


def test_the_output_of_a_cancelled_command_is_waited_for() -> None:
    bench = Bench(name="bash")
    bench.tell(CancelTool())
    assert bench.cancels == 1
    assert bench.session.drain() == []
    bench.tell(ToolReturned(PARTIAL))
    assert bench.session.drain() == [ToolEnded(4, PARTIAL)]


@pytest.mark.parametrize("mutates", [False, True])
def test_a_second_cancel_gives_no_second_end(mutates: bool) -> None:
    bench = Bench(mutates=mutates)
    bench.tell(CancelTool(), CancelTool())
    assert bench.session.drain() == [ToolEnded(4, CANCELLED)]


class Observer:
    """A call that only observes a task; one that `delegates` is planned by hand first."""

    def __init__(self, name: str, arguments: dict[str, Any], *, delegates: bool = False) -> None:
        self.tasks, self.me = Probe[Any](), Probe[Any]()
        tool = Tool(name, "", "", {}, lambda _, __: RESULT, lambda _, __: None, owned=True, delegates=delegates)
        place = ToolPlace("/", "s", {}, False)
        request = ToolRequest(4, tool, messages.ToolCall("c1", name, arguments), place, self.tasks)
        self.call = ToolCall(request, Probe[Any](), Probe[Any](), lambda _, __: RUNNING)
        self.call.me = self.me
        self.call.begin()


class Running:
    def cancel(self) -> None:
        pass


RUNNING = Running()


def test_a_call_that_is_to_let_go_says_so_behind_what_it_asked_for() -> None:
    waits = Observer("bash", {"action": "wait", "id": "t"})
    waits.call.receive(LetGo("input-needed"))
    assert waits.tasks.drain() == [WaitForTask("t", None, waits.me), ReleaseWaits("input-needed")]
    waits.call.receive(TaskAnswer("UnknownTask: UnknownTask"))
    waits.call.receive(LetGo("input-needed"))
    assert waits.tasks.drain() == []


@pytest.mark.parametrize("early", [True, False])
def test_a_launch_that_is_planned_first_lets_go_once_it_is_asked_for(early: bool) -> None:
    launches = Observer("subagent", {"agent": "a", "task": "t"}, delegates=True)
    planned = AgentsPlanned("run", (AgentRefusal("c", "m"),))
    for mail in (LetGo("input-needed"), planned) if early else (planned, LetGo("input-needed")):
        launches.call.receive(mail)
    first, second = launches.tasks.drain()
    assert isinstance(first, LaunchAgents) and second == ReleaseWaits("input-needed")


@pytest.mark.parametrize("arguments", [{"command": "make"}, {"action": "wait", "id": "t"}])
def test_a_cancelled_call_about_a_task_gives_up_and_ends_with_the_answer_of_the_desk(arguments: dict[str, Any]) -> None:
    waits = Observer("bash", arguments)
    assert len(waits.tasks.drain()) == 1
    waits.call.receive(CancelTool())
    assert waits.tasks.drain() == [GiveUp(waits.me)] and not waits.me.stopped
    waits.call.receive(TaskAnswer("aborted"))
    assert waits.me.stopped
    waits.call.receive(CancelTool())
    assert waits.tasks.drain() == []


def test_the_last_words_cancel_the_tool_and_give_its_file_back() -> None:
    bench = Bench(mutates=True)
    bench.tell(MutationGranted("/f"))
    bench.call.last_words([])
    assert bench.cancels == 1
    assert bench.released


def test_the_last_words_of_a_call_that_still_waits_leave_the_line() -> None:
    bench = Bench(mutates=True)
    bench.call.last_words([])
    assert bench.released


# ---- a desk that died ------------------------------------------------------------------------------------------------


def delegating(desk: Any, **arguments: Any) -> Bench:
    """A call of `subagent` in a session whose tasks belong to `desk`."""
    bench = Bench()
    asked = messages.ToolCall("c1", "subagent", arguments)
    request = ToolRequest(4, builtin_tools()["subagent"], asked, ToolPlace("/", "s", {}, False), desk)
    bench.call = ToolCall(request, bench.session, bench.mutations, bench._start)
    bench.call.me = bench.me
    bench.call.begin()
    return bench


def test_what_a_desk_died_without_hearing_of_ends_the_call_all_the_same() -> None:
    desk = Probe[Any]()
    bench = delegating(desk, action="status")
    assert desk.drain() == [DescribeAgents(None, bench.me)]
    bench.tell(TasksGone(desk))
    assert bench.session.drain() == [ToolEnded(4, NO_DESK)] and bench.me.stopped


def test_a_launch_that_is_still_being_read_ends_when_it_would_be_asked_for() -> None:
    desk = Probe[Any]()
    bench = delegating(desk, agent="scout")
    bench.tell(TasksGone(desk))
    assert bench.session.drain() == [] and not bench.me.stopped
    bench.tell(AgentsPlanned("r1", ()))
    assert bench.session.drain() == [ToolEnded(4, NO_DESK)] and bench.me.stopped
    assert desk.drain() == []


def test_the_death_of_another_desk_is_none_of_its_business() -> None:
    desk = Probe[Any]()
    bench = delegating(desk, action="status")
    bench.tell(TasksGone(Probe[Any]()))
    assert bench.session.drain() == [] and not bench.me.stopped
