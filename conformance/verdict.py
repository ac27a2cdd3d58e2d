"""Verdicts: what one play says about a program. A missing feature is told apart from a fault, and both from our own.

Pure. `passed`: everything held. `failed`: the program did something else. `missing`: it says itself, or shows, that it
does not have a feature that the case names under `needs`. `error`: the case or the kit is at fault. A command of the
protocol that is answered `Unknown command` is always missing, also where a refusal is just what the case awaits. What a
program shows by silence counts only while it speaks: a dead one lacks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from conformance.driver import Record
from conformance.fault import Fault
from conformance.play import Played
from conformance.transcript import Case
from protocol.commands import COMMAND_NAMES

Outcome = Literal["passed", "failed", "missing", "error"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "missing", "error")
_UNKNOWN_COMMAND = re.compile(r"unknown command", re.IGNORECASE)
_DEAD = frozenset({"process", "answered", "envelope"})  # the rules that a program which does not work breaks
_LATE = ("event:", "field:", "tool:")
_UNKNOWN_FLAG = re.compile(r"unknown|unrecognized|unexpected|invalid", re.IGNORECASE)


class Verdict(NamedTuple):
    """`reason` says in one line what is missing or wrong; `faults` are all that were found, the first first."""

    case: Case
    outcome: Outcome
    reason: str
    faults: tuple[Fault, ...]
    seconds: float
    seen: frozenset[str] = frozenset()  # which of the wanted `event:`, `field:` and `tool:` features were there
    stderr: str = ""
    unknown: Mapping[str, str] = {}  # the commands of the protocol that it does not know, and what it answered
    known: frozenset[str] = frozenset()  # the commands that it answered otherwise
    speaks: bool = False  # whether it keeps the rules without which silence tells nothing


def lacking(case: Case, lacks: Mapping[str, str]) -> Verdict | None:
    """The verdict without a play, when the profile says that a needed feature is not there."""
    for need in case.needs:
        if need in lacks:
            return Verdict(case, "missing", f"{need}: {lacks[need]}", (), 0.0)
    return None


def judge(case: Case, played: Played, wanted: Collection[str] = ()) -> Verdict:
    """The verdict of one play. What needs the records of all cases is judged when they have been played (`settle`);
    `wanted` are the `late_needs` of all cases."""
    seen = frozenset(need for need in wanted if _is_seen(need, played))
    unknown, known = _answers(played.records)
    absent = [error for command, error in unknown.items() if command in {*case.needs, *played.sent}]
    missing = f"it answers: {absent[0]}" if absent else _missing_flag(case, played) if played.faults else None
    outcome: Outcome = "missing" if missing else "failed" if played.faults else "passed"
    reason = missing or (played.faults[0].what if played.faults else "")
    whole = Verdict(case, outcome, reason, tuple(played.faults), played.seconds, seen, played.stderr, unknown, known)
    return whole._replace(speaks=_speaks(played))


def _answers(records: Sequence[Record]) -> tuple[dict[str, str], frozenset[str]]:
    """The commands of the protocol that a program says it does not know, with its words, and those that it knows."""
    unknown: dict[str, str] = {}
    known: set[str] = set()
    for record in records:
        command = record.get("command")
        if record.get("type") != "response" or not isinstance(command, str) or command not in COMMAND_NAMES:
            continue
        if record.get("success") is False and _UNKNOWN_COMMAND.search(str(record.get("error"))):
            unknown.setdefault(command, str(record["error"]))
        else:
            known.add(command)
    return unknown, frozenset(known)


def _speaks(played: Played) -> bool:
    answered = any(record.get("type") == "response" for record in played.records)
    return answered and not any(fault.rule in _DEAD for fault in played.faults)


def late_needs(cases: Iterable[Case]) -> frozenset[str]:
    """The needs that can be judged only by all records of a run."""
    return frozenset(need for case in cases for need in case.needs if need.startswith(_LATE))


def _is_seen(need: str, played: Played) -> bool:
    if need.startswith("tool:"):
        return need.removeprefix("tool:") in played.tools
    return any(_shows(record, need) for record in played.records)


def _shows(record: Record, need: str) -> bool:
    """Whether a record is this event, or has this field: `field:bash_execution_update.channel`, or for the response to
    a command `field:set_thinking_level.data.level`."""
    kind, _, name = need.partition(":")
    if kind == "event":
        return record.get("type") == name
    of, _, path = name.partition(".")
    return of in (record.get("type"), record.get("command")) and _has(record, path.split("."))


def _has(value: Any, path: Sequence[str]) -> bool:
    """Whether there is a value at the path; in a list, in any of its items."""
    if isinstance(value, list):
        return any(_has(item, path) for item in value)
    return not path or (isinstance(value, dict) and path[0] in value and _has(value[path[0]], path[1:]))


def _missing_flag(case: Case, played: Played) -> str | None:
    if played.records or not _UNKNOWN_FLAG.search(played.stderr):
        return None
    flags = [need.removeprefix("flag:") for need in case.needs if need.startswith("flag:")]
    refused = [flag for flag in flags if flag in played.stderr]
    return f"it refuses the flag {refused[0]}" if refused else None


def settle(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Failures that come from what the program never had in any case, told as missing: a command that it does not know
    anywhere, an event or a field that it never sent, a tool that it never offered."""
    all_ = list(verdicts)
    seen = frozenset().union(*(verdict.seen for verdict in all_))
    known = frozenset().union(*(verdict.known for verdict in all_))
    unknown = {
        command: error
        for verdict in reversed(all_)
        for command, error in verdict.unknown.items()
        if command not in known
    }
    return [_settled(verdict, seen, unknown) for verdict in all_]


def _settled(verdict: Verdict, seen: frozenset[str], unknown: Mapping[str, str]) -> Verdict:
    if is_final(verdict):
        return verdict
    absent = [unknown[need] for need in verdict.case.needs if need in unknown]
    never = [need for need in sorted(late_needs([verdict.case])) if need not in seen]
    if not absent and not never:
        return verdict
    reason = f"it answers: {absent[0]}" if absent else _never(never[0])
    return verdict._replace(outcome="missing", reason=reason)


def _never(need: str) -> str:
    kind, _, name = need.partition(":")
    return f"it never offers the tool {name}" if kind == "tool" else f"it never sends {name}"


def is_final(verdict: Verdict) -> bool:
    """Whether what comes in other cases cannot change it."""
    if verdict.outcome != "failed" or not verdict.speaks:
        return True
    return not any(_is_open(need, verdict) for need in verdict.case.needs)


def _is_open(need: str, verdict: Verdict) -> bool:
    if need.startswith(_LATE):
        return need not in verdict.seen
    return need in COMMAND_NAMES and need not in verdict.known
