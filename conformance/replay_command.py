"""`atomic-conformance replay RECORDING -- CMD`: replays a recording against a program and compares what it says."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from conformance.compare import as_text, compare
from conformance.flag_values import must_be_writable
from conformance.recording import read_recording, write_recording
from conformance.replay import replay
from conformance.stop import stoppable
from conformance.target_options import add_target_arguments, read_target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [options] RECORDING -- CMD ..."
    parser.add_argument("recording", type=Path, metavar="RECORDING")
    parser.add_argument("--ignore", action="append", default=[], metavar="TYPE", help="leave out records of this type")
    parser.add_argument("--write", type=Path, metavar="FILE", help="where to write what was said this time")
    add_target_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """0 when both conversations are the same, 1 when not."""
    recording = read_recording(options.recording)
    target = read_target(options)
    if options.write:
        must_be_writable("--write", options.write)
    with stoppable():
        replayed = replay(recording, target, options.ignore)
    if options.write:
        with options.write.open("wb") as out:
            write_recording(out, recording._replace(command=tuple(options.command), lines=replayed.lines))
    found = compare(recording.records, replayed.records, options.ignore)
    print(as_text(found, str(options.recording), " ".join(options.command)), end="")
    for problem in replayed.problems:
        print(problem, file=sys.stderr)
    return 1 if found or replayed.problems else 0
