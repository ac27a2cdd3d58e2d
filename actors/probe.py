"""A real address that keeps what it is told, for tests that stand where another actor would."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

Mail = TypeVar("Mail")


class Probe(Generic[Mail]):
    """Takes any mail. `next` waits for one with a deadline in seconds and fails loudly when none comes."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[Mail] = SimpleQueue()
        self.stopped = False

    def tell(self, mail: Mail) -> None:
        self._inbox.put(mail)

    def stop(self) -> None:
        self.stopped = True

    def next(self, deadline: float = 10.0) -> Mail:
        try:
            return self._inbox.get(timeout=deadline)
        except Empty:
            raise AssertionError(f"no mail within {deadline} s") from None

    def of(self, kind: type[Any], deadline: float = 10.0) -> Any:
        """The next mail of `kind`; mail of other kinds before it is dropped."""
        while True:
            mail = self.next(deadline)
            if isinstance(mail, kind):
                return mail

    def drain(self) -> list[Mail]:
        """All that is there now, without waiting."""
        mails = []
        while not self._inbox.empty():
            mails.append(self._inbox.get())
        return mails
