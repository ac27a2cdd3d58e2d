"""`atomic-conformance list`: the cases by section, with their level and title."""

from __future__ import annotations

import argparse
from itertools import groupby

from conformance.run import chosen
from conformance.transcript import LEVELS, Case


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", nargs="*", metavar="CASE", help="files or folders of cases (default: those shipped)")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="names of cases, or a section")
    parser.add_argument("--level", action="append", default=[], choices=LEVELS, help="only cases of this level")


def run(options: argparse.Namespace) -> int:
    cases = chosen(options.cases, options.only, options.level)
    for section, inside in groupby(cases, lambda case: case.name.rpartition("/")[0]):
        print(section or ".")
        for case in inside:
            print(f"  {_name(case):34} {case.level:10} {case.title}")
    print(f"{len(cases)} cases: " + ", ".join(f"{sum(c.level == level for c in cases)} {level}" for level in LEVELS))
    return 0


def _name(case: Case) -> str:
    return case.name.rpartition("/")[2]
