"""The child of a subagent: its session, its file, and what its commands left in the background.

Part of the subagent. There is one child at most, and one that has let go is never told to work again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from actors.base import Address, Child
from actors.mail import AgentPlan, ChildOpened, Commands, NoMoreCommands, Retire, SessionMail, SubagentMail, Ticket
from actors.task.subagent.child_road import ChildRoad
from actors.task.transcript import History, Tail
from protocol import commands as c

if TYPE_CHECKING:
    from actors.mail import Remains
    from actors.session.file import OpenedSession
    from actors.session.surroundings import Surroundings
    from actors.task.worktree import Checkout

FROM_PARENT = "From the agent that gave you this task:\n\n{}"


class ChildPort(Protocol):
    """The files of a child, in pumps."""

    def open(self, plan: AgentPlan, to: Address[SubagentMail]) -> None: ...
    def abandon(self) -> None: ...
    def keep(
        self, plan: AgentPlan, text: str, facts: dict[str, Any], checkout: Checkout | None, to: Address[SubagentMail]
    ) -> None: ...


StartChild = Callable[
    [AgentPlan, "OpenedSession", "Surroundings", ChildRoad, Address[SubagentMail]], Child[SessionMail]
]


class ChildSession:
    """`is_opening` tells that its file is still being made, `lives` that its session has not let go of everything."""

    def __init__(self) -> None:
        self.is_opening = True
        self.session_file: str | None = None
        self.artifacts: tuple[str, ...] = ()
        self.checkout: Checkout | None = None
        self._inherited = 0
        self._opened: OpenedSession | None = None
        self._session: Child[SessionMail] | None = None
        self._remains: list[Remains] = []
        self._early: list[str] = []
        self._commands = 0
        self._has_let_go = False

    @property
    def lives(self) -> bool:
        return self._session is not None

    def opened(self, mail: ChildOpened) -> None:
        self.is_opening = False
        self.session_file = mail.opened.journal.path
        self.artifacts = mail.artifacts
        self.checkout = mail.checkout
        self._inherited = len(mail.opened.entries)
        self._opened = mail.opened

    def refused(self) -> None:
        """It will never be."""
        self.is_opening = False

    def begin(self, session: Child[SessionMail]) -> None:
        self._session = session

    def give(self, task: str) -> None:
        """What it was told before comes right behind it."""
        self._command("prompt", c.Prompt(message=task))
        for text in self._early:
            self.steer(text)

    def steer(self, text: str) -> None:
        if self._session is not None and not self._has_let_go:
            self._command("steer", c.Steer(message=FROM_PARENT.format(text)))
        elif self.is_opening:
            self._early.append(text)

    def let_go(self, *, alone: bool = False) -> None:
        """Its run is aborted and its tools are ended. With `alone` it stops by itself."""
        self._has_let_go = True
        if self._session is not None:
            self._session.tell(Retire(alone))
            self._session.tell(NoMoreCommands())

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()

    def close(self) -> None:
        """There is no session any more, and so no file and nothing in the background."""
        self._session = None
        if self._opened is not None:
            self._opened.journal.close()
            self._opened = None
        self.kill_remains()

    def keep_remains(self, remains: Remains) -> None:
        """What its commands left in the background lives no longer than the child."""
        self._remains = [kept for kept in self._remains if kept.close()]
        self._remains.append(remains)
        if self._session is None:
            self.kill_remains()

    def kill_remains(self) -> None:
        for remains in self._remains:
            remains.kill_group_leftovers()
        self._remains.clear()

    def history(self, tail: Tail) -> History:
        """`tail` is what is kept of its conversation; the rest is in its file."""
        return tail.history(self.session_file, self._inherited)

    def _command(self, name: str, command: c.Prompt | c.Steer) -> None:
        assert self._session is not None
        self._commands += 1
        self._session.tell(Commands(((Ticket(self._commands, b"", name), command),)))
