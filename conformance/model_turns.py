"""Which reply of a case answers which request, and when: in the order of the lines, or by what the request looks like.

Promises that each reply answers as many requests as it says, that a request beyond them is told by its number, and that
a reply with a name that a step binds is not given before that step.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from conformance.asked import asked
from conformance.json_values import shorten
from conformance.model_play import Gates, ScriptError, read_reply
from conformance.model_scripts import Reply, TextScript, text
from conformance.model_server import Request
from conformance.names import Names, resolve, used_names
from conformance.shapes import ShapeError, check_shape, match

_ANY = {"$any": True}
_TURN = ("when", "asked", "times")


class Turn(NamedTuple):
    """Which requests a reply answers: `when` is a shape of the body as it came, `asked` of the form in which the step
    `request` sees it, and `times` how many of them."""

    when: Any = _ANY
    asked: Any = _ANY
    times: int = 1


def read_turn(value: Any) -> Turn:
    """Of a `reply` line. ScriptError when it is none."""
    turn = Turn(**{name: value[name] for name in _TURN if name in value}) if isinstance(value, dict) else Turn()
    for name, shape in (("when", turn.when), ("asked", turn.asked)):
        try:
            check_shape(shape)
        except ShapeError as problem:
            raise ScriptError(f"{name}: {problem}") from problem
    if type(turn.times) is not int or turn.times < 1:
        raise ScriptError(f"times is {shorten(turn.times)}; allowed is a whole number from 1 on")
    return turn


def answer_of(value: Any) -> Any:
    """A `reply` line without what says whose turn it is."""
    return {key: inner for key, inner in value.items() if key not in _TURN} if isinstance(value, dict) else value


def check_reply(value: Any, gates: Gates) -> None:
    """Reads a reply once, with words in place of the names that only a play knows. ScriptError when it cannot be."""
    read_turn(value)
    read_reply(resolve(answer_of(value), {name: f"<{name}>" for name in used_names(value)}), gates)


class ModelPlay:
    """Answers the requests of one case; give it to a `ModelServer` as its default. `names` grows while the case is
    played: `named` tells that it has."""

    def __init__(self, replies: Sequence[Any], gates: Gates, names: Names) -> None:
        for value in replies:
            check_reply(value, gates)
        self._changed = threading.Condition()
        self._gates, self._names = gates, names
        self._waiting = [(read_turn(value), answer_of(value)) for value in replies]
        self._by_text = TextScript()
        self._scripted = bool(replies)
        self._over = False

    def __call__(self, request: Request) -> Reply:
        with self._changed:
            found, value = self._take(request)
            if found:
                return self._read(value)
        if self._scripted:
            return text(f"no reply is scripted for request {request.number}")
        return self._by_text.reply(request.body)

    def named(self) -> None:
        """A step is done, and may have bound a name."""
        with self._changed:
            self._changed.notify_all()

    def end(self) -> None:
        """No step follows: nobody waits for a name any more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _take(self, request: Request) -> tuple[bool, Any]:
        for index, (turn, value) in enumerate(self._waiting):
            if self._answers(turn, request):
                self._waiting[index] = (turn._replace(times=turn.times - 1), value)
                if turn.times == 1:
                    del self._waiting[index]
                return True, value
        return False, None

    def _answers(self, turn: Turn, request: Request) -> bool:
        for shape, value in ((turn.when, request.body), (turn.asked, asked(request))):
            if not self._names.keys() >= set(used_names(shape)) or match(shape, value, self._names).difference:
                return False
        return True

    def _read(self, value: Any) -> Reply:
        wanted = set(used_names(value))
        self._changed.wait_for(lambda: self._over or self._names.keys() >= wanted)
        if missing := sorted(wanted - self._names.keys()):
            return text(f"no step has bound the name {missing[0]}")
        return read_reply(resolve(value, self._names), self._gates)
