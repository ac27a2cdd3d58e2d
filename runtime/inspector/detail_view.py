"""One task in full: the pinned head, the actions that it offers now, and the body that scrolls.

Pure. What was not told is left out, what is missing is labelled, and nothing is made up.
"""

from __future__ import annotations

from itertools import islice
from typing import Literal, NamedTuple

from protocol.tasks import Background, CleanupDraining, CleanupFailed, Foreground, TaskRecord
from runtime.inspector.board import ACTIVE, Board
from runtime.inspector.call_view import brief
from runtime.inspector.input_view import question_lines
from runtime.inspector.output_view import gap_labels, output_lines
from runtime.inspector.records import Detail, Entry
from runtime.inspector.state_view import hint_of, metrics_of, model_of, name_of, outcome_of, state_spans
from runtime.inspector.texts import Line, clip, clipped, fold, harmless, indented, one_line, wrap
from runtime.inspector.transcript import Loaded

Action = Literal["transcript", "answer", "input", "stop", "back"]
TAIL_LINES = 10
ACTIVITY_LINES = 8
PREVIEW_LINES = 12
PROMPT_LINES = 200


class Choice(NamedTuple):
    action: Action
    label: str


def head(board: Board, record: TaskRecord, width: int, now: float) -> list[Line]:
    """Identity, state and, if there are any, metrics; each on its own line."""
    kind = "Agent" if record.kind == "agent" else "Shell"
    lines: list[Line] = [((f" {kind}  ", "dim"), (name_of(record), "bold"))]
    model = model_of(record)
    state = [(" ", ""), *state_spans(record), (f" · {_observed(record)}" if record.state in ACTIVE else "", "dim")]
    hint = hint_of(record) if record.state in ACTIVE else ""
    lines.append((*state, (f" · {hint}" if hint else "", "warn"), (f" · {model}" if model else "", "dim")))
    metrics = metrics_of(record, board.elapsed_ms(record.ref.task_id, now))
    if metrics:
        lines.append(((" " + " · ".join(metrics), "dim"),))
    return [clipped(line, width) for line in lines]


def choices(board: Board, record: TaskRecord, detail: Detail | None) -> list[Choice]:
    """What can be done with it now. What is over can only be looked at."""
    is_agent = record.kind == "agent"
    found = [Choice("transcript", "Transcript" if is_agent else "Output")]
    if board.is_live and record.state in ACTIVE and record.state != "stopping":
        if detail is not None and detail.questions and record.attention.kind == "input-needed":
            found.insert(0, Choice("answer", "Open question"))
        if record.accepts_input and not is_agent:
            found.append(Choice("input", "Input"))
        found.append(Choice("stop", "Stop"))
    return [*found, Choice("back", "Back")]


def body(record: TaskRecord, detail: Detail | None, loaded: Loaded, width: int) -> list[Line]:
    """All that scrolls."""
    inner = max(width - 4, 10)
    parts = [
        *_trouble(record, detail, inner),
        *_specific(record, detail, loaded, inner),
        *_place(record, detail, inner),
    ]
    lines: list[Line] = []
    for title, content in parts:
        lines += [*([()] if lines else []), ((f" {title}", "bold"),), *content]
    return [clipped(line, width) for line in lines]


Part = tuple[str, list[Line]]


def _observed(record: TaskRecord) -> str:
    match record.observation:
        case Foreground():
            return "the session waits for it"
        case Background():
            return "in the background"
        case _:
            return "not observed"


def _trouble(record: TaskRecord, detail: Detail | None, width: int) -> list[Part]:
    parts: list[Part] = []
    for question in detail.questions if detail is not None else ():
        parts.append(("It asks", [((" ", ""), *line) for line in question_lines(question, width)]))
    if record.attention.kind == "input-needed" and not parts:
        parts.append(("It asks", indented(["A question is open."], "warn")))
    outcome = [line for text, style in outcome_of(record) for line in indented(wrap(harmless(text), width), style)]
    if outcome:
        parts.append(("Error" if record.state == "failed" and record.kind == "agent" else "Result", outcome))
    match record.cleanup:
        case CleanupFailed(resources=resources):
            left = ", ".join(one_line(each) for each in resources) or "unknown"
            parts.append(("Cleanup", indented(wrap(f"Not everything could be ended: {left}", width), "bad")))
        case CleanupDraining():
            parts.append(("Cleanup", indented(["What it started is being ended."], "dim")))
    return parts


