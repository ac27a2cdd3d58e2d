"""A terminal of Windows, as `actors.shell.pty` uses one: pywinpty's, with bytes and with errors of the usual kind.

The library reads and writes text, raises errors of a kind of its own and `EOFError` for a command that has ended, and
now and then reads nothing although more will come.
"""

from __future__ import annotations

import codecs
import contextlib
import sys
from collections.abc import Sequence

from actors.shell.pipes import READ_BYTES


def whole_characters(data: bytes) -> bytes:
    """`data` without the beginning of a character at its end, unless it is nothing else."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    decoder.decode(data)
    begun, _ = decoder.getstate()
    return data[: len(data) - len(begun)] or data


if sys.platform == "win32":
    from winpty import PtyProcess, WinptyError

    _FAULTS = (EOFError, OSError, ValueError, WinptyError)

    class WindowsPty:
        """A command on a new terminal. Raises `OSError` and nothing else."""

        def __init__(self, argv: Sequence[str], cwd: str, env: dict[str, str], rows: int, columns: int) -> None:
            try:
                self._pty = PtyProcess.spawn(list(argv), cwd=cwd, env=env, dimensions=(rows, columns))
            except _FAULTS as fault:
                raise OSError(str(fault)) from fault
            self.pid: int = self._pty.pid

        def read(self) -> bytes:
            """Waits for output; none once the terminal has no user left."""
            try:
                while not (text := self._pty.read(READ_BYTES)):
                    pass
            except _FAULTS:
                return b""
            return str(text).encode()

        def write(self, data: bytes) -> int:
            """How much of it was taken: a character that is not whole yet waits for its rest."""
            taken = whole_characters(data)
            try:
                self._pty.write(taken.decode(errors="replace"))
            except _FAULTS as fault:
                raise OSError(str(fault)) from fault
            return len(taken)

        def setwinsize(self, rows: int, columns: int) -> None:
            try:
                self._pty.setwinsize(rows, columns)
            except _FAULTS as fault:
                raise OSError(str(fault)) from fault

        def has_ended(self) -> bool:
            return not self._pty.isalive()

        def wait(self) -> int | None:
            """The exit code, once it has ended."""
            code = self._pty.wait()
            return None if code is None else int(code)

        def close(self) -> None:
            """Ends the command if it has not ended, and gives the terminal back. What is left of it is its job's."""
            with contextlib.suppress(*_FAULTS):
                self._pty.close(force=True)
