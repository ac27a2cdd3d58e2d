"""Model servers: replies as the bytes of a real one, cut anywhere, that fail, break off or stall."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Literal

from actors.base import Address
from actors.mail import ModelCallMail, ModelRequest, StreamBytes, StreamEnded, StreamHead
from actors.model.scripted import Call, Cue, Record, plan_reply
from actors.session.compaction.planner import SYSTEM as PLANNER
from runtime.simulation.agents import NO_FOLDER
from runtime.simulation.chances import Dice
from runtime.simulation.pumps import SMALL_WINDOW, CountedWindow, Pump

Role = Literal["plain", "delegating", "child"]

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
_FOREGROUND = {"kind": "foreground"}


def _agents(*names: str, count: int = 1) -> list[dict[str, Any]]:
    return [{"agent": name, "task": f"task of {name}", "count": count} for name in names]


def _about(action: str, task_id: str, **more: Any) -> Call:
    return Call("subagent", {"action": action, "id": task_id, **more})


_LAUNCHES: tuple[dict[str, Any], ...] = (
    *({"agent": name, "task": f"go, {name}"} for name in ("scout", "worker", "picky", "saver", "nobody")),
    *({"agent": name, "task": f"go, {name}"} for name in ("onlooker", "asker", "asker")),
    {"agent": "scout", "task": "wait", "wait": _FOREGROUND},
    {"agent": "worker", "task": "wait", "wait": _FOREGROUND},
    {"agent": "scout", "task": "be quick", "wait": {**_FOREGROUND, "budgetMs": 1}},
    {"agent": "scout", "task": "at once", "wait": {**_FOREGROUND, "budgetMs": 0}},
    {"agent": "scout", "cwd": NO_FOLDER},
    {"agent": "scout", "context": "fork", "model": "unheard/of", "artifacts": False},
    {"agent": "scout", "tasks": _agents("scout")},
    {"tasks": _agents("scout", "worker"), "worktree": True},
    {"tasks": _agents("scout", "saver", "worker")},
    {"tasks": _agents("asker", count=2), "wait": _FOREGROUND},
    {"tasks": _agents("scout", count=6), "context": "fresh"},
    {"tasks": _agents("scout", "picky", count=3), "concurrency": 2},
    {"tasks": _agents("scout", count=6), "wait": _FOREGROUND},
    {"tasks": _agents("picky", count=3), "wait": {**_FOREGROUND, "budgetMs": 20_000}, "concurrency": 1},
    {"tasks": [*_agents("scout"), {"agent": "scout", "task": "nowhere", "cwd": NO_FOLDER}], "wait": _FOREGROUND},
)
_DELEGATIONS = (
    *_CALLS,
    *(Call("subagent", launch) for launch in _LAUNCHES),
    *(Call("subagent", launch) for launch in _LAUNCHES),
    *(_about(action, "@agent") for action in ("status", "wait", "wait", "kill", "kill")),
    _about("wait", "@agent", budgetMs=1),
    _about("kill", "@any"),
    _about("wait", "@command"),
    _about("wait", "task-of-another"),
    *(Call("intercom", {"action": "reply", "message": "go on"}) for _ in range(4)),
    Call("intercom", {"action": "reply", "to": "asker", "message": "go on"}),
    Call("intercom", {"action": "reply", "replyTo": "@question", "message": "this way"}),
    Call("intercom", {"action": "send", "to": "@agent", "message": "hurry"}),
    Call("intercom", {"action": "send", "to": "scout", "message": "hurry"}),
    Call("intercom", {"action": "list"}),
    Call("intercom", {"action": "pending"}),
    Call("subagent", {"action": "status"}),
    Call("subagent", {"action": "list"}),
    Call("subagent", {"action": "get", "agent": "scout"}),
    Call("subagent", {"action": "create", "config": {"name": "made", "description": "does it"}}),
    Call("subagent", {"action": "delete", "agent": "made"}),
    Call("subagent", {"agent": "scout", "wait": None}),
    Call("bash", {"action": "wait", "id": "@command"}),
    Call("kill", {"id": "@command"}),
    Call("kill", {"id": "@agent"}),
)
_OF_CHILDREN = (
    *(call for call in _CALLS if call.arguments.get("action") is None),
    Call("subagent", {"agent": "scout", "task": "deeper"}),
    Call("subagent", {"action": "status"}),
    *(Call("contact_supervisor", {"reason": "need_decision", "message": "which way?"}) for _ in range(4)),
    Call("contact_supervisor", {"reason": "progress_update", "message": "half of it is done"}),
    Call(
        "contact_supervisor",
        {"reason": "interview_request", "message": "tell me", "questions": [{"type": "text", "question": "why?"}]},
    ),
    Call("contact_supervisor", {"reason": "interview_request", "message": "nothing"}),
)
CALLS = {"plain": _CALLS, "delegating": _DELEGATIONS, "child": _OF_CHILDREN}
"""What a model may call: that of a session which hands out no work, of one that does, and of a subagent."""
_LUCK: dict[Role, float] = {"plain": 1.0, "delegating": 0.15, "child": 0.5}
"""How often their servers fail, against the plain one's."""
_CALLING: dict[Role, float] = {"plain": 0.4, "delegating": 0.7, "child": 0.3}
CHILDS_THOUGHT = "what a child thinks"
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

    def __init__(
        self,
        number: int,
        request: ModelRequest,
        call: Address[ModelCallMail],
        dice: Dice,
        role: Role = "plain",
        task_of: Callable[[str, int], str] = lambda kind, number: "task-of-another",
    ) -> None:
        super().__init__()
        self.number = number
        self.window = CountedWindow(*SMALL_WINDOW)
        self.released = False
        self.was_cut = False
        self._call = call
        luck = _LUCK[role]
        self._keyless = dice.strikes("model: no credential for the request", 0.03 * luck)
        record = _plan(dice) if request.prompt.system == PLANNER else _reply(dice, role, task_of, number)
        self._status, steps = plan_reply((record,), Cue("", 0, _tokens(dice)), number)
        body = b"".join(step.data for step in steps)
        self._stalls = dice.strikes("model: says nothing more", 0.15 * luck)
        self._breaks = dice.strikes("model: connection breaks", 0.07 * luck)
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


