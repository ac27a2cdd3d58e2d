"""What seeds have seen: commands, mishaps of the world, faults, events and mail, each with how many seeds met it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

import actors.mail
from protocol import events
from protocol.commands import COMMAND_NAMES
from runtime.simulation.house import House
from runtime.simulation.scheduler import kind_of
from runtime.simulation.visitors import Inspector

NOT_SENT = {
    "start": "message_start is sent instead",
    "done": "message_end is sent instead",
    "error": "message_end is sent instead",
    "entry_appended": "nothing sends it",
    "agent_continue_error": "a run that goes on after a compaction tells its failure itself",
}
"""Events that the types know and nobody produces, and why."""

NOT_TOLD = {
    **dict.fromkeys(
        ("PauseTasks", "ResumeTasks", "TasksPaused", "TasksResumed"), "no stage of a workflow is there yet"
    ),
    "TaskOverLimit": "told after 5 GiB of output",
    "HistoryRead": "told of a transcript that is longer than what is kept in memory",
    "QuestionWithdrawn": "told when a call dies while it asks, which one seed in ten thousand meets",
    "PromptEnded": "told to OneShot, which stands in Intake's place where nobody drives the program",
    "ExtensionFailed": "the same",
}
"""Mail that a simulated house does not know, and why."""


def seen_in(house: House) -> set[str]:
    """What one course has met, as `kind name`."""
    met = {f"fault {name}" for name in _faults(house)}
    met |= {f"mishap {name}" for name in house.chances.met}
    met |= {f"mail {type(mail).__name__}" for _, _, mail in house.scheduler.trace}
    met |= {f"command {name}" for name in _types(house.client.sent) if name in COMMAND_NAMES}
    for burst, _ in house.sink.bursts:
        met |= {f"event {name}" for name in _events(burst)}
    return met


class _Typed(msgspec.Struct, frozen=True):
    type: str = ""


class _Update(msgspec.Struct, frozen=True):
    type: str
    assistantMessageEvent: _Typed = _Typed()


_READ_TYPE = msgspec.json.Decoder(_Typed).decode
_READ_UPDATE = msgspec.json.Decoder(_Update).decode


def _types(lines: list[bytes]) -> Iterator[str]:
    for line in lines:
        try:
            yield _READ_TYPE(line).type
        except (msgspec.DecodeError, UnicodeDecodeError):
            yield "malformed line"


def _events(burst: bytes) -> Iterator[str]:
    for line in burst.splitlines():
        update = _READ_UPDATE(line)
        yield update.type
        if update.type == "message_update":
            yield update.assistantMessageEvent.type


def _faults(house: House) -> Iterator[str]:
    course, sink = house.course, house.sink
    if house.fault is not None and house.fault.struck is not None:
        yield f"crash of {kind_of(house.fault.struck)}"
        yield f"crash {house.fault.moment} a mail"
    if house.disk.refused:
        yield "an append to a session file fails"
    if sink.broken:
        yield "stdout is closed"
    if sink.stopped:
        yield "nobody reads stdout any more"
    if course.reader.pauses and len(sink.bursts) >= course.reader.pauses[0]:
        yield "stdout is read slowly"
    for number in course.signals[: house.client.signalled]:
        yield f"signal {number}"
    if house.client.signalled > 1:
        yield "a second signal"
    if not course.signals:
        yield "end of stdin"
    if any(line.text.startswith("@bytes") for line in course.lines):
        yield "a line that is no UTF-8"
    if any('"@big:"' in line.text for line in course.lines):
        yield "a line larger than a read"
    yield from {name for one in house.way_in.inspectors for name in _of_inspector(one)}


def _of_inspector(one: Inspector) -> Iterator[str]:
    end = one.connection
    if end.number:
        yield "an inspector is let in"
    if end.dismissed:
        yield "an inspector is turned away"
    if end.is_gone:
        yield "an inspector goes"
    if end.says_no_more:
        yield "an inspector says no more"
    if end.is_unread and end.waiting:
        yield "an inspector reads nothing any more"
    if end.was_dropped:
        yield "an inspector that does not read is dropped"


def known() -> set[str]:
    """All commands, events and mail that a seed can meet."""
    told = {mail.__name__ for mail in vars(actors.mail).values() if _is_mail(mail)}
    spoken = {kind.__struct_config__.tag for kind in vars(events).values() if _is_event(kind)}
    return (
        {f"command {name}" for name in COMMAND_NAMES}
        | {f"event {name}" for name in spoken - NOT_SENT.keys()}
        | {f"mail {name}" for name in told - NOT_TOLD.keys() - _PARTS_OF_MAIL}
    )


_PARTS_OF_MAIL = {
    "Ticket",
    "Record",
    "QueuedMessage",
    "QueueView",
    "ModelRequest",
    "ToolRequest",
    "ToolPlace",
    "ShellPlan",
    "ShellTaskPlan",
    "AgentPlan",
    "AgentRefusal",
    "AgentSlot",
    "ParentView",
}


def _is_mail(kind: object) -> bool:
    return (
        isinstance(kind, type)
        and issubclass(kind, msgspec.Struct)
        and kind.__module__ in ("actors.mail", "actors.base")
    )


def _is_event(kind: object) -> bool:
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == events.__name__
    return is_struct and isinstance(kind.__struct_config__.tag, str)  # type: ignore[attr-defined]


def table(seen: Mapping[str, int], seeds: int) -> str:
    """One line for each thing: its kind, its name, how many seeds saw it. What none has seen comes first."""
    rows = Counter(dict.fromkeys(known(), 0))
    rows.update(seen)
    width = max(len(name) for name in rows)
    lines = [f"{name:{width}} {count:>8}" for name, count in sorted(rows.items(), key=lambda row: (row[1] > 0, row[0]))]
    return "\n".join([*lines, f"{'seeds':{width}} {seeds:>8}"])
