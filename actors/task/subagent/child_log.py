"""What a subagent reads out of the records that its child's session writes: its last words, its tools, its tokens, its
end.

Pure. Deltas are kept unread for those who may look, and what repeats whole messages is passed over. Only what the child
itself says counts: a history that it was given never comes as an event. Source: `tasks.md` 3.4.
"""

from __future__ import annotations

from typing import Any

from actors.task.notice import one_line
from actors.task.subagent.live import Live
from actors.task.transcript import Tail
from protocol.codec import BadJson, decode_any
from protocol.tasks import Action, TaskCompleted, TaskFailed

_TYPE = b'{"type":"'
_READ = (
    b"message_end",
    b"tool_execution_start",
    b"tool_execution_end",
    b"model_fallback_start",
    b"agent_settled",
    b"response",
)
_GROWING = (b"message_update", b"message_start", b"tool_execution_update")
_TELLING = ("command", "path", "pattern", "paths", "query", "action")
_CHANGING = ("edit", "write")
ACTION_CHARS = 120


class ChildLog:
    """`text` is the last text that is not blank; `is_over` tells that nothing more comes by itself; `failures` counts
    the changes of files that have failed since the last one that did not; `seen` grows with whatever shows in the
    transcript."""

    def __init__(self, model: str, level: str) -> None:
        self.model = model
        self.level = level
        self.text = ""
        self.tools = self.tokens = self.turns = self.failures = 0
        self.action: Action | None = None
        self.is_over = False
        self._stop = ""
        self._error: str | None = None
        self._running: dict[str, Action] = {}
        self.tail = Tail()
        self.live = Live()
        self.seen = 0

    def read(self, line: bytes) -> bool:
        """Whether the record tells anything."""
        kind = line[len(_TYPE) : line.find(b'"', len(_TYPE))]
        if kind in _GROWING:
            self._grow(kind, line)
        if kind not in _READ or not line.startswith(_TYPE):
            return False
        try:
            self._take(kind.decode(), decode_any(line))
        except (BadJson, KeyError, TypeError, AttributeError):  # a record of ours that does not look like one
            return False
        return True

    @property
    def outcome(self) -> TaskCompleted | TaskFailed:
        """How it ended. Only the last reply says whether it did what it was asked."""
        if self._error is not None or self._stop in ("error", "aborted"):
            return TaskFailed("AgentFailed", self._error or f"the last reply ended with {self._stop}")
        if not self._stop:
            return TaskFailed("AgentFailed", "the agent ended without a reply")
        return TaskCompleted()

    def _grow(self, kind: bytes, records: bytes) -> None:
        if kind == b"message_update":
            self.seen += self.live.reply_grew(records)
        elif kind == b"message_start":
            self.live.reply_began()
        else:
            self.live.tool_gave(records)
            self.seen += 1

    def _take(self, kind: str, record: dict[str, Any]) -> None:
        match kind:
            case "message_end":
                self._take_message(record["message"])
            case "tool_execution_start":
                self.tools += 1
                call = Action(record["toolName"], _about(record["args"]))
                self.action = self._running[record["toolCallId"]] = call
            case "tool_execution_end":
                self._running.pop(record["toolCallId"], None)
                if record["toolName"] in _CHANGING:
                    self.failures = self.failures + 1 if record["isError"] else 0
                self.action = next(iter(self._running.values()), None)
            case "model_fallback_start":  # the first one comes back at the end, but this one gave the answer
                self.model, _, self.level = record["to"].rpartition(":")
            case "agent_settled":
                self.is_over = True
            case "response" if not record["success"] and record["command"] == "prompt":
                self._error = record["error"]
                self.is_over = True

    def _take_message(self, message: dict[str, Any]) -> None:
        self.tail.add(message)
        self.live.message_ended(message.get("toolCallId"))
        self.seen += 1
        if message["role"] == "assistant":
            self._take_reply(message)

    def _take_reply(self, reply: dict[str, Any]) -> None:
        self.turns += 1
        usage = reply.get("usage") or {}
        self.tokens += usage.get("input", 0) + usage.get("output", 0)
        texts = [block["text"] for block in reply["content"] if block["type"] == "text" and block["text"].strip()]
        self.text = texts[-1] if texts else self.text
        self._stop, self._error = reply["stopReason"], reply.get("errorMessage") or None


def _about(arguments: Any) -> str:
    """One line about a call: what it is given under the name that tells most."""
    if not isinstance(arguments, dict):
        return ""
    value = next((arguments[name] for name in _TELLING if name in arguments), "")
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return one_line(text, ACTION_CHARS)
