"""The output of a command as far as it is kept, with labels for what is missing.

Pure.
"""

from __future__ import annotations

from protocol.tasks import TaskRecord
from runtime.inspector.records import Detail
from runtime.inspector.texts import Line, fold, harmless, indented, one_line

NO_OUTPUT = "No output available"
NOT_KEPT = "The output is no longer kept"
KEPT_BYTES = 8192


def output_lines(record: TaskRecord, detail: Detail, width: int) -> list[Line]:
    """What is kept of a shell's output, wrapped; one line that says so when there is none."""
    tail = harmless(detail.tail).strip("\n") if isinstance(detail.tail, str) else ""
    if tail:
        return indented(fold(tail, width))
    had_some = bool(record.output) and record.output.byte_count not in ("", "0")  # type: ignore[union-attr]
    return indented([NOT_KEPT if had_some and not isinstance(detail.tail, str) else NO_OUTPUT], "dim")


def gap_labels(record: TaskRecord, detail: Detail) -> list[str]:
    """What is missing of the output: lost bytes, and what stands before the tail."""
    output = detail.task.output or record.output
    if not output:
        return []
    labels = [f"[Output omitted: bytes {each.start}-{each.end}]" for each in output.omitted_ranges]
    if output.byte_count.isdigit() and int(output.byte_count) > KEPT_BYTES:
        labels.append(f"[The last 8 KiB of {int(output.byte_count):,} bytes]")
    return [one_line(label) for label in labels]
