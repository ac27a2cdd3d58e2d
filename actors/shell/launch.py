"""Runs the process of a shell request in a pump, and tells its actor what comes of it."""

from __future__ import annotations

from collections.abc import Callable

from actors.base import Address, StartPump
from actors.mail import ShellExited, ShellMail, ShellOutput, ShellPlan
from actors.pump import Share, Window
from actors.shell.group import Census
from actors.shell.process import Channel, Process, ProcessSpec, SpawnError, choose_shell, shell_argv


class PumpedProcess:
    """A process and the window between its pipes and the client."""

    def __init__(self, process: Process, window: Window, start_pump: StartPump) -> None:
        self._process = process
        self._window = window
        self._start_pump = start_pump

    def kill(self) -> None:
        """Also lets go of a pump that waits for a client who does not read: what is unread then is not told."""
        self._process.kill(lambda work: self._start_pump("shell-kill", work))
        self._window.close()

    def close(self) -> bool:
        return self._process.close()

    def kill_group_leftovers(self) -> None:
        self._process.kill_group_leftovers()


class ProcessLauncher:
    """Starts processes for the Shell actors, which are killed together. `which` finds a program on PATH."""

    def __init__(
        self,
        start_pump: StartPump,
        shell_path: str | None,
        prefix: str | None,
        which: Callable[[str], str | None],
    ) -> None:
        self._start_pump = start_pump
        self._shell_path = shell_path
        self._prefix = prefix
        self._which = which
        self._census = Census()
        self._share = Share()

    def start(self, plan: ShellPlan, shell: Address[ShellMail]) -> PumpedProcess:
        process, window = Process(self._census), Window(share=self._share)
        self._start_pump("shell-pump", lambda: self._run(plan, shell, process, window))
        return PumpedProcess(process, window, self._start_pump)

    def _run(self, plan: ShellPlan, shell: Address[ShellMail], process: Process, window: Window) -> None:
        def tell_output(channel: Channel, data: bytes) -> None:
            ack = window.admit(len(data))
            if ack is not None:
                shell.tell(ShellOutput(channel, data, ack))

        try:
            argv = shell_argv(choose_shell(self._shell_path, self._which), plan.command, self._prefix)
            process.start(ProcessSpec(argv, plan.cwd, plan.environment))
            shell.tell(ShellExited(process.pump(tell_output).code))
        except SpawnError as error:
            shell.tell(ShellExited(None, str(error)))
        except Exception as error:
            process.kill()
            shell.tell(ShellExited(None, f"the shell request failed: {type(error).__name__}"))
