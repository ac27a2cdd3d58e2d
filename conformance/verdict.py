"""Verdicts: what one play says about a program. A missing feature is told apart from a fault, and both from our own.

Pure. `passed`: everything held. `failed`: the program did something else. `missing`: it says itself, or shows, that it
does not have a feature that the case names under `needs`. `error`: the case or the kit is at fault.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from conformance.driver import Record
from conformance.fault import Fault
from conformance.play import Played
from conformance.transcript import Case

Outcome = Literal["passed", "failed", "missing", "error"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "missing", "error")
_UNKNOWN_COMMAND = re.compile(r"unknown command", re.IGNORECASE)
_UNKNOWN_FLAG = re.compile(r"unknown|unrecognized|unexpected|invalid", re.IGNORECASE)


class Verdict(NamedTuple):
    """`reason` says in one line what is missing or wrong; `faults` are all that were found, the first first."""

    case: Case
    outcome: Outcome
    reason: str
    faults: tuple[Fault, ...]
    seconds: float
    seen: frozenset[str] = frozenset()  # which of the wanted `event:` and `field:` features were there
    stderr: str = ""


def lacking(case: Case, lacks: Mapping[str, str]) -> Verdict | None:
    """The verdict without a play, when the profile says that a needed feature is not there."""
    for need in case.needs:
        if need in lacks:
            return Verdict(case, "missing", f"{need}: {lacks[need]}", (), 0.0)
    return None


def judge(case: Case, played: Played, wanted: Collection[str] = ()) -> Verdict:
    """The verdict of one play. Needs of the forms `event:` and `field:` are judged when all cases have been played
    (`settle`); `wanted` are those of all cases."""
    seen = frozenset(need for need in wanted if any(_shows(record, need) for record in played.records))
    missing = (_missing_command(case, played.records) or _missing_flag(case, played)) if played.faults else None
    outcome: Outcome = "passed" if not played.faults else "missing" if missing else "failed"
    reason = missing or (played.faults[0].what if played.faults else "")
    return Verdict(case, outcome, reason, tuple(played.faults), played.seconds, seen, played.stderr)


def late_needs(cases: Iterable[Case]) -> frozenset[str]:
    """The needs that can be judged only by all records of a run."""
    return frozenset(need for case in cases for need in case.needs if need.startswith(("event:", "field:")))


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


def _missing_command(case: Case, records: Sequence[Record]) -> str | None:
    for record in records:
        command = record.get("command")
        unknown = record.get("type") == "response" and record.get("success") is False
        if unknown and command in case.needs and _UNKNOWN_COMMAND.search(str(record.get("error"))):
            return f"it answers: {record['error']}"
    return None


def _missing_flag(case: Case, played: Played) -> str | None:
    if played.records or not _UNKNOWN_FLAG.search(played.stderr):
        return None
    flags = [need.removeprefix("flag:") for need in case.needs if need.startswith("flag:")]
    refused = [flag for flag in flags if flag in played.stderr]
    return f"it refuses the flag {refused[0]}" if refused else None


def settle(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Failures that come from an event or a field which the program never sent in any case, told as missing."""
    all_ = list(verdicts)
    seen = frozenset().union(*(verdict.seen for verdict in all_))
    return [_settled(verdict, seen) for verdict in all_]


def _settled(verdict: Verdict, seen: frozenset[str]) -> Verdict:
    never = [need for need in sorted(late_needs([verdict.case])) if need not in seen]
    if verdict.outcome != "failed" or not never:
        return verdict
    return verdict._replace(outcome="missing", reason=f"it never sends {never[0].partition(':')[2]}")
