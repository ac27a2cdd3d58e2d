"""`atomic-conformance stress -- CMD`: load on a live agent for some seconds, and whether it keeps its promises."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from conformance.client import ClientError
from conformance.flag_values import above_zero, count, must_be_writable
from conformance.model_server import ModelServer
from conformance.player import Target
from conformance.stage import Stage
from conformance.stop import stoppable
from conformance.stress import Load, stress
from conformance.tally import Tally
from conformance.target_options import add_target_arguments, read_target

_DEFAULT = Load()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [options] -- CMD ..."
    parser.add_argument("--seed", type=int, default=_DEFAULT.seed, help="what is asked, and when (default: 1)")
    parser.add_argument("--seconds", type=above_zero, default=_DEFAULT.seconds, help="how long (default: 15)")
    parser.add_argument("--workers", type=count, default=_DEFAULT.workers, help="how many ask at once (default: 8)")
    parser.add_argument(
        "--memory", type=above_zero, default=_DEFAULT.memory_mib, metavar="MIB", help="allowed (default: 512)"
    )
    parser.add_argument("--json", metavar="FILE", help="the figures, to a file")
    add_target_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """0 when no promise was broken, 1 when one was, 2 when the agent does not even start."""
    target = read_target(options)
    if options.json:
        must_be_writable("--json", options.json)
    patience = 3 * target.deadline
    load = Load(options.seed, options.seconds, options.workers, patience, options.memory)
    with stoppable():
        tally = _played(target, load)
    print(tally.as_text(), end="", flush=True)
    if options.json:
        Path(options.json).write_text(tally.as_json(), encoding="utf-8")
    return 1 if tally.violations else 0


def _played(target: Target, load: Load) -> Tally:
    root = Path(tempfile.mkdtemp(prefix="stress-"))
    try:
        with ModelServer() as server:
            stage = Stage(root, server.url, target.profile, {})
            command = stage.command(target.command, {}, stage.names)
            return stress(command, stage.cwd, stage.environment({}, stage.names), load)
    except ClientError as problem:
        raise ValueError(str(problem)) from problem
    finally:
        shutil.rmtree(root, ignore_errors=True)
