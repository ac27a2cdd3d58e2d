"""What stands above the field for input: the question, or the end of the terminal's output.

Pure.
"""

from __future__ import annotations

from protocol.tasks import TaskRecord
from runtime.inspector.detail_view import output_lines
from runtime.inspector.records import Detail, Question
from runtime.inspector.texts import Line, harmless, indented, one_line, wrap


def input_lines(record: TaskRecord, detail: Detail | None, width: int, *, is_answer: bool) -> list[Line]:
    if detail is None:
        return [((" Loading …", "dim"),)]
    if not is_answer:
        return output_lines(record, detail, max(width - 4, 10))
    if not detail.questions:
        return [((" There is no open question.", "dim"),)]
    return _question(detail.questions[0], max(width - 4, 10))


def answer_of(question: Question, typed: str) -> str:
    """The option with this number, else what was typed."""
    word = typed.strip()
    if word.isascii() and word.isdigit() and 0 < int(word) <= len(question.options):
        return question.options[int(word) - 1]
    return typed


def _question(question: Question, width: int) -> list[Line]:
    lines: list[Line] = [()]
    if question.reason and question.message:
        lines += indented(wrap(harmless(question.reason), width), "dim", by=1)
    lines += indented(wrap(harmless(question.message or question.reason), width), "bold", by=1)
    options = [f"{number}. {one_line(option)}" for number, option in enumerate(question.options, 1)]
    if options:
        lines += [(), *indented(options), (), ((" A number chooses one of them.", "dim"),)]
    return lines
