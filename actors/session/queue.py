"""The messages that wait for the agent: steering, follow-ups, and the hold of a paused queue.

One queue belongs to one session, and only that session tells it anything; every mail gets exactly one answer, in
order. Entries are known by key, never by their text. The queue is memory: it does not survive the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from actors.base import Actor, Address
from actors.mail import (
    ClearQueue,
    Enqueue,
    PauseQueue,
    QueueChanged,
    QueuedMessage,
    QueueKind,
    QueueMail,
    QueueView,
    ResumeQueue,
    SessionMail,
    SetQueueMode,
    TakeMessages,
    Taken,
)
from protocol.commands import QueueMode


class Queue(Actor[QueueMail]):
    """Owns both lists, the hold and the modes. `modes` are those of the settings."""

    def __init__(self, session: Address[SessionMail], modes: Mapping[QueueKind, QueueMode]) -> None:
        self._session = session
        self._modes = dict(modes)
        self._live: dict[QueueKind, list[QueuedMessage]] = {"steering": [], "followUp": []}
        self._hold: dict[QueueKind, list[QueuedMessage]] = {"steering": [], "followUp": []}
        self._paused = False
        self._next_key = 1

    def receive(self, mail: QueueMail) -> None:
        match mail:
            case TakeMessages(kind, next_run):
                self._hand_out(kind, next_run)
            case Enqueue(ticket, kind, text, content):
                target = self._hold if self._paused else self._live
                target[kind].append(QueuedMessage(self._next_key, text, content))
                self._next_key += 1
                self._session.tell(QueueChanged(self._view(), ticket, announce=True))
            case ClearQueue(ticket):
                cleared = self._view()
                self._empty()
                self._session.tell(QueueChanged(self._view(), ticket, announce=True, cleared=cleared))
            case PauseQueue(ticket):
                self._pause()
                self._session.tell(QueueChanged(self._view(), ticket))
            case ResumeQueue(ticket):
                released = self._resume()
                self._session.tell(QueueChanged(self._view(), ticket, released=released))
            case SetQueueMode(ticket, kind, mode):
                self._modes[kind] = mode
                self._session.tell(QueueChanged(self._view(), ticket))
            case _:
                assert_never(mail)

    def _hand_out(self, kind: QueueKind, next_run: bool) -> None:
        if next_run:
            kind = "steering" if self._live["steering"] else "followUp"
        waiting = self._live[kind]
        if kind == "followUp" and self._live["steering"]:
            taken: list[QueuedMessage] = []
        else:
            taken = waiting[:1] if self._modes[kind] == "one-at-a-time" else waiting[:]
        del waiting[: len(taken)]
        self._session.tell(Taken(self._view(), kind, tuple(taken)))

    def _empty(self) -> None:
        for lists in (self._live, self._hold):
            for entries in lists.values():
                entries.clear()

    def _pause(self) -> None:
        """Moves what waits behind what is already held, so that the order of arrival stays."""
        self._paused = True
        for kind, entries in self._live.items():
            self._hold[kind].extend(entries)
            entries.clear()

    def _resume(self) -> bool:
        if not self._paused:
            return False
        self._paused = False
        released = any(self._hold.values())
        for kind, entries in self._hold.items():
            self._live[kind][:0] = entries
            entries.clear()
        return released

    def _view(self) -> QueueView:
        def texts(kind: QueueKind) -> tuple[str, ...]:
            return tuple(entry.text for entry in (*self._hold[kind], *self._live[kind]))

        return QueueView(texts("steering"), texts("followUp"), paused=self._paused)
