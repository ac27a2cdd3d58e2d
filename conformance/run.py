"""Runs many cases against one program, several at a time: each has its own model server, home and process.

Owns the threads. Promises that the verdicts come in the order of the cases, whatever finished first.
"""

from __future__ import annotations

import fnmatch
import os
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from importlib import resources
from pathlib import Path

from conformance.cli import Misuse
from conformance.fault import KitError, NotStarted
from conformance.halt import Halt
from conformance.play import play
from conformance.player import Target
from conformance.transcript import Case, read_case, read_cases
from conformance.verdict import Verdict, is_final, judge, lacking, late_needs, settle

Tell = Callable[[Verdict], None]
_LOOK = 0.25  # seconds


def shipped_folder() -> Path:
    """Where the cases of this distribution are."""
    return Path(str(resources.files("conformance"))) / "cases"


def chosen(paths: Sequence[str], only: Sequence[str], levels: Sequence[str]) -> list[Case]:
    """The shipped cases, or those of the given files and folders, whose name matches a glob of `only` (or lies in a
    section named there), and whose level is asked for. Misuse for a glob that matches none."""
    cases = [case for path in paths or [str(shipped_folder())] for case in _read(Path(path))]
    for glob in only:
        if not any(_named(case.name, [glob]) for case in cases):
            raise Misuse(f"no case is chosen by {glob!r}; `list` shows their names")
    return [case for case in cases if _named(case.name, only) and (not levels or case.level in levels)]


def _read(path: Path) -> list[Case]:
    return read_cases(path) if path.is_dir() else [read_case(path)]


def _named(name: str, only: Sequence[str]) -> bool:
    return not only or any(fnmatch.fnmatchcase(name, glob) or name.startswith(f"{glob}/") for glob in only)


def default_jobs() -> int:
    """Twice the cores: a case mostly waits."""
    return 2 * (os.cpu_count() or 1)


def run_case(case: Case, target: Target, wanted: Collection[str] = ()) -> Verdict:
    """Play and judge. A fault of the kit is a verdict too; only NotStarted is raised. `wanted` as for `judge`."""
    absent = lacking(case, target.profile.lacks)
    if absent is not None:
        return absent
    try:
        return judge(case, play(case, target), wanted)
    except NotStarted:
        raise
    except KitError as problem:
        return Verdict(case, "error", str(problem), (), 0.0)
    except Exception as problem:  # one broken case must not hide the others
        where = traceback.format_exc(limit=-3)
        return Verdict(case, "error", f"{type(problem).__name__}: {problem}", (), 0.0, stderr=where)


def _await(futures: Collection[Future[Verdict]]) -> None:
    """Until all have ended, or one has raised. A signal that comes on the way into a wait does not end that wait, so
    none is without an end of its own."""
    open_: Collection[Future[Verdict]] = futures
    while open_:
        done, open_ = wait(futures, _LOOK, FIRST_EXCEPTION)
        if any(future.exception() for future in done):
            return


def run(cases: Iterable[Case], target: Target, jobs: int, tell: Tell = lambda verdict: None) -> list[Verdict]:
    """All verdicts. `tell` is called with each as it is reached, from several threads; with those that other cases may
    still change, at the end. NotStarted ends the run, and so does an interrupt: what is being played ends at once, and
    nothing is told of it."""
    all_ = list(cases)
    wanted = late_needs(all_)
    halt = Halt()

    def one(case: Case) -> Verdict:
        verdict = run_case(case, target._replace(halt=halt), wanted)
        if is_final(verdict) and not halt.called:
            tell(verdict)
        return verdict

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(one, case) for case in all_]
        try:
            _await(futures)
            reached = [future.result() for future in futures]
        except BaseException:
            halt.call()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    settled = settle(reached)
    for before, after in zip(reached, settled, strict=True):
        if not is_final(before):
            tell(after)
    return settled
