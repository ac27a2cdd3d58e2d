"""A task's output as an answer shows it: a frozen copy, taken when it was asked for.

Pure. A launch and a settled wait show the tail of everything; a wait that yielded shows the next page. Gaps and
omissions are labelled where they are. Source: `tasks.md` 1.8 and 2.8.
"""

from __future__ import annotations

from msgspec import Struct

from actors.shell.output import Sanitizer
from actors.shell.truncate import Truncation
from actors.task.retained import Page
from protocol.tasks import OmittedRange, OutputRef

MORE = "[Additional output not shown; wait again to retrieve retained output.]"
CUT = "[Output truncated.]"
EARLIER = "[Earlier output omitted]"
TAIL_CHARS = 7900
"""A notice holds 8,000 characters, and what was said last counts most."""


class OutputView(Struct, frozen=True):
    """`cut` is the tail as text, `path` the file of all of it, if there is one. `page` is set for a wait that yielded.
    `tail` is the end as bytes, for previews, `tail_is_cut` whether something stands before it. `wall_ms` is how long
    the command has run."""

    ref: OutputRef
    cut: Truncation
    last_line_bytes: int
    wall_ms: int
    path: str | None = None
    page: Page | None = None
    tail: bytes = b""
    tail_is_cut: bool = False


def output_ref(owner_id: str, task_id: str, total: int, gap: tuple[int, int] | None) -> OutputRef:
    """Names what a task has put out so far."""
    omitted = (OmittedRange(str(gap[0]), str(gap[1])),) if gap else ()
    return OutputRef(owner_id, task_id, f"output-{task_id}", str(total), omitted)


def page_text(page: Page) -> str:
    """One page, with what is missing before it and whether there is more behind it."""
    gap = f"[Output omitted: bytes {page.omitted[0]}-{page.omitted[1]}]\n" if page.omitted else ""
    text = gap + page.data.decode(errors="replace")
    if not page.more:
        return text
    return f"{text}\n{MORE}" if text else MORE


def settled_text(view: OutputView) -> str:
    """All that is retained, as far as an answer may be long."""
    gaps = [f"[Output omitted: bytes {each.start}-{each.end}]" for each in view.ref.omitted_ranges]
    lines = [*gaps, view.cut.content.removesuffix("\n") if view.cut.truncated else view.cut.content]
    return "\n".join(filter(None, [*lines, CUT if view.cut.truncated else ""]))


def tail_text(view: OutputView) -> str:
    """The end of the output without escape sequences, for a notice or a detail view."""
    sanitizer = Sanitizer()
    text = sanitizer.feed(view.tail) + sanitizer.end()
    is_cut = view.tail_is_cut or len(text) > TAIL_CHARS
    return f"{EARLIER}\n{text[-TAIL_CHARS:]}" if is_cut else text
