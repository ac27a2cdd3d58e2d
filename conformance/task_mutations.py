"""Ways to break what an agent tells of tasks: notices that come twice or unasked, and a kill that says too much.

Pure. What is made up is well-formed, so that only a case can tell that it should not be there.
"""

from __future__ import annotations

from typing import Any

from conformance.mutation import Kind, Mutation, Record
from protocol import tasks as t
from protocol.events import TaskUpdate
from protocol.json_text import encode

_NOTICE = "task-completion"
_REF = t.TaskRef("owner-x-0", "task-x-0-0", "attempt-x-0-0-1", "x-0")
_DONE = t.TaskCompleted(exit_code=0)


class LoseNotice(Mutation):
    def __init__(self, argument: str) -> None:
        super().__init__(argument)
        self._lost = False

    def strikes(self, record: Record) -> bool:
        return record.get("type") == "message_start" and _is_notice(record)

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        self._lost = True
        return []

    def passed(self, record: Record | None, line: bytes) -> list[bytes]:
        if not self._lost or record is None or record.get("type") != "message_end" or not _is_notice(record):
            return [line]
        self._lost = False
        return []


class DoubleNotice(Mutation):
    def strikes(self, record: Record) -> bool:
        return record.get("type") == "message_end" and _is_notice(record)

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        return [line, *(encode({**record, "type": type_}) for type_ in ("message_start", "message_end"))]


class ForegroundNotice(Mutation):
    """A command whose result was that of its call is told of once more."""

    def strikes(self, record: Record) -> bool:
        message = _message(record)
        yielded = "observation" in (message.get("details") or {})
        return record.get("type") == "message_end" and message.get("toolName") == "bash" and not yielded

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        envelope = t.CompletionEnvelope(f"completion-{_REF.task_id}", _REF.owner_id, _REF.task_id, "1", _DONE)
        card = {"title": "it", "preview": "", "status": "completed", "taskId": _REF.task_id}
        message = {
            "role": "custom", "customType": _NOTICE, "content": "Background shell completed: it", "display": True,
            "timestamp": 0, "details": {**_plain(envelope), "notification": card},
        }  # fmt: skip
        return [line, *(encode({"type": type_, "message": message}) for type_ in ("message_start", "message_end"))]


class PatientKill(Mutation):
    """The receipt of a kill tells that the command has ended."""

    def strikes(self, record: Record) -> bool:
        return record.get("type") == "tool_execution_end" and record.get("toolName") == "kill"

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        result = record.get("result") or {}
        ended = {"execution": _plain(t.Settled(t.TaskCancelled("user"))), "cleanup": _plain(t.CleanupReaped())}
        return [encode({**record, "result": {**result, "details": {**(result.get("details") or {}), **ended}}})]


class UnaskedUpdate(Mutation):
    """Each tool that has ended is followed by an event that only those get who asked for it."""

    def strikes(self, record: Record) -> bool:
        return record.get("type") == "tool_execution_end"

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        update = t.TaskRecord(
            ref=_REF, launch_ordinal=0, kind="command", title="it", state="completed", execution=t.Settled(_DONE),
            observation=t.Unobserved("task-settled"), cleanup=t.CleanupReaped(), attention=t.Attention(),
        )  # fmt: skip
        return [line, encode({"type": "task_update", **_plain(TaskUpdate(update))})]


def _is_notice(record: Record) -> bool:
    return bool(_message(record).get("customType") == _NOTICE)


def _message(record: Record) -> Record:
    message = record.get("message")
    return message if isinstance(message, dict) else {}


def _plain(value: Any) -> Record:
    import msgspec

    plain: Record = msgspec.to_builtins(value)
    return plain


TASK_KINDS: dict[str, Kind] = {
    "lose-notice": Kind(LoseNotice, "", "the end of a background task is not told"),
    "double-notice": Kind(DoubleNotice, "", "the end of a background task is told twice"),
    "foreground-notice": Kind(ForegroundNotice, "", "a command that never left the foreground is told of"),
    "patient-kill": Kind(PatientKill, "", "kill says that the command has ended already"),
    "unasked-update": Kind(UnaskedUpdate, "", "a task_update comes that nobody has asked for"),
}
