"""What every group of commands has at hand of its session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from actors.mail import SavePreference, Ticket

if TYPE_CHECKING:
    from actors.session.actor import Session

Answers = dict[type[Any], Callable[[Ticket, Any], None]]


class Group:
    """Base of the groups; each tells in `answers` what answers which command."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._services = session.services
        self._history = session.history
        self._outbox = session.outbox
        self._setting = session.setting

    def save(self, path: tuple[str, ...], value: Any) -> None:
        """Puts a value into the user's settings. The session does not end before that is done."""
        self._session.saves_owed += 1
        self._services.preferences.tell(SavePreference(path, value, self._session.me))

    def answers(self) -> Answers:
        raise NotImplementedError
