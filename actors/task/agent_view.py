"""What a subagent answered, as its parent is shown it: a frozen copy, taken when it was over.

Pure. The parent gets the beginning of a long answer and is told that there is more, or only where it was saved.
Source: `tasks.md` 3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from actors.shell.truncate import count_bytes, count_lines, format_size, truncate_head
from actors.task.transcript import History

if TYPE_CHECKING:
    from actors.task.checkout import Changes

KEPT_BYTES = 204_800
DETAIL_CHARS = 7900
"""About the 8 KiB that a look at a task shows."""


class AgentView(Struct, frozen=True):
    """`text` is the last thing that the agent itself said, `shown` what its parent gets of it; `artifacts` are the
    files that are kept of it, `skipped` the models that were passed over, `patch` what it changed in its worktree,
    `history` what of its conversation is kept and where the rest is."""

    text: str
    shown: str
    artifacts: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    patch: str | None = None
    history: History = History()


def agent_view(
    text: str,
    *,
    max_lines: int,
    max_bytes: int,
    saved_to: str | None = None,
    only_file: bool = False,
    artifacts: tuple[str, ...] = (),
    skipped: tuple[str, ...] = (),
    changes: Changes | None = None,
) -> AgentView:
    """`only_file` leaves the text to the file, if it was saved to one. `changes` are told after it."""
    shown = _bounded(text, max_lines, max_bytes)
    if saved_to is not None:
        size, lines = format_size(count_bytes(text)), count_lines(text)
        saved = f"Output saved to: {saved_to} ({size}, {lines} lines). Read this file if needed."
        shown = saved if only_file else f"{shown}\n\n{saved}"
    kept = truncate_head(text, KEPT_BYTES, KEPT_BYTES).content
    if changes is None:
        return AgentView(kept, shown, artifacts, skipped)
    kept, shown = ("\n\n".join(filter(None, (said, changes.text))) for said in (kept, shown))
    return AgentView(kept, shown, artifacts, skipped, changes.patch)


def _bounded(text: str, max_lines: int, max_bytes: int) -> str:
    cut = truncate_head(text, max_lines, max_bytes)
    if not cut.truncated:
        return text
    of_lines = f"showing first {cut.output_lines} of {cut.total_lines} lines"
    of_bytes = f"{format_size(cut.output_bytes)} of {format_size(cut.total_bytes)}"
    return f"[TRUNCATED: {of_lines}, {of_bytes}]\n{cut.content}"
