"""Views of a task's output for tests: of a text, as a task that has put it out would hand it over."""

from __future__ import annotations

from typing import Any

from actors.shell.truncate import truncate_tail
from actors.task.retained import PAGE_BYTES
from actors.task.view import OutputView, output_ref


def view(text: str, gap: tuple[int, int] | None = None, *, is_cut: bool = False, **fields: Any) -> OutputView:
    """`gap` are bytes that are not kept, `is_cut` tells that something stood before the end."""
    data = text.encode()
    ref = output_ref("owner-1", "task-1-0", len(data), gap)
    return OutputView(ref, truncate_tail(text), 0, 5, tail=data[-PAGE_BYTES:], tail_is_cut=is_cut, **fields)
