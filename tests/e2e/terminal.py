"""A real terminal: tmux, started for one test alone, with a program in it that is typed at and looked at."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

DEADLINE_S = 40


class Terminal:
    """Runs `command` in a terminal of `size`. `folder` is for the socket of tmux, so its path has to be short."""

    def __init__(
        self, command: Sequence[str], folder: Path, cwd: Path, env: Mapping[str, str], size: tuple[int, int] = (80, 24)
    ) -> None:
        self._tmux = ["tmux", "-u", "-S", str(folder / "tmux"), "-f", os.devnull]
        self._env = {**env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        self._cwd, self._size = cwd, size
        self._shell = f"{shlex.join(command)}; echo exit code $?; exec cat"

    def __enter__(self) -> Terminal:
        width, height = map(str, self._size)
        self._run("new-session", "-d", "-x", width, "-y", height, "-c", str(self._cwd), self._shell)
        # A client in control mode is told of all that the program writes, so that nobody has to look in vain.
        self._told = subprocess.Popen(
            [*self._tmux, "-C", "attach"], env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._run("kill-server")
        assert self._told.stdin and self._told.stdout
        self._told.stdin.close()
        self._told.wait(timeout=20)
        self._told.stdout.close()

    def press(self, *keys: str) -> None:
        """Keys by the names that tmux gives them: `Enter`, `Escape`, `PageUp`, `x`."""
        self._run("send-keys", *keys)

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", text)

    def resize(self, width: int, height: int) -> None:
        self._run("resize-window", "-x", str(width), "-y", str(height))

    def capture(self, *, styled: bool = False) -> str:
        """What is seen now; `styled` with the escape sequences of colours."""
        return self._run("capture-pane", "-p", *(["-e"] if styled else []))

    def shows(self, *texts: str, without: Sequence[str] = ()) -> str:
        """Waits until all of `texts` and none of `without` are seen; the capture."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            seen = self.capture()
            if all(text in seen for text in texts) and not any(text in seen for text in without):
                return seen
            left = deadline - time.monotonic()
            assert left > 0, f"waited for {texts}, without {tuple(without)}:\n{seen}"
            self._wait(left)

    def _wait(self, seconds: float) -> None:
        """Until something was written."""
        assert self._told.stdout
        ready, _, _ = select.select([self._told.stdout], [], [], seconds)
        if ready:
            os.read(self._told.stdout.fileno(), 1 << 16)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], env=self._env, capture_output=True, timeout=DEADLINE_S)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()