def _specific(record: TaskRecord, detail: Detail | None, loaded: Loaded, width: int) -> list[Part]:
    if detail is None:
        return [("Details", indented(["Loading …"], "dim"))]
    if record.kind == "command":
        return _shell(record, detail, width)
    return [*_activity(record, loaded, width), *_prompt(detail, width), *_response(detail, loaded, width)]


def _shell(record: TaskRecord, detail: Detail, width: int) -> list[Part]:
    parts: list[Part] = []
    if isinstance(detail.command, str):
        parts.append(("Command", indented(fold(harmless(detail.command), width))))
    tail = output_lines(record, detail, width)
    shown = tail[-TAIL_LINES:]
    title = "Output"
    if len(tail) > len(shown):
        title = f"Output   last {TAIL_LINES} lines"
    labels = [((f"  {label}", "dim"),) for label in gap_labels(record, detail)]
    parts.append((title, [*labels, *shown]))
    if isinstance(detail.full_output_path, str):
        parts.append(("All output", indented(fold(one_line(detail.full_output_path), width), "dim")))
    return parts


def _activity(record: TaskRecord, loaded: Loaded, width: int) -> list[Part]:
    entries = loaded.entries
    over = {entry.tool_call_id: entry for entry in entries if entry.role == "toolResult"}
    calls = [entry for entry in entries if entry.role == "toolCall"]
    lines = [_call(entry, over.get(entry.tool_call_id), record, width) for entry in calls[-ACTIVITY_LINES:]]
    if not lines and record.current_action:
        action = record.current_action
        lines = [(("  ● ", "busy"), (clip(f"{one_line(action.tool)}  {one_line(action.text)}", width - 2), ""))]
    return [("Activity", lines)] if lines else []


def _call(call: Entry, result: Entry | None, record: TaskRecord, width: int) -> Line:
    symbol, style = ("●", "busy") if record.state in ACTIVE else ("·", "dim")
    if result is not None:
        symbol, style = ("✗", "bad") if result.is_error else ("✓", "good")
    tool = one_line(call.tool) if isinstance(call.tool, str) else "tool"
    return ((f"  {symbol} ", style), (clip(f"{tool}  {one_line(brief(call.text))}", width - 2), ""))


def _prompt(detail: Detail, width: int) -> list[Part]:
    if not isinstance(detail.prompt, str) or not detail.prompt:
        return []
    return [("Prompt", _bounded(detail.prompt, width, PROMPT_LINES))]


def _response(detail: Detail, loaded: Loaded, width: int) -> list[Part]:
    said = [entry.text for entry in loaded.entries if entry.role == "assistant" and entry.text.strip()]
    live = loaded.live
    text = live.text if live and live.role == "assistant" else (said[-1] if said else "")
    if not text and isinstance(detail.tail, str):
        text = detail.tail
    return [("Latest response", _bounded(text.strip(), width, PREVIEW_LINES))] if text.strip() else []


def _bounded(text: str, width: int, limit: int) -> list[Line]:
    lines = list(islice(wrap(harmless(text), width), limit + 1))
    shown = indented(lines[:limit])
    return [*shown, (("  … more in the transcript", "dim"),)] if len(lines) > limit else shown


def _place(record: TaskRecord, detail: Detail | None, width: int) -> list[Part]:
    facts = [f"Task {one_line(record.ref.task_id)}"]
    if detail is not None and isinstance(detail.cwd, str):
        facts.append(f"Folder {one_line(detail.cwd)}")
    if detail is not None and isinstance(detail.timeout_seconds, int):
        facts.append(f"Time limit {detail.timeout_seconds} s")
    return [("About", [line for fact in facts for line in indented(fold(fact, width), "dim")])]
