"""Ways to break an agent on purpose: each turns the lines of its stdout into others that no good agent would write.

Pure. A mutation is asked line by line; `chance` and a generator of its own, made of seed and kind, decide which of the
lines that it could strike it does. The same lines and the same seed give the same result.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from conformance.mutation import Choice, Kind, Mutation, Record, is_response
from conformance.record_command import record_of
from conformance.task_mutations import TASK_KINDS
from protocol.json_text import encode

_SHELL = ("bash", "user_bash")


class Drop(Mutation):
    def struck(self, record: Record, line: bytes) -> list[bytes]:
        return []


class DropResponse(Drop):
    def strikes(self, record: Record) -> bool:
        return is_response(record, self.argument)


class LoseBashResult(Drop):
    def strikes(self, record: Record) -> bool:
        return is_response(record, *_SHELL)


class Double(Mutation):
    def struck(self, record: Record, line: bytes) -> list[bytes]:
        return [line, line]


class WrongType(Mutation):
    def struck(self, record: Record, line: bytes) -> list[bytes]:
        return [encode({**record, "type": f"{record['type']}_x"})]


class Mistype(Mutation):
    """A field has a value of another type: a text in place of anything else, a number in place of a text."""

    def strikes(self, record: Record) -> bool:
        return self.argument in record

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        value = 5 if isinstance(record[self.argument], str) else "text"
        return [encode({**record, self.argument: value})]


class WrongId(Mutation):
    def strikes(self, record: Record) -> bool:
        return is_response(record) and "id" in record

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        id = record["id"]
        return [encode({**record, "id": id + 1 if type(id) is int else f"{id}x"})]


class FalseSuccess(Mutation):
    """A refusal is told as a success without data."""

    def strikes(self, record: Record) -> bool:
        return is_response(record) and record.get("success") is False

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        kept = {key: value for key, value in record.items() if key in ("id", "type", "command")}
        return [encode({**kept, "success": True})]


class Truncate(Mutation):
    """The second half of a record is missing; its line feed is there."""

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        return [line[: max(1, len(line) // 2)]]


class Join(Mutation):
    """The line feed after a record is missing."""

    def __init__(self, argument: str) -> None:
        super().__init__(argument)
        self._kept = b""

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        self._kept += line
        return []

    def passed(self, record: Record | None, line: bytes) -> list[bytes]:
        whole, self._kept = self._kept + line, b""
        return [whole]

    def ended(self) -> list[bytes]:
        return [self._kept] if self._kept else []


class Print(Mutation):
    """A line of text, as a stray print would write it, stands before a response."""

    def strikes(self, record: Record) -> bool:
        return is_response(record)

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        return [self.argument.encode("utf-8", "surrogateescape"), line]


class SwapDeltas(Mutation):
    """Two deltas of one stream that follow each other change places."""

    def __init__(self, argument: str) -> None:
        super().__init__(argument)
        self._kept: tuple[Any, bytes] | None = None

    def strikes(self, record: Record) -> bool:
        return stream_of(record) is not None

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == stream_of(record):
            return [line, kept[1]]
        self._kept = (stream_of(record), line)
        return [kept[1]] if kept else []

    def passed(self, record: Record | None, line: bytes) -> list[bytes]:
        return [*self.ended(), line]

    def ended(self) -> list[bytes]:
        kept, self._kept = self._kept, None
        return [kept[1]] if kept else []


class LateEvent(Mutation):
    """A delta of the model's answer comes after the run has settled."""

    def __init__(self, argument: str) -> None:
        super().__init__(argument)
        self._kept: list[bytes] = []

    def strikes(self, record: Record) -> bool:
        return record.get("type") == "message_update" and not self._kept

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        self._kept.append(line)
        return []

    def passed(self, record: Record | None, line: bytes) -> list[bytes]:
        if record is None or record.get("type") != "agent_settled":
            return [line]
        return [line, *self.ended()]

    def ended(self) -> list[bytes]:
        kept, self._kept = self._kept, []
        return kept


