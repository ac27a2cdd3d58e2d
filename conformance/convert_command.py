"""`atomic-conformance convert OLD NEW`: a recording of the older format (`t`, `dir`, `line`) in the present one."""

from __future__ import annotations

import argparse
from pathlib import Path

from conformance.recording import convert, write_recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")


def run(options: argparse.Namespace) -> int:
    recording = convert(options.old)
    with options.new.open("wb") as out:
        write_recording(out, recording)
    return 0
