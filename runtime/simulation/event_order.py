"""The order of the events of runs, as the contract has it, checked on what the client saw.

One run at a time: `agent_start`, turns, `agent_end`; in a turn messages and tools; `agent_settled` once for each
prompt that was accepted. Whatever a `message_end` carries was in the journal before the bytes left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from runtime.simulation.disk import Disk

Records = list[tuple[dict[str, Any], int]]


def order_violations(records: Records, disk: Disk, cut_short: bool) -> Iterator[str]:
    """`cut_short`: the client left, so that the end may be missing."""
    order = Order(_journaled(disk))
    for place, (record, journaled) in enumerate(records):
        fault = order.take(record, journaled)
        if fault is not None:
            yield f"record {place} ({record['type']}): {fault}"
            return
    if not cut_short:
        yield from order.at_the_end()


class Order:
    """Where the events stand. `journal` tells for each stored message at which line of the log it came."""

    def __init__(self, journal: dict[bytes, int]) -> None:
        self._journal = journal
        self._in_run = False
        self._in_turn = False
        self._open_message: str | None = None
        self._open_tools: set[str] = set()
        self._ended_tools: set[str] = set()
        self._said: list[Any] = []
        self._results: list[Any] = []
        self._unsettled = False

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

    def _agent_start(self, record: dict[str, Any], _: int) -> str | None:
        if self._in_run:
            return "another run is under way"
        self._in_run, self._unsettled, self._said = True, True, []
        return None

    def _turn_start(self, record: dict[str, Any], _: int) -> str | None:
        if not self._in_run or self._in_turn:
            return "no run, or the last turn is open"
        self._in_turn, self._results = True, []
        self._ended_tools.clear()
        return None

    def _message_start(self, record: dict[str, Any], _: int) -> str | None:
        if not self._in_turn or self._open_message is not None:
            return f"no turn, or a message of {self._open_message} is open"
        self._open_message = record["message"]["role"]
        return None

    def _message_update(self, record: dict[str, Any], _: int) -> str | None:
        return None if self._open_message == "assistant" else "no reply is open"

    def _message_end(self, record: dict[str, Any], journaled: int) -> str | None:
        message = record["message"]
        if self._open_message != message["role"]:
            return f"the open message is of {self._open_message}"
        self._open_message = None
        self._said.append(message)
        if message["role"] == "toolResult":
            self._results.append(message)
            if message["toolCallId"] not in self._ended_tools:
                return f"the tool call {message['toolCallId']} has not ended"
        return self._unwritten(message, journaled)

    def _unwritten(self, message: Any, journaled: int) -> str | None:
        if message["role"] == "assistant" and "Session append failed" in message.get("errorMessage", ""):
            return None
        if self._journal.get(msgspec.json.encode(message), journaled) >= journaled:
            return "the message was told before it was journaled"
        return None

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
        return None


def _journaled(disk: Disk) -> dict[bytes, int]:
    places: dict[bytes, int] = {}
    for place, (_, line) in enumerate(disk.log):
        entry = msgspec.json.decode(line)
        if entry["type"] == "message":
            places.setdefault(msgspec.json.encode(entry["message"]), place)
    return places
