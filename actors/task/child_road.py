"""Where the session of a subagent's child finds its Writer, its desk and its shell desk: all three are its subagent."""

from __future__ import annotations

from actors.base import Address
from actors.mail import ChildSaid, SessionDeskMail, ShellDeskMail, SubagentMail, WriterMail


class ChildRoad:
    """An address for all that a session tells these three; it is handed on as it is."""

    __slots__ = ("_to",)

    def __init__(self, to: Address[SubagentMail]) -> None:
        self._to = to

    def tell(self, mail: WriterMail | SessionDeskMail | ShellDeskMail) -> None:
        self._to.tell(ChildSaid(mail))
