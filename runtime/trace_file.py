"""The file of `--trace`: one line for each mail, from whichever thread tells it."""

from __future__ import annotations

import os
from typing import Any

from actors.trace import trace_line
from runtime.stdio import complain


class TraceFile:
    """Appends to `path`, for the user alone. Raises `OSError` if that cannot be opened. A write that fails later costs
    one line on stderr and the rest of the trace, and not the run: `is_whole` tells afterwards."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._path = path
        self._complaints = [complain]  # taken once, whichever threads fail at the same time
        self.is_whole = True

    def __call__(self, sender: str, receiver: str, mail: Any) -> None:
        """One write for each line: O_APPEND keeps the lines of all threads whole."""
        if not self.is_whole:
            return
        try:
            os.write(self._fd, trace_line(sender, receiver, mail))
        except OSError as error:
            self.is_whole = False
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        try:
            tell = self._complaints.pop()
        except IndexError:
            return
        tell(f"--trace {self._path}: the trace ends here: {error.strerror or error}")
