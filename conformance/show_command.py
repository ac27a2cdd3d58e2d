"""`atomic-conformance show CASE`: one case for a reader, a step a line, and what of the contract it shows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from conformance.run import chosen
from conformance.transcript import Case


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", help="the name of a case, or a file")


def run(options: argparse.Namespace) -> int:
    is_file = options.case.endswith(".jsonl")
    cases = chosen([options.case], [], []) if is_file else chosen([], [options.case], [])
    print("\n\n".join("\n".join(described(case)) for case in cases))
    return 0


def described(case: Case) -> Iterator[str]:
    """The lines that tell one case."""
    yield f"{case.name} ({case.level})"
    yield f"  {case.title}"
    yield f"  shows  {case.shows['file']}, {case.shows['heading']}"
    yield f"         {case.shows['says']}"
    yield f"  needs  {', '.join(case.needs) or 'nothing'}"
    yield from (f"  start  {key}: {_json(value)}" for key, value in case.start.items())
    yield from (f"  model  answers {number}: {_json(reply)}" for number, reply in enumerate(case.replies, 1))
    for step in case.steps:
        options = "".join(f"  [{key} {_json(value)}]" for key, value in step.options.items())
        yield f"  {step.line:3}  {step.verb:14} {_json(step.value)}{options}"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
