"""`atomic tasks --list`: the tasks on stdout, as a table or as JSON, and no terminal needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from protocol.codec import encode
from protocol.tasks import TaskRecord
from runtime.inspector.link import LinkLost, Refused
from runtime.inspector.notice_view import session_name
from runtime.inspector.records import BadRecord
from runtime.inspector.sessions import Live, tasks_of
from runtime.inspector.state_view import LOOKS, model_of, name_of
from runtime.inspector.texts import cells, duration, one_line
from runtime.stdio import complain, say, say_json

NO_TASKS = "  no background tasks"


async def print_tasks(lives: Sequence[Live], *, as_json: bool) -> int:
    """The exit code: 1 if a session did not answer."""
    code = 0
    for number, live in enumerate(lives):
        try:
            tasks = await tasks_of(live)
            if as_json:
                say_json(_json(live, tasks))
            else:
                say("\n" * bool(number) + table(live, _records(tasks)))
        except (LinkLost, Refused, BadRecord) as error:
            complain(f"the session of pid {live.door.pid} did not tell its tasks: {error}")
            code = 1
    return code


def _records(tasks: Any) -> list[TaskRecord]:
    try:
        return msgspec.convert(tasks, list[TaskRecord])
    except msgspec.ValidationError as error:
        raise BadRecord(f"its tasks make no sense here: {error}") from None


def _json(live: Live, tasks: Any) -> bytes:
    """The session's facts as it greeted, and its tasks as it told them."""
    facts = {name: value for name, value in msgspec.to_builtins(live.hello).items() if name not in ("type", "version")}
    return encode({**facts, "tasks": tasks})


def table(live: Live, records: Sequence[TaskRecord]) -> str:
    """One session with its tasks in the order of launch."""
    hello = live.hello
    facts = [f"pid {live.door.pid}", f"session {one_line(hello.session_id)}"]
    if isinstance(hello.session_name, str):
        facts.append(session_name(hello))
    if isinstance(hello.model, str):
        facts.append(one_line(hello.model))
    if isinstance(hello.thinking_level, str):
        facts.append(f"thinking {one_line(hello.thinking_level)}")
    head = " · ".join([*facts, one_line(hello.cwd)])
    rows = [_row(record) for record in sorted(records, key=lambda record: record.launch_ordinal)]
    return "\n".join([head, *(_aligned(rows) if rows else [NO_TASKS])])


def _row(record: TaskRecord) -> tuple[str, ...]:
    elapsed = record.metrics.elapsed_ms if record.metrics else None
    return (
        one_line(record.ref.task_id),
        "agent" if record.kind == "agent" else "shell",
        LOOKS[record.state].word,
        duration(elapsed) if isinstance(elapsed, int) else "",
        name_of(record),
        model_of(record),
    )


def _aligned(rows: list[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        filled = (cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True) if width)
        yield ("  " + "  ".join(filled)).rstrip()
