"""A child process: started in a session of its own, its two pipes read to their end, its exit told, its kin killed.

Source: contract, direct bash ("End of command", "Cancel"). The child is not reaped while anybody may still kill it:
`pump` only peeks at its status, and `close` reaps, so that its number cannot pass to a stranger before. `start`, then
`pump`, belong to the owner's pump, `close` to whoever has seen the pump end; `kill` may come from any thread, any time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from actors.shell.group import Beside, Census, Job, Leader
from actors.shell.job import CREATE_SUSPENDED, JobRefused
from actors.shell.pipes import Channel, Exit, OnOutput, peek_code, read_pipes, read_windows

__all__ = [
    "Channel",
    "ContainmentUnavailable",
    "Exit",
    "OnOutput",
    "Process",
    "ProcessSpec",
    "SpawnError",
    "check_cwd",
    "check_text",
    "choose_shell",
    "powershell_argv",
    "shell_argv",
]

if TYPE_CHECKING:
    from subprocess import Popen


class SpawnError(OSError):
    """The child could not be started; the text is a sentence for the user."""


class ContainmentUnavailable(SpawnError):
    """What the command starts could not be kept together, so it was not run."""


class ProcessSpec(Struct, frozen=True):
    """What to run: `argv` with the program first, the whole environment (nothing is inherited)."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]


