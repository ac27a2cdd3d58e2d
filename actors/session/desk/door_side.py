"""The door for inspectors: it opens with the first task of the process, and is shown each session that is current.

Part of the session desk. Nobody is shown anything before there is a door.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.base import Address, Child
from actors.mail import CloseDoor, DoorMail, SessionDeskMail, SessionLeft, SessionMail, ShowSession

DOOR = "door"
"""What the door is called in its `Down`; sessions are numbered."""

StartDoor = Callable[[Address[SessionDeskMail]], Child[DoorMail]]
"""Lets inspectors in from now on."""


class DoorSide:
    """Without `start_door` no inspector can come."""

    def __init__(
        self, start_door: StartDoor | None, complain: Callable[[str], None], me: Address[SessionDeskMail]
    ) -> None:
        self._start_door = start_door
        self._complain = complain
        self._me = me
        self._door: Child[DoorMail] | None = None
        self._is_shutting = False

    def open(self, current: Address[SessionMail] | None) -> None:
        """Once; it stays open for the sessions that follow."""
        if self._start_door is None:
            return
        start_door, self._start_door = self._start_door, None
        try:
            self._door = start_door(self._me)
        except OSError as error:  # its modules are loaded now, and there may be no descriptor left
            self._complain(f"no inspector can connect: {error}")
        if current is not None:
            self.show(current)

    def show(self, session: Address[SessionMail]) -> None:
        if self._door is not None:
            self._door.tell(ShowSession(session))

    def leave(self, session: Address[SessionMail], why: str) -> None:
        """Inspectors who look at this one hear why it is no longer there."""
        if self._door is not None:
            self._door.tell(SessionLeft(session, why))

    def shut(self) -> bool:
        """Whether nobody is inside any more."""
        if self._door is not None and not self._is_shutting:
            self._is_shutting = True
            self._door.tell(CloseDoor())
        return self._door is None

    def gone(self) -> None:
        self._door = None
