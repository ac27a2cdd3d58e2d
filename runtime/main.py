"""The command `atomic`: reads flags and files, starts the house, and lives until Root says that it is over."""

from __future__ import annotations

import gc
import os
import sys
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.mail import RootMail
    from runtime.oneshot import OneShotPlan
    from runtime.startup import Startup
    from runtime.stdio import Complaints
    from runtime.trace_file import TraceFile

SWITCH_INTERVAL_S = 0.0005
"""For so long a busy pure-Python pump may hold up the crew and the Writer, each time one of them waits for the system.
At the default of 5 ms a chain of three was late by 15 ms; what subagents cost is the same with either."""


GARBAGE = 10_000
"""Objects that are made before Python looks for cycles among them; we make few. At the default of 700 it looked
nine times while a first prompt loads what speaks HTTP."""


SUBCOMMANDS = {
    "agents": "runtime.agent_list",
    "auth": "runtime.auth_command",
    "completions": "runtime.completions",
    "doctor": "runtime.doctor",
    "export": "runtime.export_command",
    "schema": "runtime.schema_command",
    "sessions": "runtime.session_list",
    "tasks": "runtime.inspector.command",
}
"""Each has `run(argv, env, cwd)`, which gives the exit code. Only the first word of the command line can name one."""


class MainThread:
    """Root's address: the inbox of the main thread."""

    name = "root"

    def __init__(self) -> None:
        self._inbox: SimpleQueue[RootMail] = SimpleQueue()

    def tell(self, mail: RootMail) -> None:
        self._inbox.put(mail)

    def stop(self) -> None:
        """Root ends itself."""

    def next(self) -> RootMail:
        return self._inbox.get()


def main(argv: list[str] | None = None) -> int:
    """Runs `atomic`. Returns only when it could not start; otherwise the process exits by itself."""
    gc.disable()  # until all has been loaded: nothing of that is garbage, and looking for some took 4 % of a start
    from runtime.cli import parse_arguments
    from runtime.stamps import STAMPS
    from runtime.startup import StartupError, load
    from runtime.stdio import CANNOT_WRITE, CLOSED, complain, hold_closed_streams

    given = sys.argv[1:] if argv is None else argv
    hold_closed_streams()
    try:
        cwd = os.getcwd()
    except OSError as error:
        complain(f"the working directory cannot be used: {error.strerror or error}")
        return 1
    if given and given[0] in SUBCOMMANDS:
        from importlib import import_module

        return int(import_module(SUBCOMMANDS[given[0]]).run(given[1:], os.environ, cwd))
    piped = not os.isatty(0)
    options = parse_arguments(given, os.environ, terminal=not piped and os.isatty(1))
    if options.export is not None:
        from runtime.export_command import run

        return run([options.export, *options.messages], os.environ, cwd)
    if sys.stdout is None:
        complain(CANNOT_WRITE.format(CLOSED))
        return 1
    try:
        startup = load(options, os.environ, cwd, STAMPS)
    except StartupError as error:
        complain(str(error))
        return 1
    for warning in startup.warnings:
        complain(warning)
    if options.list_models is not None:
        from runtime.list_models import print_models

        print_models(startup.catalog.catalog.available(), options.list_models)
        return 0
    if options.verbose:
        complain(_facts(startup))
    plan = None
    if options.mode != "rpc":
        from runtime.oneshot import plan_one_shot
        from runtime.prompt_files import PromptFileError

        try:
            resize = startup.settings.auto_resize_images
            plan = plan_one_shot(options, startup.session, cwd, reads_stdin=piped, resize_images=resize)
        except PromptFileError as error:
            complain(str(error))
            return 1
    try:
        trace = _tracer(options.trace)
    except OSError as error:
        complain(f"--trace {options.trace}: the file cannot be opened: {error.strerror or error}")
        return 1
    _run(startup, trace, plan)
    return 0


def _facts(startup: Startup) -> str:
    """For `--verbose`."""
    session, named = startup.session, startup.catalog.named
    model = f"{named.model.provider}/{named.model.id}" if named else "chosen by session and settings"
    tools = ", ".join(startup.tools) or "none"
    return f"session {session.header.id}, file {session.journal.path or 'none'}, model {model}, tools {tools}"


def _run(startup: Startup, trace: TraceFile | None, plan: OneShotPlan | None) -> None:
    from runtime.children import kill_descendants, mark_children
    from runtime.pumps import Pumps
    from runtime.root import Root
    from runtime.stdio import Complaints, StdoutSink, take_stdout
    from runtime.threads import ThreadHost, describe, start_named_pump, start_pump
    from runtime.wiring import House

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    mark_children()
    sink = StdoutSink(take_stdout())
    address = MainThread()
    pump = Pumps().start if trace is None else start_named_pump
    complaints = Complaints(start_pump)
    house = House(startup, ThreadHost(trace), os.environ, pump, complaints.complain, plan)

    def sweep() -> None:
        house.tidy()
        kill_descendants()

    root = Root(complaints.complain, lambda: sink.written, sweep)
    root.me = address
    house.start(address, root, sink)
    _listen(address)
    gc.freeze()  # what lives as long as the process need not be looked at ever again
    gc.set_threshold(GARBAGE)
    gc.enable()
    while root.phase != "over":
        try:
            root.receive(address.next())
        except Exception as error:  # Root has no owner: it ends the process itself
            complaints.complain(f"root failed: {describe(error)}")
            sweep()
            _exit(1, complaints)
    _exit(root.exit_code or (0 if trace is None or trace.is_whole else 1), complaints)


def _listen(root: MainThread) -> None:
    """Any thread may take a signal, but Python runs a handler only once the main thread wakes, which nothing does then
    (seen: 4 of 10 SIGTERM while another thread starts). So the number goes through a pipe to a pump. No signal is
    blocked by mask: children would inherit it."""
    import signal

    from actors.mail import SignalReceived
    from runtime.threads import start_pump

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)]
    if sys.platform == "win32":
        for number in numbers:
            signal.signal(number, lambda received, _: root.tell(SignalReceived(received)))
        return
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    start_pump("signals", lambda: _read_signals(source, root))


def _read_signals(source: int, root: MainThread) -> None:
    from actors.mail import SignalReceived

    while received := os.read(source, 64):
        for number in received:
            root.tell(SignalReceived(number))


def _tracer(path: str | None) -> TraceFile | None:
    if path is None:
        return None
    from runtime.trace_file import TraceFile

    return TraceFile(path)


def _exit(code: int, complaints: Complaints) -> None:
    """Without the interpreter's own end: it would wait for threads that sit in a read, or in a write to stderr."""
    if complaints.flush():
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
