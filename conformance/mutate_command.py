"""`atomic-conformance mutate --drop agent_settled -- CMD`: an agent that is broken on purpose, to test clients with.

Runs the agent behind a relay that changes what it says, and changes nothing else: commands reach it as they are sent,
stderr, signals and the end are its own. `docs/conformance/proxies.md` lists the ways.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from conformance.cli import Misuse
from conformance.flag_values import chance, count
from conformance.mutation import Choice
from conformance.mutations import KINDS, Mutator
from conformance.relay import Relay, Untouched
from protocol.lines import LineSplitter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [--seed N] [--chance P] --MUTATION ... -- CMD ..."
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which records are struck (default: 1)")
    parser.add_argument(
        "--chance", type=chance, default=1.0, metavar="P", help="for each that can be (default: 1, all)"
    )
    parser.add_argument("--die-after", type=count, metavar="N", help="the agent is killed at its N-th record")
    for name, kind in KINDS.items():
        if kind.argument:
            parser.add_argument(f"--{name}", action=_Chosen, metavar=kind.argument, help=kind.text)
        else:
            parser.add_argument(f"--{name}", action=_Chosen, nargs=0, help=kind.text)


class _Chosen(argparse.Action):
    """Keeps the mutations in the order in which they stand on the command line."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        kind = str(option).removeprefix("--")
        argument = values if isinstance(values, str) else ""
        if KINDS[kind].argument == "N" and not argument.isdecimal():
            parser.error(f"argument {option}: a number is needed, not {argument!r}")
        namespace.mutations = [*getattr(namespace, "mutations", []), Choice(kind, argument)]


def run(options: argparse.Namespace) -> int:
    """The agent's exit code."""
    chosen: list[Choice] = getattr(options, "mutations", [])
    if not options.command:
        raise Misuse("the agent stands behind --, such as: mutate --drop agent_settled -- atomic --mode rpc")
    if not chosen and options.die_after is None:
        raise Misuse(
            f"how it is to be broken is missing: one of --die-after, {', '.join(f'--{kind}' for kind in KINDS)}"
        )
    mutated = _Mutated(Mutator(chosen, options.seed, options.chance), options.die_after)
    relay = Relay(options.command, Untouched(), mutated, Untouched(), _Nobody())
    mutated.kill = relay.kill
    return relay.run()


class _Mutated:
    """stdout of the agent, line by line. The one at which it is to die is the last that comes."""

    def __init__(self, mutator: Mutator, die_after: int | None) -> None:
        self._mutator, self._left = mutator, die_after
        self._lines = LineSplitter()
        self.kill: Callable[[], object] = lambda: None

    def take(self, data: bytes) -> bytes:
        return b"".join(self._passed(line) for line in self._lines.feed(data))

    def end(self) -> bytes:
        rest = [] if self._left == 0 else self._mutator.ended()
        return b"".join(line + b"\n" for line in rest) + b"".join(self._lines.end())

    def _passed(self, line: bytes) -> bytes:
        if self._left is not None:
            if self._left == 0:
                return b""
            self._left -= 1
            if self._left == 0:
                self.kill()
        return b"".join(each + b"\n" for each in self._mutator.lines(line))


class _Nobody:
    def signalled(self, name: str) -> None:
        pass

    def exited(self, status: int) -> None:
        pass
