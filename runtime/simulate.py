"""Plays the real actors under a seeded scheduler, thousands of interleavings a minute, without threads or files.

`python -m runtime.simulate --seeds N [--start K] [--crash] [--disk] [--trace FILE]`. A seed decides everything: what
the client says, how its bytes are cut, who runs when, how commands, tools and servers behave. When an invariant does
not hold, the seed is printed, what was violated, and the mail that led there; the exit code is 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from actors.trace import trace_line
from runtime.simulation.house import House, Parts, Plan
from runtime.simulation.invariants import violations

SHOWN_MAIL = 400


class Played:
    """A seed and what came of it."""

    __slots__ = ("house", "plan", "violations")

    def __init__(self, plan: Plan, parts: Parts | None = None) -> None:
        self.plan = plan
        self.house = House(plan, parts)
        is_over = self.house.play()
        self.violations = violations(self.house, is_over)

    def trace(self) -> Iterator[bytes]:
        """The mail of the seed until the program ended, a JSON line each."""
        for sender, receiver, mail in self.house.scheduler.trace[: self.house.ended_at]:
            yield trace_line(sender, receiver, mail)

    def report(self) -> str:
        """What was violated, how to play it again, and the last of the mail."""
        plan = self.plan
        flags = " --crash" * plan.crash + " --disk" * plan.disk
        again = f"python -m runtime.simulate --start {plan.seed} --seeds 1{flags}"
        fault = self.house.fault
        struck = [f"the fault struck {fault.struck} {fault.moment} its mail"] if fault and fault.struck else []
        mail = [line.decode().rstrip("\n") for line in self.trace()][-SHOWN_MAIL:]
        return "\n".join([f"seed {plan.seed} ({again})", *struck, *self.violations, "mail:", *mail])


def failures(seeds: range, *, crash: bool = False, disk: bool = False, parts: Parts | None = None) -> Iterator[Played]:
    """The seeds that violate an invariant."""
    for seed in seeds:
        played = Played(Plan(seed, crash, disk), parts)
        if played.violations:
            yield played


def main(argv: list[str] | None = None) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="python -m runtime.simulate", description=__doc__, allow_abbrev=False)
    parser.add_argument("--seeds", type=int, default=2000, help="how many seeds to play")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--crash", action="store_true", help="an exception in one handler of each seed")
    parser.add_argument("--disk", action="store_true", help="an append that fails in each seed")
    parser.add_argument(
        "--trace", metavar="FILE", help="write the mail of the last seed that was played, as JSON lines"
    )
    options = parser.parse_args(argv)
    return _play(range(options.start, options.start + options.seeds), options.crash, options.disk, options.trace)


def _play(seeds: range, crash: bool, disk: bool, trace: str | None) -> int:
    """Stops at the first seed that violates an invariant."""
    played = None
    for seed in seeds:
        played = Played(Plan(seed, crash, disk))
        if played.violations:
            print(played.report())
            break
    if trace is not None and played is not None:
        with open(trace, "wb") as file:
            file.writelines(played.trace())
    if played is None or not played.violations:
        print(f"{len(seeds)} seeds, no violation")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
