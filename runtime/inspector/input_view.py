"""What stands above the field for input: the question, or the end of the terminal's output.

Pure.
"""

from __future__ import annotations

import re

from protocol.tasks import TaskRecord
from runtime.inspector.output_view import output_lines
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


def question_lines(question: Question, width: int) -> list[Line]:
    """What is asked, and what there is to choose from."""
    lines = indented(wrap(harmless(question.message), width), "bold", by=1) if question.message else []
    for asked in question.questions:
        if asked.question:
            lines += indented(wrap(harmless(asked.question), width), by=1)
        for number, option in enumerate(asked.options, 1):
            lines += indented(wrap(f"{number}. {one_line(option)}", width - 2), by=3)
    return lines or [((" A question is open.", ""),)]


def options_of(question: Question) -> tuple[str, ...]:
    """The answers to choose from, if there is one choice to make and no more."""
    (*others, asked) = question.questions or (None,)
    return asked.options if asked is not None and asked.type in ("single", "multi") and not others else ()


def answer_of(question: Question, typed: str) -> str:
    """The option with this number, or those with these where several may be chosen, else what was typed."""
    options = options_of(question)
    words = re.split(r"[,\s]+", typed.strip())
    is_choice = all(re.fullmatch(r"[0-9]{1,4}", word) and 0 < int(word) <= len(options) for word in words)
    if is_choice and (len(words) == 1 or _takes_several(question)):
        return ", ".join(options[int(word) - 1] for word in words)
    return typed


def _takes_several(question: Question) -> bool:
    return any(asked.type == "multi" for asked in question.questions)


def _question(question: Question, width: int) -> list[Line]:
    lines: list[Line] = [(), *question_lines(question, width)]
    if options_of(question):
        several = "Numbers choose some of them: 1, 3" if _takes_several(question) else "A number chooses one of them."
        lines += [(), ((f" {several}", "dim"),)]
    elif len(question.questions) > 1:
        lines += [(), ((" One answer is for all of them.", "dim"),)]
    return lines