def _reply(dice: Dice, role: Role, task_of: Callable[[str, int], str], number: int) -> Record:
    error = dice.one_of([(name, 0.035 * _LUCK[role]) for name in _ERRORS])
    begins = role == "delegating" and number < 2
    calls = tuple(dice.choice(CALLS[role]) for _ in range(dice.choice((1, 1, 2, 3))))
    if role == "delegating":
        calls = tuple(_naming_a_task(call, dice.below(100), task_of) for call in calls)
        calls += (Call("subagent", dice.choice(_LAUNCHES)),) if begins else ()
    thought = CHILDS_THOUGHT if role == "child" else "hm"
    thinking = thought if dice.strikes("model: thinks", 0.15) else ""
    has_calls = dice.strikes("model: calls tools", 0.95 if begins else _CALLING[role])
    stop: Literal["stop", "length"] = "length" if dice.strikes("model: output limit", 0.08) else "stop"
    silent = dice.strikes("model: says nothing at all", 0.04)
    text = "two words" + "\nand a line" * 25 * dice.strikes("model: says many lines", 0.25 if role == "plain" else 0.05)
    if error is not None:
        return Record("so", error=_ERRORS[error][0], status=_ERRORS[error][1])
    if silent:
        return Record("")
    return Record(text, thinking, tools=calls if has_calls else (), stop=stop)


def _naming_a_task(call: Call, number: int, task_of: Callable[[str, int], str]) -> Call:
    """`@agent`, `@command` and `@any` stand for a task that there is when the model is asked, `@question` for what an
    agent has said."""
    meant = {name: task_of(value[1:], number) for name, value in call.arguments.items() if str(value).startswith("@")}
    return Call(call.name, {**call.arguments, **meant}) if meant else call


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
