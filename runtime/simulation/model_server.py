"""Model servers: replies as the bytes of a real one, cut anywhere, that fail, break off or stall."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from actors.base import Address
from actors.mail import ModelCallMail, ModelRequest, StreamBytes, StreamEnded, StreamHead
from actors.model.scripted import Call, Cue, Record, plan_reply
from actors.session.compaction.planner import SYSTEM as PLANNER
from runtime.simulation.chances import Dice
from runtime.simulation.pumps import SMALL_WINDOW, CountedWindow, Pump

_CALLS = (
    Call("read"),
    Call("bash", {"command": "foreground"}),
    Call("bash", {"command": "background", "wait": {"kind": "background"}}),
    Call("bash", {"command": "short", "wait": {"kind": "foreground", "budgetMs": 1}}),
    *(Call("bash", {"command": "terminal", "pty": True, "wait": {"kind": "background"}}) for _ in range(3)),
    Call("bash", {"action": "wait", "id": "task-of-another"}),
    Call("kill", {"id": "task-of-another"}),
    Call("write", {"path": "/simulated/a"}),
    Call("write", {"path": "/simulated/b"}),
    Call("write"),
    Call("alone"),
    Call("unknown"),
)
# error and HTTP status (200: in the middle of the stream), by what it means for the run
_ERRORS: dict[str, tuple[str, int]] = {
    "model: overloaded in the stream": ("overloaded", 200),
    "model: server error": ("internal error", 500),
    "model: rate limit": ("rate limit", 429),
    "model: key refused": ("invalid api key", 401),
    "model: refuses for good": ("refused to answer: content policy", 400),
    "model: context overflow": ("prompt is too long: 200001 tokens > 200000 maximum", 400),
}


class SimulatedStream(Pump):
    """The bytes of one reply, cut anywhere; some servers fail, stop in the middle, or say nothing until they are
    cut off. A request whose key cannot be found is never sent."""

    def __init__(self, number: int, request: ModelRequest, call: Address[ModelCallMail], dice: Dice) -> None:
        super().__init__()
        self.number = number
        self.window = CountedWindow(*SMALL_WINDOW)
        self.released = False
        self.was_cut = False
        self._call = call
        self._keyless = dice.strikes("model: no credential for the request", 0.03)
        record = _plan(dice) if request.prompt.system == PLANNER else _reply(dice)
        self._status, steps = plan_reply((record,), Cue("", 0, _tokens(dice)), number)
        body = b"".join(step.data for step in steps)
        self._stalls = dice.strikes("model: says nothing more", 0.15)
        self._breaks = dice.strikes("model: connection breaks", 0.07)
        kept = dice.below(len(body))
        if self._breaks or self._stalls:
            body = body[:kept]
        self._chunks = _cut(body, dice)
        self._answered = bool(self._chunks) or not self._stalls

    def _run(self) -> Iterator[bool]:
        if self._keyless:
            self._call.tell(StreamEnded("No API key for provider: scripted"))
            return
        if self._answered:
            self._call.tell(StreamHead(self._status))
            yield True
        for chunk in self._chunks:
            while not self.is_left and not self.window.has_room(len(chunk)):
                yield False
            if self.is_left:
                break
            ack = self.window.admit(len(chunk))
            if ack is not None:
                self._call.tell(StreamBytes(chunk, ack))
            yield True
        while self._stalls and not self.is_left:
            yield False
        error = "Request was aborted" if self.was_cut else "simulated: connection lost" if self._breaks else None
        self._call.tell(StreamEnded(error, unanswered=error is not None and not self._answered))

    @property
    def is_left(self) -> bool:
        return self.was_cut or self.released

    def cut(self) -> None:
        self.was_cut = True
        self.window.close()

    def release(self) -> None:
        self.released = True


def _reply(dice: Dice) -> Record:
    error = dice.one_of([(name, 0.035) for name in _ERRORS])
    calls = tuple(dice.choice(_CALLS) for _ in range(dice.choice((1, 1, 2, 3))))
    thinking = "hm" if dice.strikes("model: thinks", 0.15) else ""
    has_calls = dice.strikes("model: calls tools", 0.4)
    stop: Literal["stop", "length"] = "length" if dice.strikes("model: output limit", 0.08) else "stop"
    silent = dice.strikes("model: says nothing at all", 0.04)
    text = "two words" + "\nand a line" * 25 * dice.strikes("model: says many lines", 0.25)
    if error is not None:
        return Record("so", error=_ERRORS[error][0], status=_ERRORS[error][1])
    if silent:
        return Record("")
    return Record(text, thinking, tools=calls if has_calls else (), stop=stop)


def _plan(dice: Dice) -> Record:
    """What a planner answers: lines to leave out, in the end or not."""
    case = dice.one_of((("compaction: no plan", 0.15), ("compaction: planner fails", 0.15)))
    if case == "compaction: planner fails":
        return Record("", error="overloaded", status=529)
    return Record("leave out the middle" if case else "2,9\n12,14")


def _tokens(dice: Dice) -> int:
    """What a reply reports as read: mostly little, of a window of 200,000."""
    case = dice.one_of((("model: context over the threshold", 0.06), ("model: context over the window", 0.03)))
    return {None: 1, "model: context over the threshold": 190_000}.get(case, 210_000)


def _cut(data: bytes, dice: Dice) -> list[bytes]:
    count = dice.choice((0, 1, 3)) if dice.strikes("model: sends in pieces", 0.7) else 0
    places = sorted({0, len(data), *(dice.below(len(data) + 1) for _ in range(count))})
    return [data[start:end] for start, end in pairwise(places)]
