"""The tools that work for a run: each call is an actor of its own, known by a number and by its place in the reply.

Part of the session actor.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.base import Address, Child
from actors.mail import (
    CancelTool,
    LetGo,
    ParentView,
    SessionMail,
    TaskDeskMail,
    TasksGone,
    ToolCallMail,
    ToolPlace,
    ToolRequest,
)
from actors.model.prompt import ToolSpec
from actors.session.history import History
from actors.session.services import Services
from actors.session.setting import Setting
from protocol.messages import ToolCall
from protocol.tasks import YieldReason


class ToolCalls:
    """`next_number` gives numbers that nothing else in the session has; `tasks` owns what tools leave running; `unread`
    tells whether a message waits for the tools to end, and whose."""

    def __init__(
        self,
        services: Services,
        history: History,
        setting: Setting,
        me: Address[SessionMail],
        next_number: Callable[[], int],
        tasks: Callable[[], Address[TaskDeskMail] | None],
        unread: Callable[[], YieldReason | None],
    ) -> None:
        self._services = services
        self._history = history
        self._setting = setting
        self._me = me
        self._next_number = next_number
        self._tasks = tasks
        self._unread = unread
        self._running: dict[int, tuple[int, ToolCall, Child[ToolCallMail]]] = {}
        self.specs = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in services.tools.values())

    def __contains__(self, number: int) -> bool:
        return number in self._running

    # -- before

    def fault(self, call: ToolCall) -> str | None:
        """Why it cannot be started."""
        tool = self._services.tools.get(call.name)
        if tool is None:
            return self._services.absent_tools.get(call.name, f"Tool {call.name} not found")
        return self._services.check_arguments(tool, call.arguments)

    def one_by_one(self, calls: list[ToolCall]) -> bool:
        """Whether these must not run side by side."""
        tools = [self._services.tools.get(call.name) for call in calls]
        return any(tool is not None and not tool.parallel for tool in tools)

    # -- at work

    def start(self, place: int, call: ToolCall) -> None:
        number = self._next_number()
        tool = self._services.tools[call.name]
        owner = self._tasks() if tool.owned else None
        parent = self._parent_view() if tool.delegates and owner is not None else None
        started = self._services.start_tool_call(
            ToolRequest(number, tool, call, self._where(), owner, parent), self._me
        )
        self._running[number] = (place, call, started)
        unread = self._unread() if owner is not None else None
        if unread is not None:
            started.tell(LetGo(unread))

    def call(self, number: int) -> ToolCall | None:
        """What the model asked for; None if it runs no more."""
        running = self._running.get(number)
        return None if running is None else running[1]

    def end(self, number: int) -> int:
        """It runs no more: its place."""
        return self._running.pop(number)[0]

    def clear(self) -> None:
        self._running.clear()

    def let_go(self, reason: YieldReason) -> None:
        """A message waits: tools that wait for tasks of their own end, and the tasks run on."""
        for _, call, started in self._running.values():
            if self._services.tools[call.name].owned:
                started.tell(LetGo(reason))

    def lose_tasks(self, desk: Address[TaskDeskMail]) -> None:
        """The owner of tasks is gone, or has no session: calls that it never heard of wait in vain."""
        for _, _, started in self._running.values():
            started.tell(TasksGone(desk))

    def cancel(self) -> None:
        for _, _, started in self._running.values():
            started.tell(CancelTool())

    # -- what a call is given

    def _where(self) -> ToolPlace:
        history, setting = self._history, self._setting
        path = history.path if history.journal.exists_on_disk else None
        return ToolPlace(
            history.cwd,
            history.session_id,
            self._services.environment(history.session_id, path, setting.model, setting.level),
            setting.model is not None and "image" in setting.model.input,
            setting.surroundings.tools,
        )

    def _parent_view(self) -> ParentView:
        history, setting = self._history, self._setting
        return ParentView(
            path=history.path,
            is_saved=history.journal.exists_on_disk,
            branch=tuple(history.tree.path(history.tree.leaf_id)),
            model=setting.model,
            level=setting.level,
            catalog=setting.catalog,
            defaults=setting.defaults,
            tools=tuple(self._services.tools),
        )
