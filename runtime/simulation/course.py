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

from runtime.simulation.script import Line, looks, script

Mix = Literal["mixed", "calm", "crash", "disk", "agents", "visitors"]
Moment = Literal["before", "after", "inside"]

_DELEGATING: tuple[Mix, ...] = ("agents", "visitors")
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


SLOWABLE_OF_VISITORS = ("door", "visitor", "door-pump", "inspector", "visitor-read", "visitor-write")
"""Apart from the others, so that a course without visitors draws what it always drew."""


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


Farewell = Literal["stays", "says no more", "goes"]
FAREWELLS: tuple[Farewell, ...] = ("stays", "stays", "stays", "says no more", "goes")


class Onlooker(Struct, frozen=True, omit_defaults=True):
    """An inspector: so many of its steps after the door has opened it connects, and says its lines. `reader` is what it
    does with what it is sent (`closes`: it goes); `farewell` what it does after its last line."""

    after: int
    lines: tuple[Line, ...]
    reader: Reader = Reader()
    farewell: Farewell = "stays"


class Course(Struct, frozen=True, omit_defaults=True):
    """`signals`: the first comes once that many lines are written, the second some steps after it; none: stdin is
    closed after the last line. `excluded` are mishaps of the world that never happen. `delegates`: the model hands work
    to subagents, of whom the client has much to say. `onlookers` come with the first task; without them there is no
    door. `note` is for people."""

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
    onlookers: tuple[Onlooker, ...] = ()
    note: str = ""


def course_of(seed: int, mix: Mix = "mixed") -> Course:
    """The course of a seed. `mixed`: two seeds in ten have a crash, one a disk that fails, and some two hand work to
    subagents; of these, and of the others, one in ten has visitors. `agents`: all hand work on, and three in ten have a
    crash, one a disk that fails. `visitors`: the same, and all have visitors."""
    rng = random.Random(seed)
    delegates = mix in _DELEGATING or random.Random(f"{seed} delegates").random() < 0.2
    struck = (
        {6: "crash", 7: "crash", 8: "crash", 9: "disk"} if mix in _DELEGATING else {7: "crash", 8: "crash", 9: "disk"}
    )
    fault = struck.get(seed % 10, "calm") if mix in ("mixed", *_DELEGATING) else mix
    ending = rng.random()
    signals: tuple[int, ...] = (rng.choice(SIGNALS),) if 0.7 < ending <= 0.9 else ()
    if signals and rng.random() < 0.15:
        signals += (rng.choice(SIGNALS),)
    longer = 4 if delegates else 1
    onlookers, held_back = _watching(random.Random(f"{seed} onlookers"), mix, delegates)
    return Course(
        seed,
        lines=tuple(script(rng, delegates)),
        after_lines=rng.randrange(1, 22),
        signals=signals,
        reader=_reader(rng, ending),
        crash=Crash(rng.randrange(1, 160 * longer), rng.choice(MOMENTS)) if fault == "crash" else None,
        refusals=Refusals(rng.randrange(1, 30 * longer), rng.choice((1, 1, 10_000))) if fault == "disk" else None,
        slow=(*rng.sample(SLOWABLE, rng.choice((0, 0, 1, 2, 4))), *held_back),
        preempting=rng.choice((0.0, 0.1, 0.3)),
        delegates=delegates,
        onlookers=onlookers,
    )


def _watching(rng: random.Random, mix: Mix, delegates: bool) -> tuple[tuple[Onlooker, ...], list[str]]:
    """Those who look on, and what of theirs is held back. Thrown apart: the rest of the course stays what it is."""
    if not (rng.random() < 0.1 and mix != "agents") and mix != "visitors":
        return (), []
    onlookers = tuple(_onlooker(rng, number, delegates) for number in range(rng.choice((1, 1, 2, 3))))
    return onlookers, rng.sample(SLOWABLE_OF_VISITORS, rng.choice((0, 0, 1, 2)))


def _onlooker(rng: random.Random, number: int, delegates: bool) -> Onlooker:
    after, lines = rng.choice((0, 0, 10, 60, 200)), tuple(looks(rng, number, delegates))
    return Onlooker(after, lines, _look_on(rng), rng.choice(FAREWELLS))


def _look_on(rng: random.Random) -> Reader:
    kind = rng.random()
    if kind > 0.9:
        return Reader(stops=rng.randrange(8))
    if kind > 0.8:
        return Reader(closes=rng.randrange(8))
    pauses = tuple(sorted(rng.randrange(12) for _ in range(rng.choice((0, 0, 0, 1, 2)))))
    return Reader(pauses=pauses)


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
