"""Reports: verdicts as text for a terminal of 80 columns, as JSON, and as JUnit XML.

Pure. Each level is counted apart: a program may keep the whole contract and still differ from the reference.
"""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from conformance.transcript import FORMAT, LEVELS
from conformance.verdict import OUTCOMES, Verdict

_WIDTH = 80
_MARKS = {"passed": "ok", "failed": "FAIL", "missing": "miss", "error": "ERR"}


def line(verdict: Verdict) -> str:
    """One verdict as one line."""
    return f"{_MARKS[verdict.outcome]:4} {verdict.seconds:5.1f}s {verdict.case.name}"


def as_text(verdicts: Sequence[Verdict], command: Sequence[str]) -> str:
    """The faults, what is missing, then the counts for each level."""
    parts = [detail(verdict) for verdict in verdicts if verdict.outcome in ("failed", "error")]
    missing = [f"  {verdict.case.name}: {verdict.reason}" for verdict in verdicts if verdict.outcome == "missing"]
    if missing:
        parts.append("\n".join(["missing features (the program does not claim them):", *map(_cut, missing)]))
    parts.append(counts(verdicts))
    return "\n\n".join(parts) + "\n"


def detail(verdict: Verdict) -> str:
    """What a reader needs of one case that did not pass."""
    case = verdict.case
    lines = [f"{_MARKS[verdict.outcome]} {case.name} ({case.level})", *_wrap(case.title, "  ")]
    for fault in verdict.faults[:3]:
        lines += [part for row in fault.text().splitlines() for part in _wrap(row, "    ")]
    if len(verdict.faults) > 3:
        lines.append(f"    and {len(verdict.faults) - 3} more")
    if verdict.outcome == "error":
        lines += _wrap(verdict.reason, "    ")
    if verdict.stderr.strip():
        lines += ["    stderr:", *(_cut(f"      {row}") for row in verdict.stderr.strip().splitlines()[-4:])]
    lines += _wrap(f"shows: {case.shows['file']}, {case.shows['heading']}: {case.shows['says']}", "  ")
    return "\n".join(lines)


def _wrap(text: str, indent: str) -> list[str]:
    lead = indent + " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(text.strip(), _WIDTH, initial_indent=lead, subsequent_indent=lead + "  ") or [lead]


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def counts(verdicts: Sequence[Verdict]) -> str:
    """A table: one row a level, one column an outcome."""
    table = tally(verdicts)
    head = f"{'':10}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES) + f"{'of':>9}"
    rows = [head]
    for level in (*LEVELS, "all"):
        row = table[level]
        rows.append(f"{level:10}" + "".join(f"{row[outcome]:9}" for outcome in OUTCOMES) + f"{sum(row.values()):9}")
    return "\n".join(rows)


def tally(verdicts: Sequence[Verdict]) -> dict[str, Counter[str]]:
    table = {level: Counter[str]() for level in (*LEVELS, "all")}
    for verdict in verdicts:
        table[verdict.case.level][verdict.outcome] += 1
        table["all"][verdict.outcome] += 1
    return table


def as_json(verdicts: Sequence[Verdict], command: Sequence[str]) -> str:
    """The whole report for machines: `counts` by level, and `cases` in their order."""
    table = tally(verdicts)
    whole = {
        "format": FORMAT,
        "command": list(command),
        "counts": {level: {outcome: table[level][outcome] for outcome in OUTCOMES} for level in (*LEVELS, "all")},
        "cases": [_case(verdict) for verdict in verdicts],
    }
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _case(verdict: Verdict) -> dict[str, Any]:
    case = verdict.case
    told: dict[str, Any] = {"name": case.name, "title": case.title, "level": case.level, "outcome": verdict.outcome}
    told |= {"seconds": round(verdict.seconds, 3), "shows": dict(case.shows)}
    if verdict.outcome != "passed":
        told["reason"] = verdict.reason
        told["faults"] = [{key: value for key, value in fault._asdict().items() if value} for fault in verdict.faults]
    return told


def as_junit(verdicts: Sequence[Verdict], command: Sequence[str]) -> str:
    """One suite a level; a missing feature is a skipped test."""
    suites = [_suite(level, [one for one in verdicts if one.case.level == level]) for level in LEVELS]
    return '<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n' + "".join(suites) + "</testsuites>\n"


def _suite(level: str, verdicts: Sequence[Verdict]) -> str:
    count = Counter(verdict.outcome for verdict in verdicts)
    head = f'<testsuite name="{level}" tests="{len(verdicts)}" failures="{count["failed"]}"'
    head += f' errors="{count["error"]}" skipped="{count["missing"]}">\n'
    return head + "".join(row for verdict in verdicts for row in _junit_case(verdict)) + "</testsuite>\n"


def _junit_case(verdict: Verdict) -> Iterator[str]:
    section, _, name = verdict.case.name.rpartition("/")
    yield f'<testcase classname={quoteattr(section)} name={quoteattr(name)} time="{verdict.seconds:.3f}">'
    tags = {"failed": "failure", "missing": "skipped", "error": "error"}
    if tag := tags.get(verdict.outcome):
        text = "\n".join(fault.text() for fault in verdict.faults)
        yield f"<{tag} message={quoteattr(_printable(verdict.reason))}>{escape(_printable(text))}</{tag}>"
    yield "</testcase>\n"


def _printable(text: str) -> str:
    """XML 1.0 has no control characters and no surrogates."""
    return "".join(one if one in "\n\t" or (one >= " " and not "\ud800" <= one <= "\udfff") else "�" for one in text)
