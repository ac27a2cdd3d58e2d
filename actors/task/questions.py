"""The questions of an owner's subagents that wait for an answer: each is answered once, or dropped with its task.

Pure. A question is found by its own id, by its task, or by the name of its agent; without either it is the one that is
open. Whoever comes second finds nothing. Source: `tasks.md` 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from actors.task.child_message import ChildMessage, Contact
from actors.task.notice import TITLE_CHARS, one_line
from actors.task.state import Refused, Task

NO_ASK = 'No pending ask from "{}"'
NONE_OPEN = "No pending ask"
NO_CHILD = "No in-process child found for '{}'."
COMPLETED = "Completed child '{}' is not resumable."
QUEUED = "Child '{}' is queued: it reads no messages before it runs."


class Questions:
    """Those that are open, in the order in which they were asked."""

    def __init__(self) -> None:
        self._open: dict[str, ChildMessage] = {}

    def __iter__(self) -> Iterator[ChildMessage]:
        return iter(tuple(self._open.values()))

    def hear(self, owner_id: str, task: Task, message_id: str, contact: Contact) -> ChildMessage:
        """What an agent says: it is open if it waits for an answer that can still come."""
        launch = task.launch
        message = ChildMessage(
            message_id,
            owner_id,
            task.id,
            launch.agent_name or "",
            launch.title,
            contact.reason,
            contact.message,
            contact.questions,
            is_closed=contact.waits and task.phase != "running",
        )
        if message.is_open:
            task.inquire(message_id)
            self._open[message_id] = message
        return message

    def of(self, task_id: str) -> tuple[ChildMessage, ...]:
        return tuple(each for each in self._open.values() if each.task_id == task_id)

    def take(self, to: str | None, reply_to: str | None) -> ChildMessage:
        """The one that is meant, which is open no longer. Raises `Refused` if there is none, or more than one."""
        found = [each for each in self._open.values() if _is_meant(each, to, reply_to)]
        if not found:
            asked = reply_to if reply_to is not None else to
            raise Refused("NoPendingAsk", text=NONE_OPEN if asked is None else NO_ASK.format(shown(asked)))
        if len(found) > 1:
            ids = ", ".join(each.message_id for each in found)
            raise Refused("AmbiguousAsk", text=f"{len(found)} asks are pending: name one in replyTo ({ids})")
        return self._open.pop(found[0].message_id)

    def drop(self, request_id: str) -> None:
        """Nobody waits for it any more; an unknown one is passed over."""
        self._open.pop(request_id, None)

    def drop_task(self, task_id: str) -> None:
        """The task is over, or is being stopped."""
        for each in self.of(task_id):
            del self._open[each.message_id]


def receiver(to: str, tasks: Iterable[Task]) -> Task:
    """The agent that can be told something now: by task id, or by a name that only one has. Raises `Refused`."""
    agents = [task for task in tasks if task.launch.kind == "agent"]
    known = [task for task in agents if task.id == to]
    known = known or [task for task in agents if is_called(task.launch.agent_name or "", to)]
    running = [task for task in known if task.phase == "running"]
    if len(running) > 1:
        ids = ", ".join(task.id for task in running)
        raise Refused(
            "AmbiguousTarget", text=f"{len(running)} running agents are called {shown(to)}: name one of {ids}"
        )
    if running:
        return running[0]
    last = known[-1].phase if known else None
    why = {None: NO_CHILD, "queued": QUEUED}.get(last, COMPLETED)
    raise Refused("UnknownTask", text=why.format(shown(to)))


def is_called(name: str, wanted: str) -> bool:
    """Names are whole, in any case."""
    return name.casefold() == wanted.casefold()


def shown(value: str) -> str:
    return one_line(value, TITLE_CHARS)


def _is_meant(question: ChildMessage, to: str | None, reply_to: str | None) -> bool:
    is_its = to is None or question.task_id == to or is_called(question.agent, to)
    return is_its and reply_to in (None, question.message_id)
