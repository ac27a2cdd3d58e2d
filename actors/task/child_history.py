"""The earlier entries of a child's transcript, out of its session file.

Read in a pump, anew for each page: who scrolls back that far waits for a disk anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import UnsetType

from actors.base import Address, StartPump
from actors.mail import HistoryRead, TaskDeskMail
from actors.session.file import SessionFileError
from actors.session.tree import Entry
from actors.task.transcript import History, Span, numbered
from protocol.codec import encode
from protocol.entries import CustomMessageEntry


class ChildHistories:
    """`read` gives the entries of a session file. Raises `SessionFileError`, `OSError`."""

    def __init__(self, start_pump: StartPump, read: Callable[[str], list[Entry]]) -> None:
        self._start_pump = start_pump
        self._entries = read

    def read(self, number: int, history: History, span: Span, to: Address[TaskDeskMail]) -> None:
        """Ends with `HistoryRead`."""
        self._start_pump("history", lambda: to.tell(HistoryRead(number, self._read(history, span))))

    def _read(self, history: History, span: Span) -> tuple[bytes, ...] | None:
        assert history.path is not None
        try:
            found = numbered(_messages(self._entries(history.path)[history.inherited :]), span)
        except (SessionFileError, OSError):
            return None
        except Exception:  # whoever asked must not wait for ever
            return None
        return None if found is None else tuple(found)


def _messages(entries: list[Entry]) -> Iterator[bytes]:
    """What a client was told as messages, in the order of the file."""
    for entry in entries:
        if not isinstance(entry.head.message, UnsetType):
            yield bytes(entry.head.message)
        elif entry.head.type == CustomMessageEntry.__struct_config__.tag:
            yield encode({"role": "custom", "content": entry.head.content, "display": entry.head.display is True})
