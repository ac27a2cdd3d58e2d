"""Steps that do something: what the client does to the agent, and what the world does around it.

Each verb is a function of the player and the step.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress

from conformance.fault import Fault, Unmet
from conformance.json_values import shorten
from conformance.names import fill, resolve
from conformance.player import CLOSING, Player
from conformance.transcript import Step


def send(player: Player, step: Step) -> None:
    commands = step.value if isinstance(step.value, list) else [step.value]
    lines = []
    for number in range(1, step.options.get("repeat", 1) + 1):
        names = {**player.names, "n": number}
        lines += [json.dumps(resolve(one, names), ensure_ascii=False) for one in commands]
    player.talk.write("".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass"), player.target.deadline)


def raw(player: Player, step: Step) -> None:
    for piece in step.value if isinstance(step.value, list) else [step.value]:
        if isinstance(piece, str):
            data = fill(piece, player.names).encode("utf-8", "surrogatepass")
        else:
            data = bytes.fromhex(piece["hex"])
        player.talk.write(data, player.target.deadline)


def close_stdin(player: Player, step: Step) -> None:
    player.act(lossy=step.options.get("lossy", False))
    player.talk.agent.close_stdin()


def stop_reading(player: Player, step: Step) -> None:
    player.talk.act()
    player.talk.agent.stop_reading(0 if step.value is True else step.value)


def resume_reading(player: Player, step: Step) -> None:
    player.talk.act()
    player.talk.agent.resume_reading()


def close_stdout(player: Player, step: Step) -> None:
    player.act(lossy=True)
    player.talk.agent.close_stdout()


def send_signal(player: Player, step: Step) -> None:
    player.act(lossy=step.options.get("lossy", True))
    _kill(player, getattr(signal, f"SIG{step.value}"))


def kill(player: Player, step: Step) -> None:
    player.act(lossy=True)
    _kill(player, signal.SIGKILL)


def restart(player: Player, step: Step) -> None:
    if player.talk.agent.exit_code is None:
        player.talk.settle(player.target.deadline)
    player.talk.end(CLOSING)
    player.talk.act()
    player.begin(step.value)


def open_gate(player: Player, step: Step) -> None:
    player.talk.act()
    player.gates[step.value].open()


def write(player: Player, step: Step) -> None:
    player.talk.act()
    path = fill(step.value, player.names)
    player.stage.write(path, step.options["content"], player.names, append=step.options.get("append", False))


def shell(player: Player, step: Step) -> None:
    """The kit's own command; its exit code must be 0 and its output match."""
    player.talk.act()
    words, pipe = ["sh", "-c", fill(step.value, player.names)], subprocess.PIPE
    run = subprocess.Popen(  # a group of its own, so that all of it can be ended
        words, cwd=player.stage.cwd, stdout=pipe, stderr=pipe, text=True, process_group=0
    )
    with run, player.while_runs(run):
        stdout, stderr = run.communicate(timeout=60)
    if run.returncode:
        said = (stderr or stdout).strip()[:300]
        came = f"exit code {run.returncode}" + (f": {said}" if said else ", and it printed nothing")
        raise Unmet(Fault(f"{shorten(step.value)} failed", step.line, came=came))
    player.compare("what the shell printed", step, stdout)


def let(player: Player, step: Step) -> None:
    player.names |= resolve(step.value, player.names)


def note(player: Player, step: Step) -> None:
    """Nothing: it is for the reader."""


def _kill(player: Player, number: int) -> None:
    with suppress(ProcessLookupError):
        player.talk.agent.terminate(number)


ACTS: dict[str, Callable[[Player, Step], None]] = {
    "send": send, "raw": raw, "close_stdin": close_stdin, "stop_reading": stop_reading,
    "resume_reading": resume_reading, "close_stdout": close_stdout, "signal": send_signal, "kill": kill,
    "restart": restart, "open": open_gate, "write": write, "shell": shell, "let": let, "note": note,
}  # fmt: skip
