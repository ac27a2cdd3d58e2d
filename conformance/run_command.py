"""`atomic-conformance run [CASE ...] -- CMD`: plays cases, prints each verdict as it is reached, and writes reports."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from conformance import report
from conformance.cli import Misuse
from conformance.flag_values import count, must_be_writable
from conformance.profile import Profile
from conformance.run import chosen, default_jobs
from conformance.run import run as run_cases
from conformance.stop import stoppable
from conformance.target_options import add_target_arguments, read_target
from conformance.transcript import LEVELS, Case
from conformance.verdict import Verdict

_REPORTS: dict[str, Callable[[Sequence[Verdict], Sequence[str]], str]] = {
    "text": report.as_text, "json": report.as_json, "junit": report.as_junit,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [options] [CASE ...] -- CMD ..."
    parser.add_argument("cases", nargs="*", metavar="CASE", help="files or folders of cases (default: those shipped)")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="names of cases, or a section")
    parser.add_argument("--level", action="append", default=[], choices=LEVELS, help="only cases of this level")
    parser.add_argument("--jobs", type=count, default=default_jobs(), help="cases at a time (default: 2 x cores)")
    parser.add_argument(
        "--schema",
        choices=("on", "off", "strict"),
        default="on",
        help="each record by the schema; strict: no other types",
    )
    add_target_arguments(parser)
    parser.add_argument("--allow-missing", action="store_true", help="exit 0 although features are missing")
    parser.add_argument("--quiet", action="store_true", help="no line for each case")
    parser.add_argument(
        "--report",
        nargs=2,
        action="append",
        default=[],
        metavar=("KIND", "FILE"),
        help="text, json or junit, to a file",
    )


def run(options: argparse.Namespace) -> int:
    """0 when every case passed, 1 when not, 2 when the kit or a case is at fault."""
    target = read_target(options)._replace(check=schema_check(options.schema))
    for kind, _ in options.report:
        if kind not in _REPORTS:
            raise Misuse(f"--report {kind}: allowed are {', '.join(_REPORTS)}")
    for kind, file in options.report:
        must_be_writable(f"--report {kind}", file)
    cases = chosen(options.cases, options.only, options.level)
    if not cases:
        raise Misuse("no case is chosen; `list` shows their names")
    _check_lacks(target.profile, cases)
    with stoppable():
        verdicts = run_cases(cases, target, options.jobs, _teller(options.quiet))
    print("\n" + report.as_text(verdicts, options.command), end="", flush=True)
    for kind, file in options.report:
        Path(file).write_text(_REPORTS[kind](verdicts, options.command), encoding="utf-8")
    return _exit_code(verdicts, options.allow_missing)


def _check_lacks(profile: Profile, cases: Sequence[Case]) -> None:
    """What a profile lacks is what some case needs, else it is a slip that would go unseen."""
    rest = profile.lacks.keys() - {need for case in cases for need in case.needs}
    if rest:
        rest -= {need for case in chosen([], [], []) for need in case.needs}
    if rest:
        raise Misuse(f"the profile {profile.name} lacks {min(rest)!r}, which no case needs; `show CASE` lists needs")


def _exit_code(verdicts: Sequence[Verdict], allow_missing: bool) -> int:
    outcomes = {verdict.outcome for verdict in verdicts}
    if "error" in outcomes:
        return 2
    return 1 if outcomes & ({"failed"} if allow_missing else {"failed", "missing"}) else 0


def schema_check(wanted: str) -> Callable[[bytes], list[str]] | None:
    """The check of each line: `strict` refuses types of records that the schema does not know, `on` lets a program have
    some of its own."""
    if wanted == "off":
        return None
    from conformance.schema_check import check_line

    check_line(b"{}")  # compiles the schema, once and before there are threads
    if wanted == "strict":
        return check_line
    return lambda line: [fault for fault in check_line(line) if " is unknown; known are" not in fault]


def _teller(quiet: bool) -> Callable[[Verdict], None]:
    guard = threading.Lock()

    def tell(verdict: Verdict) -> None:
        if not quiet:
            with guard:
                print(report.line(verdict), flush=True)

    return tell
