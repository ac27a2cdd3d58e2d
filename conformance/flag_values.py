"""What flags of several subcommands may hold: numbers in their ranges, and files that can be written.

Pure but for `must_be_writable`, which looks before the long work begins whether its outcome can be kept.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

from conformance.cli import Misuse


def count(text: str) -> int:
    """A whole number from 1."""
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"a whole number from 1 is needed, not {text!r}")
    return int(text)


def above_zero(text: str) -> float:
    """A finite number above 0."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"a number above 0 is needed, not {text!r}")
    return number


def chance(text: str) -> float:
    """A number from 0 to 1."""
    number = _number(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"a number from 0 to 1 is needed, not {text!r}")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def must_be_writable(flag: str, file: str | Path) -> None:
    """Misuse when the file cannot be written; a file that was not there is not left behind."""
    there = os.path.lexists(file)
    if there and not (os.path.isfile(file) or os.path.isdir(file)):
        return  # to open a pipe twice would disturb who reads it
    try:
        with open(file, "ab"):
            pass
    except OSError as problem:
        raise Misuse(f"{flag} {file}: {problem.strerror}") from problem
    if not there:
        os.unlink(file)
