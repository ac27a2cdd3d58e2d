"""The agents of one launch: what has become of each, so that the call is answered once, for all of them.

Pure. Source: `tasks.md` 3.4.
"""

from __future__ import annotations

from actors.mail import AgentSlot


class Batch:
    """`size` agents; `tasks` maps those that were admitted to their place; `number` is its own at its desk."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self._slots: list[AgentSlot | None] = [None] * size
        self.tasks: dict[str, int] = {}
        self._is_resting = self._has_changed = False

    def fill(self, place: int, slot: AgentSlot) -> None:
        self._slots[place] = slot

    @property
    def answer(self) -> tuple[AgentSlot, ...] | None:
        """None while one is still waited for."""
        found = tuple(slot for slot in self._slots if slot is not None)
        return found if len(found) == len(self._slots) else None

    def shown(self, now: dict[str, AgentSlot]) -> tuple[AgentSlot, ...]:
        """All that were admitted, those that are waited for as they are `now`."""
        return tuple(self._slots[place] or now[task_id] for task_id, place in self.tasks.items())

    def changes(self) -> bool:
        """Whether what it looks like now is to be shown at once; if so, a rest follows."""
        self._has_changed = self._is_resting
        was_resting, self._is_resting = self._is_resting, True
        return not was_resting

    def rested(self) -> bool:
        """Whether something has changed in the rest, and is to be shown now; if so, another rest follows."""
        had_changed, self._has_changed = self._has_changed, False
        self._is_resting = had_changed
        return had_changed