class Process:
    """One child, started at most once. Those that may be killed together share a `census`.

    1.05 ms from `start` through `pump` and `close` of /bin/true, of which fork and exec are 0.63 (os.posix_spawn needs
    that too, and knows no cwd)."""

    __slots__ = ("_census", "_killed", "_leader", "_leftovers", "_popen")

    def __init__(self, census: Census | None = None) -> None:
        self._census = census or Census()
        self._popen: Popen[bytes] | None = None
        self._leader: Leader | None = None
        self._killed = False
        self._leftovers: list[int] = []

    @property
    def killed(self) -> bool:
        """Whether `kill` was called, before the start, during the run or after the exit."""
        return self._killed

    @property
    def leader(self) -> Leader | None:
        """The child, once it has started."""
        return self._leader

    def start(self, spec: ProcessSpec) -> bool:
        """Starts the child; stdin is /dev/null. False when it was killed before. Raises SpawnError."""
        if self._killed:
            return False
        check_text("command", spec.argv[-1])
        check_cwd(spec.cwd)
        popen = self._popen = _spawn(spec)
        # Stored before the second look: a kill that came meanwhile either saw the child or is seen here.
        self._leader = Leader(popen.pid, popen.poll, self._census, _job_of(popen))
        if self._killed:
            self.kill()
        return True

    def pump(self, on_output: OnOutput) -> Exit:
        """Reads until the child has ended and its pipes too, or their holders were silent for 100 ms, at most 5 s.

        `on_output` gets chunks of at most 64 KiB in the order in which they were seen, and may block."""
        popen = self._popen
        if popen is None:
            return Exit(None, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        if sys.platform == "win32":
            ended = read_windows(popen, on_output)
            self._leftovers = self._leader.members() if self._leader is not None and not self._killed else []
            return ended._replace(leftovers=bool(self._leftovers))
        read_pipes(popen, on_output, lambda: self._killed)
        code = popen.returncode if popen.returncode is not None else peek_code(popen.pid)
        # After a kill whoever would still be seen is dying.
        self._leftovers = self._leader.members() if self._leader is not None and not self._killed else []
        if code is None or code >= 0:
            return Exit(code, None, bool(self._leftovers))
        return Exit(None, -code, bool(self._leftovers))

    def kill(self, beside: Beside | None = None) -> None:
        """SIGKILL to everything that the child started; nothing before the start (which then does not happen), nothing
        once `close` has reaped it. May be repeated. With `beside` its caller waits for none of it."""
        self._killed = True
        if self._leader is not None and not self._is_reaped():
            self._leader.kill(beside)

    def close(self) -> bool:
        """Reaps the child, unless background processes of its session live on: then True, and a later call may.

        Background processes are left alone; the unreaped child keeps its number theirs."""
        if self._leader is None or self._is_reaped():
            return False
        if self._killed or not self._has_leftovers(self._leader):
            self._leader.close()
            return False
        return True

    def _has_leftovers(self, leader: Leader) -> bool:
        """Asks those that were seen first: hundreds may be remembered, and asked whenever one more is."""
        if self._leftovers and not any(leader.has(pid) for pid in self._leftovers):
            self._leftovers = leader.members()
        return bool(self._leftovers)

    def _is_reaped(self) -> bool:
        if sys.platform == "win32":  # its number is not what is signalled there
            return self._leader is not None and self._leader.closed
        return self._popen is not None and self._popen.returncode is not None

    def kill_group_leftovers(self) -> None:
        """At the end of the program: kills what is left of the session, then reaps."""
        self.kill()
        self.close()

    def __del__(self) -> None:
        # Whoever let go of it can no longer kill it: reaping is safe, and what runs in the background stays.
        self._leftovers = []
        self.close()


def _spawn(spec: ProcessSpec) -> Popen[bytes]:
    # Imported with the first child: 5 ms that the start of the program does not pay.
    from subprocess import DEVNULL, PIPE, Popen

    try:
        return Popen(
            spec.argv,
            bufsize=0,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            cwd=spec.cwd,
            env=spec.env,
            start_new_session=True,
            creationflags=CREATE_SUSPENDED if sys.platform == "win32" else 0,
        )
    except OSError as error:
        raise SpawnError(f"Cannot run {_shorten(spec.argv[0])}: {error.strerror}") from error
    except ValueError as error:
        raise SpawnError(f"Cannot run {_shorten(spec.argv[0])}: {error}") from error


def _job_of(popen: Popen[bytes]) -> Job | None:
    """On Windows the job that the command is in, now awake. Raises ContainmentUnavailable, and then it never ran."""
    if sys.platform == "win32":
        from actors.shell.job import enclose

        try:
            return enclose(popen)
        except JobRefused as refused:
            raise ContainmentUnavailable(f"ContainmentUnavailable: {refused}") from None
    return None


def check_cwd(cwd: str) -> None:
    """Raises SpawnError unless `cwd` is a directory, in the words of the contract."""
    check_text("cwd", cwd)
    if not os.path.isdir(cwd):
        if os.path.exists(cwd):
            raise SpawnError(f"Working directory is not a directory: {cwd}")
        raise SpawnError(f"Working directory does not exist: {cwd}\nCannot execute bash commands.")


def check_text(field: str, value: str) -> None:
    """Raises SpawnError when the system could not take `value` as it is: a NUL, or half of a surrogate pair."""
    if "\0" in value:
        raise SpawnError(f"Invalid {field} {_shorten(value)}: it must not contain a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SpawnError(f"Invalid {field} {_shorten(value)}: it must not contain a lone surrogate") from None


def choose_shell(shell_path: str | None, which: Callable[[str], str | None]) -> str:
    """The shell to run commands with: `shell_path` when set, else /bin/bash, else `which("bash")`, else "sh".
    Raises SpawnError when `shell_path` is not there."""
    if shell_path:
        if os.path.exists(shell_path):
            return shell_path
        raise SpawnError(f"Custom shell path not found: {shell_path}")
    if os.path.exists("/bin/bash"):
        return "/bin/bash"
    return which("bash") or "sh"


def check_containment(shell: str) -> None:
    """Raises ContainmentUnavailable for the bash of Windows itself: it hands commands to a Linux beyond any job."""
    parts = shell.lower().replace("/", "\\").split("\\")
    if sys.platform == "win32" and parts[-1].startswith("bash") and {"system32", "sysnative", "windowsapps"} & {*parts}:
        raise ContainmentUnavailable("ContainmentUnavailable: run Atomic inside WSL to supervise Linux guest commands")


def shell_argv(shell: str, command: str, prefix: str | None = None) -> tuple[str, ...]:
    """`shell -c command`, with the configured prefix, if any, on its own line before the command."""
    return (shell, "-c", f"{prefix}\n{command}" if prefix else command)


def powershell_argv(command: str) -> tuple[str, ...]:
    """Windows PowerShell, told to write UTF-8."""
    utf8 = "[Console]::OutputEncoding = [Text.Encoding]::UTF8"
    return ("powershell.exe", "-NoProfile", "-NonInteractive", "-Command", f"{utf8}\n{command}")


def _shorten(value: str) -> str:
    return ascii(value if len(value) <= 80 else value[:79] + "\u2026")
