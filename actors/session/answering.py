"""Makes answers about every entry of a long session in a pump, from a copy of what they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.base import Address, StartPump
from actors.mail import AnswerMade, SessionMail, Ticket


class Answerer:
    """Ends with one `AnswerMade` for each."""

    def __init__(self, start_pump: StartPump) -> None:
        self._start_pump = start_pump

    def start(self, ticket: Ticket, make: Callable[[], Any], session: Address[SessionMail]) -> None:
        self._start_pump("answer", lambda: session.tell(made(ticket, make)))


def made(ticket: Ticket, make: Callable[[], Any]) -> AnswerMade:
    try:
        return AnswerMade(ticket, make())
    except Exception as error:
        return AnswerMade(ticket, None, f"{ticket.command} failed: {type(error).__name__}")