class EarlyResult(Mutation):
    """The last delta of a shell request comes after its response."""

    def __init__(self, argument: str) -> None:
        super().__init__(argument)
        self._kept: dict[str, bytes] = {}

    def strikes(self, record: Record) -> bool:
        return record.get("type") == "bash_execution_update"

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        id = str(record.get("id"))
        before = self._kept.get(id)
        self._kept[id] = line
        return [before] if before is not None else []

    def passed(self, record: Record | None, line: bytes) -> list[bytes]:
        kept = self._kept.pop(str(record.get("id")), None) if record and is_response(record, *_SHELL) else None
        return [line] if kept is None else [line, kept]

    def ended(self) -> list[bytes]:
        kept, self._kept = list(self._kept.values()), {}
        return kept


class Silence(Mutation):
    """Nothing comes after so many records; the process lives on."""

    def __init__(self, argument: str) -> None:
        super().__init__(argument)
        self._left = int(argument)

    def strikes(self, record: Record) -> bool:
        return False

    def passed(self, record: Record | None, line: bytes) -> list[bytes]:
        self._left -= 1
        return [line] if self._left >= 0 else []


def stream_of(record: Record) -> Any:
    """Which stream of deltas a record belongs to, `None` when it is no delta."""
    if record.get("type") == "bash_execution_update":
        return ("bash", str(record.get("id")), record.get("channel"))
    grown = record.get("assistantMessageEvent")
    if isinstance(grown, dict) and str(grown.get("type")).endswith("_delta"):
        return ("message", grown["type"], grown.get("contentIndex"))
    return None


KINDS: dict[str, Kind] = {
    "drop": Kind(Drop, "TYPE", "records of this type do not come"),
    "drop-response": Kind(DropResponse, "CMD", "this command is not answered"),
    "lose-bash-result": Kind(LoseBashResult, "", "bash and user_bash are not answered"),
    "double": Kind(Double, "TYPE", "records of this type come twice"),
    "wrong-type": Kind(WrongType, "TYPE", "records of this type have another one that nobody knows"),
    "mistype": Kind(Mistype, "FIELD", "this field of every record that has it is of another type"),
    "wrong-id": Kind(WrongId, "", "responses carry another id"),
    "false-success": Kind(FalseSuccess, "", "refusals are told as successes"),
    "truncate": Kind(Truncate, "TYPE", "records of this type end in their middle"),
    "join": Kind(Join, "TYPE", "records of this type have no line feed"),
    "print": Kind(Print, "TEXT", "this text stands on a line before a response"),
    "swap-deltas": Kind(SwapDeltas, "", "deltas that follow each other change places"),
    "late-event": Kind(LateEvent, "", "a delta of each answer comes after agent_settled"),
    "early-result": Kind(EarlyResult, "", "a response to bash comes before the last delta"),
    "silence": Kind(Silence, "N", "nothing comes after so many records"),
    **TASK_KINDS,
}


class Mutator:
    """All mutations that were asked for, one after another."""

    def __init__(self, choices: Sequence[Choice], seed: int, chance: float) -> None:
        self._chance = chance
        self._stages = [
            (KINDS[choice.kind].make(choice.argument), random.Random(f"{seed} {index} {choice.kind}"))
            for index, choice in enumerate(choices)
        ]

    def lines(self, line: bytes) -> list[bytes]:
        """What comes in place of one line of the agent (without its line feed)."""
        return self._through([line], 0)

    def ended(self) -> list[bytes]:
        """What comes last."""
        rest: list[bytes] = []
        for index, (mutation, _) in enumerate(self._stages):
            rest = [*self._mutated(rest, index), *mutation.ended()]
        return rest

    def _through(self, lines: Iterable[bytes], first: int) -> list[bytes]:
        found = list(lines)
        for index in range(first, len(self._stages)):
            found = self._mutated(found, index)
        return found

    def _mutated(self, lines: Iterable[bytes], index: int) -> list[bytes]:
        mutation, generator = self._stages[index]
        return [result for line in lines for result in _one(mutation, lambda: generator.random() < self._chance, line)]


def _one(mutation: Mutation, strikes_now: Callable[[], bool], line: bytes) -> list[bytes]:
    record = record_of(line)
    if record is not None and mutation.strikes(record) and strikes_now():
        return mutation.struck(record, line)
    return mutation.passed(record, line)
