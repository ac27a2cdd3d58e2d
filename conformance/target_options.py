"""The flags that say which program is tested and how it is started; shared by the subcommands that start one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from conformance.cli import Misuse
from conformance.flag_values import above_zero
from conformance.player import Target
from conformance.profile import detect_profile, read_profile

_DEADLINE = 10.0  # seconds for each wait, on a machine that is not starved


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", help="atomic, pi, or a file: how the program is told where the model is")
    parser.add_argument(
        "--deadline-factor", type=above_zero, default=1.0, help="for slow machines: stretches every wait"
    )


def read_target(options: argparse.Namespace) -> Target:
    """Misuse when there is no command behind `--`."""
    if not options.command:
        raise Misuse(f"what is to be tested stands behind --, such as: {options.subcommand} … -- atomic --mode rpc")
    profile = read_profile(options.profile) if options.profile else detect_profile(options.command)
    return Target(absolute(options.command), profile, _DEADLINE * options.deadline_factor)


def absolute(command: Sequence[str]) -> list[str]:
    """The command with the files that it names by a relative path made absolute: it runs in another folder."""
    return [str(Path(word).absolute()) if "/" in word and Path(word).exists() else word for word in command]
