"""The state of one case while it is played: its stage, its names and labels, the gates, and the conversation.

Owns what steps share. The verbs themselves are in `acts` and `waits`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from conformance.conversation import Conversation
from conformance.fault import Unmet, compared
from conformance.halt import Halt
from conformance.model_play import Gates
from conformance.model_server import ModelServer
from conformance.model_turns import ModelPlay
from conformance.profile import Profile
from conformance.shapes import match
from conformance.stage import Stage
from conformance.transcript import Case, Step

CLOSING = 10.0  # seconds that a program has to end after its stdin was closed


class Target(NamedTuple):
    """The program under test. `deadline` is in seconds, for each wait; `check` tells what is wrong with a line of its
    stdout by the schema; `halt` ends all plays."""

    command: Sequence[str]
    profile: Profile
    deadline: float = 10.0
    check: Callable[[bytes], list[str]] | None = None
    halt: Halt | None = None


class Player:
    """`names` are what `{{name}}` stands for, `labels` the indexes of the records that steps have labelled."""

    def __init__(self, case: Case, target: Target, server: ModelServer, root: Path) -> None:
        self.case, self.target, self.server = case, target, server
        self.stage = Stage(root, server.url, target.profile, case.start)
        self.names: dict[str, Any] = dict(self.stage.names)
        self.labels: dict[str, int] = {"start": -1}
        self.gates = Gates()
        server.default = self.model = ModelPlay(case.replies, self.gates, self.names)
        self.talk = Conversation()
        self.arguments: list[str] = []
        self._shell: subprocess.Popen[str] | None = None
        self.halted = False

    def begin(self, change: Mapping[str, Any]) -> None:
        self.arguments = self.stage.command(self.target.command, change, self.names)
        self.talk.begin(self.arguments, self.stage.cwd, self.stage.environment(change, self.names))
        self.names["pid"] = self.talk.agent.pid
        if self.halted:
            self.talk.kill()

    def halt(self) -> None:
        """From another thread: whatever a step waits for now, it waits no longer."""
        self.halted = True
        self.gates.give_up()
        self.model.end()
        self.server.give_up()
        self.talk.kill()
        self._end_shell()

    @contextmanager
    def while_runs(self, shell: subprocess.Popen[str]) -> Iterator[None]:
        """A command of the case runs, which leads a group: nothing of it is left behind."""
        self._shell = shell
        try:
            if self.halted:
                self._end_shell()
            yield
        except BaseException:
            self._end_shell()
            raise
        finally:
            self._shell = None

    def _end_shell(self) -> None:
        shell = self._shell
        if shell is not None and shell.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)

    def act(self, *, lossy: bool) -> None:
        """Something is done now; `lossy`: open commands may stay unanswered from here on."""
        self.talk.act()
        if lossy:
            self.talk.lose()

    def deadline(self, step: Step) -> float:
        own = step.options.get("deadline")
        return self.target.deadline if own is None else float(own) * max(1.0, self.target.deadline / 10)

    def since(self, step: Step) -> int | None:
        label = step.options.get("since")
        return None if label is None else self.labels[label] + 1

    def compare(self, what: str, step: Step, value: Any) -> None:
        found = match(step.options.get("is", {"$any": True}), value, self.names)
        if found.difference:
            raise Unmet(compared(f"{what} is not as awaited", step.line, found.difference))
        self.names |= found.bound
