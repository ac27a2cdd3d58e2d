"""Who may change which file: mutations of one real path wait for each other, those of different files do not."""

from __future__ import annotations

from collections import deque
from typing import assert_never

from actors.base import Actor, Address
from actors.mail import AcquireMutation, MutationDeskMail, MutationGranted, ReleaseMutation

Holder = Address[MutationGranted]


class MutationDesk(Actor[MutationDeskMail]):
    """Owns the line in front of each file; the first in line holds it. One for the whole process, so that two
    sessions cannot interleave their edits."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[Holder]] = {}

    def receive(self, mail: MutationDeskMail) -> None:
        match mail:
            case AcquireMutation(path, holder):
                line = self._lines.setdefault(path, deque())
                line.append(holder)
                if len(line) == 1:
                    holder.tell(MutationGranted(path))
            case ReleaseMutation(path, holder):
                self._release(path, holder)
            case _:
                assert_never(mail)

    def _release(self, path: str, holder: Holder) -> None:
        line = self._lines.get(path)
        if line is None or holder not in line:
            return
        held = line[0] is holder
        line.remove(holder)
        if not line:
            del self._lines[path]
        elif held:
            line[0].tell(MutationGranted(path))
