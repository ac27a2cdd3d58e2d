"""Runs the command of a shell task in a pump, tells its actor what comes of it, and ends what it leaves behind.

The shell's end is told first; then everybody left in its session gets SIGTERM, SIGKILL 250 ms later, and is looked for
until nobody is left. Only then is the shell reaped, so that no signal can reach a stranger. Source: `tasks.md` 2.9.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.base import Address, StartPump
from actors.mail import (
    CommandBegun,
    CommandExited,
    CommandOutput,
    CommandSwept,
    InputTaken,
    InputTyping,
    ShellTaskMail,
    ShellTaskPlan,
)
from actors.pump import Share, Window
from actors.shell.group import Beside, Census
from actors.shell.process import (
    Channel,
    ContainmentUnavailable,
    Process,
    ProcessSpec,
    SpawnError,
    check_containment,
    choose_shell,
    powershell_argv,
    shell_argv,
)
from actors.shell.pty import Terminal

GENTLE_S = 0.25
CONFIRM_S = 2.0
STEP_S = 0.005
TYPED_BYTES = 256
"""A terminal takes some thousand bytes before it blocks, and says only that it would take some."""


class PumpedCommand:
    """A command, and the window between its output and its actor."""

    def __init__(
        self,
        process: Process | Terminal,
        window: Window,
        type_in: Callable[[bytes], None],
        stop: Callable[[], None],
        beside: Beside,
    ) -> None:
        self._process = process
        self._window = window
        self._type_in = type_in
        self._stop = stop
        self._beside = beside

    def stop(self) -> None:
        """Asks its group to end, and kills it 250 ms later; before its start it is killed, and then never starts."""
        if self._process.leader is None:
            self.kill()
        else:
            self._beside(self._stop)

    def kill(self) -> None:
        self._process.kill(self._beside)

    def abandon(self) -> None:
        """Kills it; nobody takes its output any more."""
        self._process.kill(self._beside)
        self._window.close()

    def type(self, data: bytes) -> None:
        self._type_in(data)

    def resize(self, columns: int, rows: int) -> bool:
        return isinstance(self._process, Terminal) and self._process.resize(columns, rows)


class CommandLauncher:
    """Starts the commands of tasks. `which` finds a program on PATH; `sleep` and `now` are in seconds."""

    def __init__(
        self,
        start_pump: StartPump,
        shell_path: str | None,
        prefix: str | None,
        which: Callable[[str], str | None],
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._start_pump = start_pump
        self._shell_path = shell_path
        self._prefix = prefix
        self._which = which
        self._now = now
        self._sleep = sleep
        self._census = Census()
        self._share = Share()

    def start(self, plan: ShellTaskPlan, task: Address[ShellTaskMail]) -> PumpedCommand:
        process = Terminal(self._census) if plan.pty else Process(self._census)
        window = Window(share=self._share)
        try:
            self._start_pump("task-pump", lambda: self._run(plan, task, process, window))
        except RuntimeError as error:  # the system lets us have no thread more
            task.tell(CommandExited(None, error=f"Cannot run the command: {error}"))
            task.tell(CommandSwept())

        def type_in(data: bytes) -> None:
            self._start_pump("task-input", lambda: task.tell(InputTaken(_typed(process, data, task))))

        def stop() -> None:
            if process.leader is not None:
                process.leader.terminate()
            self._sleep(GENTLE_S)
            process.kill()

        return PumpedCommand(process, window, type_in, stop, lambda work: self._start_pump("task-stop", work))

    def _run(
        self, plan: ShellTaskPlan, task: Address[ShellTaskMail], process: Process | Terminal, window: Window
    ) -> None:
        def tell_output(channel: Channel, data: bytes) -> None:
            ack = window.admit(len(data))
            if ack is not None:
                task.tell(CommandOutput(channel, data, ack))

        may_remain = True
        try:
            if process.start(ProcessSpec(self._argv(plan), plan.cwd, plan.environment)):
                task.tell(CommandBegun())
            ended = process.pump(tell_output)
            may_remain = ended.leftovers or process.killed  # nobody has looked after a kill
            task.tell(CommandExited(ended.code, ended.signal))
        except ContainmentUnavailable as error:
            task.tell(CommandExited(None, error=str(error), failure="ContainmentUnavailable"))
        except SpawnError as error:
            task.tell(CommandExited(None, error=str(error)))
        except Exception as error:
            process.kill()
            task.tell(CommandExited(None, error=f"the command failed: {type(error).__name__}"))
        self._sweep(process, task, may_remain)

    def _argv(self, plan: ShellTaskPlan) -> tuple[str, ...]:
        if plan.shell == "powershell":
            return powershell_argv(plan.command)
        shell = choose_shell(self._shell_path, self._which)
        check_containment(shell)
        return shell_argv(shell, plan.command, self._prefix)

    # -- what is left

    def _sweep(self, process: Process | Terminal, task: Address[ShellTaskMail], may_remain: bool) -> None:
        leader = process.leader
        if leader is not None and may_remain and leader.members():
            leader.terminate()
            if not self._gone_within(process, GENTLE_S):
                process.kill()
            while not self._gone_within(process, CONFIRM_S):
                task.tell(CommandSwept((f"process group {leader.pid}",)))
                process.kill()
        process.close()
        task.tell(CommandSwept())

    def _gone_within(self, process: Process | Terminal, seconds: float) -> bool:
        """Whether nobody of the session is left. Those that were seen are asked first: a look at all costs more."""
        assert process.leader is not None
        until = self._now() + seconds
        while members := process.leader.members():
            while any(process.leader.has(pid) for pid in members):
                if self._now() >= until:
                    return False
                self._sleep(STEP_S)
        return True


def _typed(process: Process | Terminal, data: bytes, task: Address[ShellTaskMail]) -> int:
    """How many bytes the terminal took before it was gone. It may be gone before this has noticed."""
    taken = 0
    while taken < len(data) and isinstance(process, Terminal):
        if taken:
            task.tell(InputTyping(taken))
        try:
            taken += process.write(data[taken : taken + TYPED_BYTES])
        except OSError:
            break
    return taken
