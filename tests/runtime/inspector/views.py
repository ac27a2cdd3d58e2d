"""What tests of views share: a board with tasks, and lines as plain text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from protocol.tasks import TaskRecord
from runtime.inspector.board import Board
from runtime.inspector.records import Detail, Session
from runtime.inspector.texts import Line, plain_text

SESSION = Session(session_id="0199-session", cwd="/work/project", pid=7, model="fa/m", thinking_level="medium")


def read(record: dict[str, Any]) -> TaskRecord:
    return msgspec.convert(record, TaskRecord)


def board(*records: dict[str, Any], now: float = 0.0) -> Board:
    made = Board()
    made.begin(SESSION, map(read, records), now)
    return made


def detail(record: dict[str, Any], **fields: Any) -> Detail:
    return msgspec.convert({"task": record, **fields}, Detail)


def shown(lines: Iterable[Line]) -> list[str]:
    return [plain_text(line).rstrip() for line in lines]
