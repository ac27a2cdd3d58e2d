"""Commands on a terminal."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from actors.shell.process import Exit, ProcessSpec, SpawnError, shell_argv
from actors.shell.pty import Terminal, wants_pty

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="ptyprocess is POSIX"),
    # Python 3.12 warns of every fork beside threads; ptyprocess executes at once.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def run(command: str, cwd: str = "/") -> tuple[Exit, str]:
    terminal, chunks = Terminal(), list[bytes]()
    assert terminal.start(ProcessSpec(shell_argv("/bin/sh", command), cwd, dict(os.environ)))
    end = terminal.pump(lambda channel, data: chunks.append(data))
    terminal.close()
    return end, b"".join(chunks).decode()


def test_the_command_sees_a_terminal_of_the_usual_size_and_kind() -> None:
    end, output = run("test -t 0 && test -t 2 && stty size && echo $TERM")
    assert (end, output) == (Exit(0), "40 120\r\nxterm-256color\r\n")


def test_all_output_arrives_before_the_exit_is_told() -> None:
    end, output = run("seq 1 5000; exit 3")
    assert output.split() == [str(n) for n in range(1, 5001)] and end == Exit(3)


def test_a_kill_ends_the_command_and_the_pump() -> None:
    terminal, ready, ends = Terminal(), threading.Event(), list[Exit]()
    terminal.start(ProcessSpec(shell_argv("/bin/sh", "trap '' TERM HUP; echo up; while :; do sleep 1; done"), "/", {}))
    pump = threading.Thread(target=lambda: ends.append(terminal.pump(lambda channel, data: ready.set())), daemon=True)
    pump.start()
    assert ready.wait(20)
    terminal.kill()
    pump.join(20)
    assert ends == [Exit(None, signal.SIGKILL)]
    terminal.close()
    terminal.kill()
    terminal.close()


def test_a_kill_before_the_start_prevents_it() -> None:
    terminal = Terminal()
    terminal.kill()
    assert terminal.start(ProcessSpec(("/bin/true",), "/", {})) is False
    assert terminal.pump(lambda channel, data: None).code is None


def test_what_cannot_be_started_is_refused_in_words() -> None:
    with pytest.raises(SpawnError, match="Working directory does not exist: /no/such"):
        run("true", "/no/such")
    with pytest.raises(SpawnError, match="Cannot open a terminal for '/no/shell'"):
        Terminal().start(ProcessSpec(("/no/shell",), "/", {}))


def test_a_terminal_is_used_only_when_asked_for_and_not_switched_off() -> None:
    assert wants_pty(True, {}) and not wants_pty(False, {})
    assert not wants_pty(True, {"PI_NO_PTY": "1"}) and not wants_pty(True, {"ATOMIC_NO_PTY": "1"})
