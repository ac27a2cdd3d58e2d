"""Holds up whoever opens a regular file, until the block ends: a lease of the kernel's."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

needs_leases = pytest.mark.skipif(sys.platform != "linux", reason="leases of Linux")


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Nobody else may have it open. The kernel ends a lease by itself after 45 s. In the main thread only."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # which asks for the lease back, and would end the process
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)
