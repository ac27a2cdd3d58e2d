"""Plays one case against one program: the steps in their order, each verb a function, then what holds of the whole.

Owns the model server, the gates and the names of one case while it is played. Promises that nothing of it is left when
`play` returns: no process, no socket, no folder. It raises only for faults of the kit itself.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from conformance import ending, rules
from conformance.acts import ACTS
from conformance.asked import offered
from conformance.driver import Record
from conformance.fault import Fault, KitError, Unmet
from conformance.model_play import ScriptError
from conformance.model_server import ModelServer
from conformance.player import CLOSING, Player, Target
from conformance.transcript import Case
from conformance.verbs import AT_THE_END
from conformance.waits import WAITS


class Played(NamedTuple):
    """What a play gave: its faults, and what is needed to judge and to tell them."""

    faults: list[Fault]
    records: list[Record]
    stderr: str
    arguments: list[str]
    seconds: float
    sent: frozenset[str] = frozenset()  # the types of the commands
    tools: frozenset[str] = frozenset()  # those that the model was offered


def play(case: Case, target: Target) -> Played:
    """Play a case from its start conditions to the end of the last process. KitError when it cannot be played."""
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="conformance-"))
    try:
        with ModelServer() as server:
            player = Player(case, target, server, root)
            with target.halt.reaching(player.halt) if target.halt else nullcontext():
                faults = _steps(player) or _whole(player)
            faults += [fault for fault in rules.broken(player.talk, target.check) if fault.rule not in case.waive]
            talk = player.talk
            sent = frozenset(one.command for one in talk.sent if one.command is not None)
            tools = frozenset(name for request in server.requests for name in offered(request))
            return Played(faults, talk.records, talk.stderr, player.arguments, time.monotonic() - began, sent, tools)
    except (ScriptError, AssertionError) as problem:  # the model server's own faults are of the script
        raise KitError(str(problem)) from problem
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _steps(player: Player) -> list[Fault]:
    """The step that was not met, if there is one: what follows it would only be its consequence."""
    player.begin({})
    faults: list[Fault] = []
    try:
        for step in player.case.steps:
            if step.verb not in AT_THE_END and not player.halted:
                _DO[step.verb](player, step)
                player.model.named()
    except Unmet as unmet:
        faults.append(unmet.fault)
    finally:
        _end(player, hurried=bool(faults))
    return faults


def _end(player: Player, *, hurried: bool) -> None:
    """Let the model speak, let every command be answered, close stdin, and wait for the end."""
    player.gates.open_all()
    player.model.end()
    deadline = player.target.deadline
    player.talk.settle(1.0 if hurried else deadline)
    player.talk.end(3.0 if hurried else CLOSING * max(1.0, deadline / 10))


def _whole(player: Player) -> list[Fault]:
    talk = player.talk
    scene = ending.Scene(talk.records, player.labels, player.names, talk.stderr, player.server.requests)
    return [fault for step in player.case.steps if (fault := ending.check(step, scene))]


_DO = {**ACTS, **WAITS}
