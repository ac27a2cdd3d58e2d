"""Plays the real actors under a seeded scheduler, thousands of interleavings a minute, without threads or files.

`python -m runtime.simulate --seeds N [--start K] [--jobs J]`. A seed decides everything: what the client says, how its
bytes are cut, who runs when, how commands, tools and servers behave, and which faults strike. When an invariant does
not hold, the course is made as short as can be and printed, with what was violated and the mail that led there; the
exit code is 1.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from msgspec import Struct
from msgspec.structs import replace

from actors.trace import trace_line
from runtime.simulation.course import Course, Mix, course_of, read_course, written_course
from runtime.simulation.coverage import seen_in, table
from runtime.simulation.house import House
from runtime.simulation.invariants import violations
from runtime.simulation.parts import Parts
from runtime.simulation.seen import Violation
from runtime.simulation.shrink import Shrinker

if TYPE_CHECKING:
    import argparse

SHOWN_MAIL = 400
CHUNK = 250
"""Seeds that one process plays before it reports."""


class Played:
    """A course and what came of it."""

    __slots__ = ("course", "house", "violations")

    def __init__(self, course: Course, parts: Parts | None = None) -> None:
        self.course = course
        self.house = House(course, parts)
        is_over = self.house.play()
        self.violations: list[Violation] = violations(self.house, is_over)

    def trace(self) -> Iterator[bytes]:
        """The mail until the program ended, a JSON line each."""
        for sender, receiver, mail in self.house.scheduler.trace[: self.house.ended_at]:
            yield trace_line(sender, receiver, mail)

    def shortened(self, parts: Parts | None = None) -> Played:
        """The shortest course that was found with a violation of the same kind as the first one here."""
        kind = self.violations[0].kind

        def violates(course: Course) -> tuple[bool, dict[int, int], set[str]]:
            played = Played(course, parts)
            is_there = any(violation.kind == kind for violation in played.violations)
            return is_there, played.house.scheduler.order.taken, played.house.chances.met

        return Played(Shrinker(self.course, violates).shrink(), parts)

    def report(self) -> str:
        """What was violated, the course, what the client said and the last of the mail."""
        fault = self.house.fault
        struck = [f"the fault struck {fault.struck} {fault.moment} its mail"] if fault and fault.struck else []
        said = [line.decode(errors="replace")[:200] for line in self.house.client.sent]
        course = replace(self.course, lines=())
        for inspector in self.house.way_in.inspectors:
            said += ["an inspector:", *(line.decode(errors="replace")[:200] for line in inspector.lines)]
        mail = [line.decode().rstrip("\n") for line in self.trace()][-SHOWN_MAIL:]
        return "\n".join(
            [
                f"seed {self.course.seed}",
                *(str(violation) for violation in self.violations),
                *struck,
                f"course: {written_course(course).decode().strip()}",
                "said:",
                *said,
                f"mail ({len(mail)} of {self.house.ended_at}):",
                *mail,
            ]
        )


def failures(seeds: range, mix: Mix = "mixed", parts: Parts | None = None) -> Iterator[Played]:
    """The seeds that violate an invariant."""
    for seed in seeds:
        played = Played(course_of(seed, mix), parts)
        if played.violations:
            yield played


# ---- many seeds --------------------------------------------------------------------------------------------------


class Tally(Struct):
    """What came of some seeds. `failed` is the first that violated an invariant; those after it were not played. `cpu`
    is in seconds: on a machine that does other things as well it tells more than the time that passed."""

    seeds: int = 0
    messages: int = 0
    cpu: float = 0.0
    failed: int | None = None
    seen: Counter[str] = Counter()

    def add(self, other: Tally) -> None:
        self.seeds += other.seeds
        self.messages += other.messages
        self.cpu += other.cpu
        self.failed = other.failed if self.failed is None else self.failed
        self.seen = self.seen + other.seen


def play_chunk(start: int, end: int, mix: Mix, covers: bool) -> Tally:
    """Plays seeds until one fails. Runs in a process of its own."""
    tally = Tally(seen=Counter())
    began = time.process_time()
    for seed in range(start, end):
        played = Played(course_of(seed, mix))
        tally.seeds += 1
        tally.messages += len(played.house.scheduler.trace)
        if covers:
            tally.seen.update(seen_in(played.house))
        if played.violations:
            tally.failed = seed
            break
    tally.cpu = time.process_time() - began
    return tally


def play_all(seeds: range, mix: Mix, jobs: int, covers: bool) -> Iterator[Tally]:
    """A tally for each chunk, in the order of the seeds."""
    chunks = [(start, min(start + CHUNK, seeds.stop)) for start in range(seeds.start, seeds.stop, CHUNK)]
    if jobs == 1:
        yield from (play_chunk(start, end, mix, covers) for start, end in chunks)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Not by fork: whoever calls this may have threads, and of them a child would have their locks alone.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        waiting = [pool.submit(play_chunk, start, end, mix, covers) for start, end in chunks]
        try:
            yield from (one.result() for one in waiting)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


# ---- the command -------------------------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> int:
    options = _options(argv)
    if options.replay is not None:
        with open(options.replay, "rb") as file:
            return _show(Played(read_course(file.read())), options)
    if options.trace is not None:
        return _show(Played(course_of(options.start, options.mix)), options)
    total = Tally(seen=Counter())
    started = time.perf_counter()
    seeds = range(options.start, options.start + options.seeds)
    for tally in play_all(seeds, options.mix, options.jobs, options.coverage):
        total.add(tally)
        _progress(total, options.seeds, time.perf_counter() - started)
        if total.failed is not None:
            break
    if options.coverage:
        print(table(total.seen, total.seeds))
    if total.failed is not None:
        return _shorten(total.failed, options)
    took = time.perf_counter() - started
    rate = f"{total.messages:,} messages in {took:.0f} s, {total.messages / took:,.0f} a second, {options.jobs} jobs"
    print(f"{total.seeds:,} seeds, no violation ({rate}, {total.cpu:.0f} s of CPU)")
    return 0


def _options(argv: list[str] | None) -> argparse.Namespace:
    import argparse
    import os

    parser = argparse.ArgumentParser(prog="python -m runtime.simulate", description=__doc__, allow_abbrev=False)
    parser.add_argument("--seeds", type=int, default=2000, help="how many seeds to play")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; all cores without it")
    parser.add_argument(
        "--mix",
        choices=get_args(Mix),
        default="mixed",
        help="in some, no, or each seed an exception in a handler, or an append that fails; in each work for subagents "
        "or that, and visitors",
    )
    parser.add_argument("--coverage", action="store_true", help="tell how many seeds saw which command, event, mail")
    parser.add_argument(
        "--save", metavar="FILE", help="write the shortest course that fails, for tests/simulation_plans"
    )
    parser.add_argument("--replay", metavar="FILE", help="play a course that was saved, instead of seeds")
    parser.add_argument("--trace", metavar="FILE", help="play one seed and write its mail, as JSON lines")
    return parser.parse_args(argv)


def _progress(total: Tally, wanted: int, took: float) -> None:
    if sys.stderr.isatty() or total.seeds % (CHUNK * 20) == 0:
        print(f"{total.seeds:,} of {wanted:,} seeds, {took:.0f} s", file=sys.stderr, flush=True)


def _shorten(seed: int, options: argparse.Namespace) -> int:
    played = Played(course_of(seed, options.mix))
    print(f"seed {seed} fails: {played.violations[0]}; looking for a shorter course", file=sys.stderr, flush=True)
    return _show(played.shortened(), options)


def _show(played: Played, options: argparse.Namespace) -> int:
    """Prints the report of a course that fails, and writes what was asked for."""
    if options.trace is not None:
        with open(options.trace, "wb") as trace:
            trace.writelines(played.trace())
    if not played.violations:
        print("no violation")
        return 0
    print(played.report())
    if options.save is not None:
        with open(options.save, "wb") as file:
            file.write(written_course(replace(played.course, note=str(played.violations[0]))))
    return 1


if __name__ == "__main__":
    sys.exit(main())
