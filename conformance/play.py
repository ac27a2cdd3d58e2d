"""Plays one case against one program: the steps in their order, each verb a function, then what holds of the whole.

Owns the model server, the gates and the names of one case while it is played. Promises that nothing of it is left when
`play` returns: no process, no socket, no folder. It raises only for faults of the kit itself.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from conformance import ending, rules
from conformance.asked import asked
from conformance.burst import Burst, read_elements
from conformance.conversation import Conversation
from conformance.driver import Record
from conformance.fault import Fault, KitError, Unmet, compared, missing_record
from conformance.model_play import Gates, ModelPlay, ScriptError
from conformance.model_server import ModelServer
from conformance.names import fill, resolve
from conformance.profile import Profile
from conformance.shapes import match, shorten
from conformance.stage import Stage
from conformance.transcript import Case, Step
from conformance.verbs import AT_THE_END

_CLOSING = 10.0  # seconds that a program has to end after its stdin was closed


class Target(NamedTuple):
    """The program under test. `deadline` is in seconds, for each wait; `check` tells what is wrong with a line of its
    stdout by the schema."""

    command: Sequence[str]
    profile: Profile
    deadline: float = 10.0
    check: Callable[[bytes], list[str]] | None = None


class Played(NamedTuple):
    """What a play gave: its faults, and what is needed to judge and to tell them."""

    faults: list[Fault]
    records: list[Record]
    stderr: str
    arguments: list[str]
    seconds: float


def play(case: Case, target: Target) -> Played:
    """Play a case from its start conditions to the end of the last process. KitError when it cannot be played."""
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="conformance-"))
    try:
        with ModelServer() as server:
            player = _Player(case, target, server, root)
            player.play()
            talk = player.talk
            return Played(player.faults, talk.records, talk.stderr, player.arguments, time.monotonic() - began)
    except (ScriptError, AssertionError) as problem:  # the model server's own faults are of the script
        raise KitError(str(problem)) from problem
    finally:
        shutil.rmtree(root, ignore_errors=True)


class _Player:
    def __init__(self, case: Case, target: Target, server: ModelServer, root: Path) -> None:
        self._case, self._target, self._server = case, target, server
        self._stage = Stage(root, server.url, target.profile, case.start)
        self._names: dict[str, Any] = dict(self._stage.names)
        self._labels: dict[str, int] = {"start": -1}
        self._gates = Gates()
        server.default = ModelPlay(case.replies, self._gates, self._names)
        self.talk = Conversation(target.deadline)
        self.faults: list[Fault] = []
        self.arguments: list[str] = []

    def play(self) -> None:
        self._begin({})
        try:
            for step in self._case.steps:
                if step.verb not in AT_THE_END:
                    _DO[step.verb](self, step)
        except Unmet as unmet:
            self.faults.append(unmet.fault)
        finally:
            self._close()
        self._judge()

    def _begin(self, change: Mapping[str, Any]) -> None:
        self.arguments = self._stage.command(self._target.command, change, self._names)
        self.talk.begin(self.arguments, self._stage.cwd, self._stage.environment(change, self._names))
        self._names["pid"] = self.talk.agent.pid

    def _close(self) -> None:
        """Let the model speak, let every command be answered, close stdin, and wait for the end."""
        self._gates.open_all()
        patience = self._target.deadline if not self.faults else 1.0
        self.talk.settle(patience)
        self.talk.end(_CLOSING * max(1.0, self._target.deadline / 10) if not self.faults else 3.0)

    def _judge(self) -> None:
        talk, case = self.talk, self._case
        broken = rules.broken(talk, self._target.check)
        if not self.faults:  # what is missing at the end is only a consequence of a step that was not met
            scene = ending.Scene(talk.records, self._labels, self._names, talk.stderr, self._server.requests)
            self.faults += [fault for step in case.steps if (fault := ending.check(step, scene))]
        self.faults += [fault for fault in broken if fault.rule not in case.waive]

    # ---- what the client does ----------------------------------------------------------------------------------

    def send(self, step: Step) -> None:
        commands = step.value if isinstance(step.value, list) else [step.value]
        lines = []
        for number in range(1, step.options.get("repeat", 1) + 1):
            names = {**self._names, "n": number}
            lines += [json.dumps(resolve(one, names), ensure_ascii=False) for one in commands]
        self.talk.write("".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass"))

    def raw(self, step: Step) -> None:
        for piece in step.value if isinstance(step.value, list) else [step.value]:
            if isinstance(piece, str):
                self.talk.write(fill(piece, self._names).encode("utf-8", "surrogatepass"))
            else:
                self.talk.write(bytes.fromhex(piece["hex"]))

    def close_stdin(self, step: Step) -> None:
        self._act(lossy=step.options.get("lossy", False))
        self.talk.agent.close_stdin()

    def stop_reading(self, step: Step) -> None:
        self.talk.act()
        self.talk.agent.stop_reading(0 if step.value is True else step.value)

    def resume_reading(self, step: Step) -> None:
        self.talk.act()
        self.talk.agent.resume_reading()

    def close_stdout(self, step: Step) -> None:
        self._act(lossy=True)
        self.talk.agent.close_stdout()

    def signal(self, step: Step) -> None:
        self._act(lossy=step.options.get("lossy", True))
        self._kill(getattr(signal, f"SIG{step.value}"))

    def kill(self, step: Step) -> None:
        self._act(lossy=True)
        self._kill(signal.SIGKILL)

    def restart(self, step: Step) -> None:
        if self.talk.agent.exit_code is None:
            self.talk.settle(self._target.deadline)
        self.talk.end(_CLOSING)
        self.talk.act()
        self._begin(step.value)

    def _act(self, *, lossy: bool) -> None:
        self.talk.act()
        if lossy:
            self.talk.lose()

    def _kill(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.talk.agent.terminate(number)

    # ---- what the world does -----------------------------------------------------------------------------------

    def open(self, step: Step) -> None:
        self.talk.act()
        self._gates[step.value].open()

    def write(self, step: Step) -> None:
        self.talk.act()
        path = fill(step.value, self._names)
        self._stage.write(path, step.options["content"], self._names, append=step.options.get("append", False))

    def shell(self, step: Step) -> None:
        """The kit's own command; its exit code must be 0 and its output match."""
        self.talk.act()
        run = subprocess.run(
            ["sh", "-c", fill(step.value, self._names)], cwd=self._stage.cwd, capture_output=True, text=True, timeout=60
        )
        if run.returncode:
            raise Unmet(Fault(f"{shorten(step.value)} failed", step.line, came=(run.stderr or run.stdout)[:300]))
        self._compare("what the shell printed", step, run.stdout)

    def let(self, step: Step) -> None:
        self._names |= resolve(step.value, self._names)

    def note(self, step: Step) -> None:
        """Nothing: it is for the reader."""

    # ---- what is awaited ---------------------------------------------------------------------------------------

    def expect(self, step: Step) -> None:
        since = self._since(step)
        index, bound = self.talk.claim(step.value, self._names, since, self._deadline(step), step.line)
        self._names |= bound
        if "as" in step.options:
            self._labels[step.options["as"]] = index
        self._check_order(step, index)

    def _check_order(self, step: Step, index: int) -> None:
        for key, sign in (("after", 1), ("before", -1)):
            labels = step.options.get(key, [])
            for label in labels if isinstance(labels, list) else [labels]:
                other = self._labels.get(label)
                if other is not None and (index - other) * sign < 0:
                    what = f"{shorten(step.value, 120)} came on the wrong side of {label}"
                    raise Unmet(Fault(what, step.line, f"{key} {label}", f"record {index}, {label} is {other}"))

    def sequence(self, step: Step) -> None:
        ignore = [element.shape for element in read_elements(step.options.get("ignore", []))]
        tight = step.options.get("tight", False)
        burst = Burst(read_elements(step.value), ignore, tight, self._names)
        talk, since = self.talk, self._since(step)
        next_ = first = talk.floor(since)

        def look(current: list[Record]) -> bool | None:
            nonlocal next_
            while burst.awaited is not None and burst.wrong is None and next_ < talk.count(current):
                burst.feed(next_, talk.at(next_, current))
                next_ += 1
            return True if burst.awaited is None or burst.wrong else None

        talk.until(look, self._deadline(step))
        if burst.wrong:
            what = f"another record in the sequence, after {len(burst.found)} of it"
            raise Unmet(Fault(what, step.line, shorten(burst.awaited, 200), burst.wrong))
        if burst.awaited is not None:
            at = burst.found[-1][0] + 1 if burst.found else first
            raise Unmet(
                missing_record(burst.awaited, talk.records[at:], burst.names, step.line, talk.why(self._deadline(step)))
            )
        self._names |= burst.bound
        talk.take([index for index, _ in burst.found])
        self._labels |= {label: index for index, label in burst.found if label}
        if "as" in step.options:
            self._labels[step.options["as"]] = burst.found[-1][0]

    def reached(self, step: Step) -> None:
        try:
            self._gates[step.value].reached.wait(self._deadline(step))
        except AssertionError as problem:
            raise Unmet(
                Fault(f"the model was not asked as far as {step.value}", step.line, came=str(problem))
            ) from None

    def request(self, step: Step) -> None:
        number = step.value if step.value > 0 else 1
        try:
            requests = self._server.wait_for_requests(number, self._deadline(step))
        except AssertionError as problem:
            raise Unmet(Fault(f"request {step.value} did not reach the model", step.line, came=str(problem))) from None
        request = requests[step.value - 1 if step.value > 0 else step.value]
        self._compare(f"request {step.value}", step, asked(request))

    def exit(self, step: Step) -> None:
        try:
            code = self.talk.agent.wait_exit(self._deadline(step))
        except AssertionError as problem:
            why = str(problem).partition("\n")[0]
            raise Unmet(Fault("the process did not end", step.line, shorten(step.value), why)) from None
        difference = match(step.value, code, self._names).difference
        if difference:
            raise Unmet(compared("another exit code", step.line, difference))

    def wait_stderr(self, step: Step) -> None:
        wanted = fill(step.value, self._names)
        try:
            self.talk.agent.wait_stderr(wanted, deadline=self._deadline(step))
        except AssertionError:
            said = shorten(self.talk.agent.stderr[-300:], 300)
            raise Unmet(Fault("stderr never held the text", step.line, shorten(wanted), said)) from None

    def file(self, step: Step) -> None:
        self._eventually(step, lambda: ending.file_problem(step, self._stage, self._names))

    def entries(self, step: Step) -> None:
        self._eventually(step, lambda: ending.entries_problem(step, self._stage, self._names))

    def _eventually(self, step: Step, look: Callable[[], Fault | None]) -> None:
        """Look now; with `eventually` again and again until it holds or the deadline is over."""
        end = time.monotonic() + self._deadline(step)
        while fault := look():
            if not step.options.get("eventually") or time.monotonic() > end:
                raise Unmet(fault)
            time.sleep(0.02)  # a file tells nobody that it has changed

    def no_survivors(self, step: Step) -> None:
        left = self.talk.agent.orphans(deadline=self._deadline(step))
        if left:
            raise Unmet(
                Fault("processes that it started still live", step.line, came=shorten([one.command for one in left]))
            )

    def peak_memory(self, step: Step) -> None:
        mib = self.talk.agent.peak_rss() / 2**20
        difference = match(step.value, mib, self._names).difference
        if difference:
            raise Unmet(compared("peak memory in MiB", step.line, difference))

    # ---- shared ------------------------------------------------------------------------------------------------

    def _deadline(self, step: Step) -> float:
        own = step.options.get("deadline")
        return self._target.deadline if own is None else float(own) * max(1.0, self._target.deadline / 10)

    def _since(self, step: Step) -> int | None:
        label = step.options.get("since")
        return None if label is None else self._labels[label] + 1

    def _compare(self, what: str, step: Step, value: Any) -> None:
        found = match(step.options.get("is", {"$any": True}), value, self._names)
        if found.difference:
            raise Unmet(compared(f"{what} is not as awaited", step.line, found.difference))
        self._names |= found.bound


_DO: dict[str, Callable[[_Player, Step], None]] = {
    name: getattr(_Player, name)
    for name in (
        "send", "raw", "close_stdin", "stop_reading", "resume_reading", "close_stdout", "signal", "kill", "restart",
        "open", "write", "shell", "let", "note", "expect", "sequence", "reached", "request", "exit", "wait_stderr",
        "file", "entries", "no_survivors", "peak_memory",
    )
}  # fmt: skip
