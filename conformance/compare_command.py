"""`atomic-conformance compare A B`: two recordings side by side, whatever the ids, times, paths and chunk borders."""

from __future__ import annotations

import argparse
from pathlib import Path

from conformance.compare import as_text, compare
from conformance.recording import read_recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("left", type=Path, metavar="A")
    parser.add_argument("right", type=Path, metavar="B")
    parser.add_argument("--ignore", action="append", default=[], metavar="TYPE", help="leave out records of this type")


def run(options: argparse.Namespace) -> int:
    """0 when there is no difference, 1 when there is."""
    left, right = (read_recording(file).records for file in (options.left, options.right))
    found = compare(left, right, options.ignore)
    print(as_text(found, str(options.left), str(options.right)), end="")
    return 1 if found else 0
