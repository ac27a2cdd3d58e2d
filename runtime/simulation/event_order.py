"""The order of the events of runs, as the contract has it, checked on what the client saw.

One run at a time: `agent_start`, turns, `agent_end`; in a turn messages and tools; `agent_settled` once for each
prompt that was accepted, after every retry, fallback and compaction. Deltas add up to the message. What a `message_end`
carries was in the journal before the bytes left. `get_state` and `abort` agree with the events before their response.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from runtime.simulation.seen import Seen

_NUMBER = re.compile(r"\b[pq](\d+)\b")


def event_order(seen: Seen) -> Iterator[str]:
    """Not after a crash. When the client left, the end may be missing."""
    if seen.crashed:
        return
    boundaries = [place for place, entry in enumerate(seen.log) if entry["type"] == "compaction"]
    order = Order(_journaled(seen), boundaries)
    for place, (record, journaled) in enumerate(seen.records):
        fault = order.take(record, journaled)
        if fault is not None:
            yield f"record {place} ({record['type']}): {fault}"
            return
    if seen.house.is_heard_out:
        yield from order.at_the_end()


class Order:
    """Where the events stand. `journal` tells for each stored message at which line of the log it came, `boundaries`
    where compactions were recorded."""

    def __init__(self, journal: dict[bytes, int], boundaries: list[int]) -> None:
        self._journal = journal
        self._boundaries = boundaries
        self._in_run = False
        self._in_turn = False
        self._open_message: str | None = None
        self._open_tools: set[str] = set()
        self._ended_tools: set[str] = set()
        self._said: list[Any] = []
        self._results: list[Any] = []
        self._unsettled = False
        self._retrying = False
        self._fell_back = False
        self._accepted = 0
        self._cycles = 0
        self._queued = 0
        self._deltas: dict[int, str] = {}
        self._compacting: str | None = None
        self._compacted = 0

    def take(self, record: dict[str, Any], journaled: int) -> str | None:
        """What is wrong with the next record, or None."""
        check = getattr(self, "_" + record["type"], None)
        if check is None:
            return None
        fault: str | None = check(record, journaled)
        return fault

    def at_the_end(self) -> Iterator[str]:
        if self._in_run:
            yield "a run never ended"
        if self._unsettled:
            yield "a run ended without agent_settled"

    # -- runs

    def _agent_start(self, record: dict[str, Any], _: int) -> str | None:
        if self._in_run:
            return "another run is under way"
        if not self._unsettled:
            self._cycles += 1
        self._in_run, self._unsettled, self._said = True, True, []
        return "the context is being compacted" if self._compacting is not None else None

    def _turn_start(self, record: dict[str, Any], _: int) -> str | None:
        if not self._in_run or self._in_turn:
            return "no run, or the last turn is open"
        self._in_turn, self._results = True, []
        self._ended_tools.clear()
        return None

    def _turn_end(self, record: dict[str, Any], _: int) -> str | None:
        if not self._in_turn or self._open_message is not None:
            return "no turn, or an open message"
        self._in_turn = False
        broken = record["message"].get("stopReason") == "error"
        if self._open_tools and not broken:
            return f"calls still run: {sorted(self._open_tools)}"
        self._open_tools.clear()
        if record["toolResults"] != self._results and not broken:
            return "the results are not those of the turn"
        return None

    def _agent_end(self, record: dict[str, Any], _: int) -> str | None:
        if not self._in_run or self._in_turn:
            return "no run, or an open turn"
        self._in_run = False
        return None if record["messages"] == self._said else "the messages are not those of the run"

    def _agent_settled(self, record: dict[str, Any], _: int) -> str | None:
        if self._in_run or not self._unsettled:
            return "a run is under way, or it settled before"
        self._unsettled = False
        if self._retrying or self._fell_back or self._compacting is not None:
            return "a retry, a fallback or a compaction has not ended"
        return None

    # -- between runs

    def _auto_retry_start(self, record: dict[str, Any], _: int) -> str | None:
        self._retrying = True
        return None if self._unsettled and not self._in_run else "no run has failed"

    def _auto_retry_end(self, record: dict[str, Any], _: int) -> str | None:
        was_retrying, self._retrying = self._retrying, False
        return None if was_retrying else "nothing was tried again"

    def _model_fallback_start(self, record: dict[str, Any], _: int) -> str | None:
        self._fell_back = True
        return None if self._unsettled and not self._in_run else "no run has failed"

    def _model_fallback_end(self, record: dict[str, Any], _: int) -> str | None:
        had_fallen_back, self._fell_back = self._fell_back, False
        return None if had_fallen_back else "no other model was asked"

    def _compaction_start(self, record: dict[str, Any], _: int) -> str | None:
        if self._compacting is not None or self._open_message is not None or self._open_tools:
            return "another compaction, a message or a tool is under way"
        if self._in_run != record.get("midTurn", False):
            return "midTurn does not tell whether a run is under way"
        self._compacting = record["reason"]
        return None

    def _compaction_end(self, record: dict[str, Any], journaled: int) -> str | None:
        reason, self._compacting = self._compacting, None
        if record["result"] is not None:
            self._compacted += 1
            if self._compacted > sum(place < journaled for place in self._boundaries):
                return "the compaction was told before it was journaled"
        if reason is None and record.get("errorMessage"):
            return None  # none began, since it would not help
        return None if reason == record["reason"] else f"a compaction of reason {reason} was under way"

    # -- messages

    def _message_start(self, record: dict[str, Any], _: int) -> str | None:
        is_notice = record["message"]["role"] == "custom"  # may also come between two runs
        if not (self._in_turn or (is_notice and not self._in_run)) or self._open_message is not None:
            return f"no turn, or a message of {self._open_message} is open"
        self._open_message = record["message"]["role"]
        self._deltas.clear()
        if self._in_run and self._cycles > self._accepted:
            self._accepted += is_notice or _is_unwritten(record["message"])  # both ask for a run as a prompt does
        return "nobody asked for a run" if self._in_run and self._cycles > self._accepted else None

    def _message_update(self, record: dict[str, Any], _: int) -> str | None:
        if self._open_message != "assistant":
            return "no reply is open"
        event = record["assistantMessageEvent"]
        if event["type"] in ("text_delta", "thinking_delta"):
            place = event["contentIndex"]
            self._deltas[place] = self._deltas.get(place, "") + event["delta"]
        return None

    def _message_end(self, record: dict[str, Any], journaled: int) -> str | None:
        message = record["message"]
        if self._open_message != message["role"]:
            return f"the open message is of {self._open_message}"
        self._open_message = None
        if self._in_run:
            self._said.append(message)
        if message["role"] == "toolResult":
            self._results.append(message)
            if message["toolCallId"] not in self._ended_tools:
                return f"the tool call {message['toolCallId']} has not ended"
        return self._unwritten(message, journaled)

    def _unwritten(self, message: Any, journaled: int) -> str | None:
        if _is_unwritten(message):
            return None
        if self._journal.get(_identity(message), journaled) >= journaled:
            return "the message was told before it was journaled"
        for place, text in self._deltas.items():
            block = message["content"][place] if place < len(message["content"]) else {}
            if block.get("text", block.get("thinking")) != text:
                return f"the deltas of block {place} are not what the message says"
        return None

    # -- tools

    def _tool_execution_start(self, record: dict[str, Any], _: int) -> str | None:
        call = record["toolCallId"]
        if not self._in_turn or self._open_message is not None or call in self._open_tools | self._ended_tools:
            return "no turn, an open message, or the call had started"
        self._open_tools.add(call)
        return None

    def _tool_execution_update(self, record: dict[str, Any], _: int) -> str | None:
        return None if record["toolCallId"] in self._open_tools else "the call does not run"

    def _tool_execution_end(self, record: dict[str, Any], _: int) -> str | None:
        if record["toolCallId"] not in self._open_tools:
            return "the call does not run"
        self._open_tools.remove(record["toolCallId"])
        self._ended_tools.add(record["toolCallId"])
        return None

    # -- responses that tell of runs

    def _queue_update(self, record: dict[str, Any], _: int) -> str | None:
        self._queued = len(record["steering"]) + len(record["followUp"])
        return None

    def _response(self, record: dict[str, Any], _: int) -> str | None:
        command, succeeded = record.get("command"), record["success"]
        if command == "prompt":
            self._accepted += succeeded
        elif command == "abort" and succeeded and isinstance(record.get("id"), int):
            return self._aborted(record["id"])
        elif command == "get_state" and succeeded:
            return self._state(record["data"])
        return None

    def _aborted(self, number: int) -> str | None:
        """The client numbers what it says: only a run that was asked for later may go on."""
        if not self._in_run:
            return None
        asked = [int(found) for message in self._said for found in _NUMBER.findall(_text(message))]
        return None if asked and max(asked) > number else "the run goes on after it was aborted"

    def _state(self, state: dict[str, Any]) -> str | None:
        if state["isStreaming"] != self._unsettled:
            return f"isStreaming is {state['isStreaming']}"
        if state["isCompacting"] != (self._compacting is not None):
            return f"isCompacting is {state['isCompacting']}"
        if state["pendingMessageCount"] != self._queued:
            return f"pendingMessageCount is {state['pendingMessageCount']}, but {self._queued} messages are queued"
        return None


def _text(message: dict[str, Any]) -> str:
    if message["role"] != "user":
        return ""
    return "".join(block.get("text", "") for block in message["content"])


def _is_unwritten(message: dict[str, Any]) -> bool:
    """The end of a run whose message was refused by the disk: that of a prompt, or a notice."""
    return message["role"] == "assistant" and "Session append failed" in message.get("errorMessage", "")


def _journaled(seen: Seen) -> dict[bytes, int]:
    places: dict[bytes, int] = {}
    for place, entry in enumerate(seen.log):
        if entry["type"] in ("message", "custom_message"):
            places.setdefault(_identity(entry.get("message") or {**entry, "role": "custom"}), place)
    return places


def _identity(message: dict[str, Any]) -> bytes:
    """A custom message has an entry of its own, with other names around its details."""
    return msgspec.json.encode(message["details"] if message["role"] == "custom" else message)
