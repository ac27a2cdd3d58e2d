"""One call of a tool: it runs the tool in a pump and tells its session what comes of it.

It owns the arguments and the cancel flag. Exactly one `ToolEnded` comes of it. A tool that changes a file first gets
that file for itself from the MutationDesk, and gives it back only when the tool has really ended, cancelled or not.
Where the session owns tasks, a shell command or a subagent is one of them, and the call is no more than its observer.
In a subagent a call may wait for the parent's answer, without any limit of time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, assert_never

from actors.base import Actor, Address
from actors.mail import (
    AcquireMutation,
    AgentsAnswer,
    AgentsPlanned,
    CancelTool,
    GiveUp,
    IntercomAnswer,
    LetGo,
    MutationDeskMail,
    MutationGranted,
    ParentAnswer,
    ReleaseMutation,
    ReleaseWaits,
    SessionMail,
    SubagentMail,
    TaskAnswer,
    TaskDeskMail,
    TasksGone,
    ToolCallMail,
    ToolEnded,
    ToolProgress,
    ToolRequest,
    ToolReturned,
    ToolUpdated,
    WithdrawContact,
)
from actors.tool.table import ABORTED, ToolFailure, ToolOutput
from protocol.messages import TextContent
from protocol.tasks import YieldReason


class RunningTool(Protocol):
    """A tool at work in a pump. `cancel` asks it to end and does not wait."""

    def cancel(self) -> None: ...


StartTool = Callable[[ToolRequest, Address[ToolCallMail]], RunningTool]
"""Runs a tool; what comes of it is told as `ToolUpdated` and one `ToolReturned`."""

KILLED_BY_CANCEL = frozenset({"bash"})
"""Tools whose result is worth waiting for after a cancel: they end at once, and tell the output so far."""


NO_DESK = ToolOutput([TextContent("the tasks of this session failed")], is_error=True)
CANCELLED = ToolOutput([TextContent(ABORTED)], is_error=True)


class ToolCall(Actor[ToolCallMail]):
    """`supervisor` passes on what a subagent says to its parent."""

    def __init__(
        self,
        request: ToolRequest,
        session: Address[SessionMail],
        mutations: Address[MutationDeskMail],
        start_tool: StartTool,
        supervisor: Address[SubagentMail] | None = None,
    ) -> None:
        self._request = request
        self._session = session
        self._mutations = mutations
        self._start_tool = start_tool
        self._supervisor = supervisor
        self._running: RunningTool | None = None
        self._told = self._ordered = self._contacted = self._has_no_desk = False
        self._let_go_for: YieldReason | None = None
        self._path: str | None = None

    def begin(self) -> None:
        if self._request.tool.talks == "up" and self._supervisor is not None:
            self._contact(self._supervisor)
            return
        if self._request.tasks is not None and not self._is_planned_in_a_pump:
            self._order(self._request.tasks)
            return
        self._path = self._request.tool.mutates(self._request.tool_call.arguments, self._request.place.cwd)
        if self._path is None:
            self._running = self._start_tool(self._request, self.me)
        else:
            self._mutations.tell(AcquireMutation(self._path, self.me))

    def receive(self, mail: ToolCallMail) -> None:
        match mail:
            case ToolUpdated(partial):
                if not self._told:
                    self._session.tell(ToolProgress(self._request.call, partial))
            case ToolReturned(output):
                self._release()
                self._end(output)
                self.me.stop()
            case MutationGranted():
                if not self._told:
                    self._running = self._start_tool(self._request, self.me)
            case AgentsPlanned():
                self._launch(mail)
            case TaskAnswer() | AgentsAnswer() | IntercomAnswer() | ParentAnswer():
                self._end(self._output(mail))
                self.me.stop()
            case TasksGone(desk):
                self._lose(desk)
            case CancelTool():
                self._cancel()
            case LetGo(reason):
                self._let_go_for = reason
                self._let_go()
            case _:
                assert_never(mail)

    def last_words(self, unread: list[ToolCallMail]) -> None:
        if self._running is not None:
            self._running.cancel()
        self._give_up()
        self._release()

    def _order(self, tasks: Address[TaskDeskMail]) -> None:
        """What the call starts belongs to the session's tasks; their desk answers."""
        try:
            if self._request.tool.talks == "down":
                from actors.tool.intercom_call import order as talk

                tasks.tell(talk(self._request, self.me))
            elif self._request.tool.delegates:
                from actors.tool.subagent_call import order as ask

                tasks.tell(ask(self._request, self.me))
            else:
                from actors.tool.shell_call import order

                tasks.tell(order(self._request, self.me))
            self._ordered = True
        except ToolFailure as refused:
            self._end(ToolOutput([TextContent(str(refused))], is_error=True))
            self.me.stop()

    @property
    def _is_planned_in_a_pump(self) -> bool:
        """A launch of subagents, and what is about the kinds that there are: these are files."""
        from_desk = self._request.tool_call.arguments.get("action") in ("status", "wait", "kill")
        return self._request.tool.delegates and not from_desk

    def _launch(self, planned: AgentsPlanned) -> None:
        from actors.tool.subagent_call import launch

        if self._told or self._request.tasks is None:  # it was cancelled meanwhile
            self.me.stop()
            return
        if self._has_no_desk:
            self._end(NO_DESK)
            self.me.stop()
            return
        self._request.tasks.tell(launch(self._request, planned, self.me))
        self._ordered = True
        self._let_go()

    def _let_go(self) -> None:
        """Told by the call and not by its session, so that it comes after what the call asked for."""
        if self._let_go_for is not None and self._ordered and not self._told and self._request.tasks is not None:
            self._request.tasks.tell(ReleaseWaits(self._let_go_for))

    def _contact(self, supervisor: Address[SubagentMail]) -> None:
        from actors.tool.contact_call import contact

        supervisor.tell(contact(self._request, self.me))
        self._contacted = True

    def _output(self, answer: TaskAnswer | AgentsAnswer | IntercomAnswer | ParentAnswer) -> ToolOutput:
        """What the desk or the parent has answered, as a result."""
        tool = self._request.tool
        if isinstance(answer, ParentAnswer):
            from actors.tool.contact_call import output as heard

            return heard(answer)
        if isinstance(answer, IntercomAnswer) or (isinstance(answer, TaskAnswer) and tool.talks == "down"):
            from actors.tool.intercom_call import output as talked

            return talked(answer)
        if isinstance(answer, TaskAnswer) and not tool.delegates:
            from actors.tool.shell_call import output as said

            return said(self._request, answer)
        from actors.tool.subagent_call import output as answered

        return answered(self._request, answer)

    def _lose(self, desk: Address[TaskDeskMail]) -> None:
        """What the desk had heard it has answered with its last words; this is for what it had not."""
        if desk is not self._request.tasks:
            return
        self._has_no_desk = True
        if self._ordered:
            self._end(NO_DESK)
            self.me.stop()

    def _give_up(self) -> None:
        if self._contacted and not self._told and self._supervisor is not None:
            self._supervisor.tell(WithdrawContact(self.me))
        if self._ordered and not self._told and self._request.tasks is not None:
            self._request.tasks.tell(GiveUp(self.me))

    def _cancel(self) -> None:
        """A cancelled tool that is still at work keeps its file until it has returned. The desk answers what it is
        asked to give up: a launch with the output so far, once nothing of it is left."""
        self._give_up()
        if self._ordered:
            return
        if self._running is None:
            self._release()
            self._end(CANCELLED)
            self.me.stop()
            return
        self._running.cancel()
        if self._request.tool.name not in KILLED_BY_CANCEL:
            self._end(CANCELLED)

    def _end(self, output: ToolOutput) -> None:
        if not self._told:
            self._told = True
            self._session.tell(ToolEnded(self._request.call, output))

    def _release(self) -> None:
        if self._path is not None:
            self._mutations.tell(ReleaseMutation(self._path, self.me))
            self._path = None
