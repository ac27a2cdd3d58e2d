"""A course: everything that decides how one seed is played, as a value that can be stored, shortened and replayed.

A seed says what the client does, which faults strike and who runs when. `course_of` spells the client's and the faults'
part out; what the world does is thrown from the seed (see `chances`), and the order of steps is either drawn from the
seed too or given: `choices` then holds the steps at which another than the one that waited longest had its turn.
"""

from __future__ import annotations

import random
from typing import Literal

import msgspec
from msgspec import Struct

from runtime.simulation.script import Line, script

Mix = Literal["mixed", "calm", "crash", "disk", "agents"]
Moment = Literal["before", "after", "inside"]

MOMENTS: tuple[Moment, ...] = ("before", "after", "inside")
SIGNALS = (15, 15, 1, 2)
SLOWABLE = (
    "writer",
    "shells",
    "sessions",
    "session",
    "intake",
    "root",
    "queue",
    "catalog",
    "preferences",
    "model-call",
    "tool-call",
    "shell",
    "process",
    "tasks",
    "task",
    "agent",
    "subagent-session",
    "command",
    "stream",
    "tool",
    "session-open",
    "catalog-pump",
    "reload",
    "export",
    "images-pump",
    "compaction",
    "agent-pump",
    "child-pump",
    "alarm",
    "client",
)


class Crash(Struct, frozen=True):
    """An exception at the `at`-th mail: before its handler, after it, or with the first mail that it tells."""

    at: int
    moment: Moment


class Refusals(Struct, frozen=True):
    """The `at`-th append to a session file fails, and `count` - 1 after it."""

    at: int
    count: int


class Reader(Struct, frozen=True, omit_defaults=True):
    """What the client does with stdout, in bursts that it has read by then: it closes it, stops reading for good, or
    reads on only when nothing else can move."""

    closes: int | None = None
    stops: int | None = None
    pauses: tuple[int, ...] = ()


class Course(Struct, frozen=True, omit_defaults=True):
    """`signals`: the first comes once that many lines are written, the second some steps after it; none: stdin is
    closed after the last line. `excluded` are mishaps of the world that never happen. `delegates`: the model hands work
    to subagents, of whom the client has much to say. `note` is for people."""

    seed: int
    lines: tuple[Line, ...] = ()
    after_lines: int = 0
    signals: tuple[int, ...] = ()
    reader: Reader = Reader()
    crash: Crash | None = None
    refusals: Refusals | None = None
    slow: tuple[str, ...] = ()
    preempting: float = 0.0
    excluded: tuple[str, ...] = ()
    order: int | None = None
    choices: dict[int, int] | None = None
    delegates: bool = False
    note: str = ""


def course_of(seed: int, mix: Mix = "mixed") -> Course:
    """The course of a seed. `mixed`: two seeds in ten have a crash, one a disk that fails, and some two hand work to
    subagents. `agents`: all do, and three in ten have a crash, one a disk that fails."""
    rng = random.Random(seed)
    delegates = mix == "agents" or random.Random(f"{seed} delegates").random() < 0.2
    struck = {6: "crash", 7: "crash", 8: "crash", 9: "disk"} if mix == "agents" else {7: "crash", 8: "crash", 9: "disk"}
    fault = struck.get(seed % 10, "calm") if mix in ("mixed", "agents") else mix
    ending = rng.random()
    signals: tuple[int, ...] = (rng.choice(SIGNALS),) if 0.7 < ending <= 0.9 else ()
    if signals and rng.random() < 0.15:
        signals += (rng.choice(SIGNALS),)
    longer = 4 if delegates else 1
    return Course(
        seed,
        lines=tuple(script(rng, delegates)),
        after_lines=rng.randrange(1, 22),
        signals=signals,
        reader=_reader(rng, ending),
        crash=Crash(rng.randrange(1, 160 * longer), rng.choice(MOMENTS)) if fault == "crash" else None,
        refusals=Refusals(rng.randrange(1, 30 * longer), rng.choice((1, 1, 10_000))) if fault == "disk" else None,
        slow=tuple(rng.sample(SLOWABLE, rng.choice((0, 0, 1, 2, 4)))),
        preempting=rng.choice((0.0, 0.1, 0.3)),
        delegates=delegates,
    )


def _reader(rng: random.Random, ending: float) -> Reader:
    if ending > 0.98:
        return Reader(stops=rng.randrange(12))
    if ending > 0.92:
        return Reader(closes=rng.randrange(12))
    pauses = tuple(sorted(rng.randrange(40) for _ in range(rng.choice((0, 0, 0, 1, 3)))))
    return Reader(pauses=pauses)


def read_course(data: bytes) -> Course:
    """Raises `msgspec.DecodeError`."""
    return msgspec.json.decode(data, type=Course)


def written_course(course: Course) -> bytes:
    return msgspec.json.format(msgspec.json.encode(course), indent=1) + b"\n"
