"""Commands on a terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

import pytest

from actors.shell import pipes
from actors.shell.group import descendants
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
    terminal.kill()  # who still holds it
    terminal.close()
    return end, b"".join(chunks).decode()


def test_the_command_sees_a_terminal_of_the_usual_size_and_kind() -> None:
    end, output = run("test -t 0 && test -t 2 && stty size && echo $TERM")
    assert (end, output) == (Exit(0), "40 120\r\nxterm-256color\r\n")


def test_all_output_arrives_before_the_exit_is_told() -> None:
    end, output = run("seq 1 5000; exit 3")
    assert output.split() == [str(n) for n in range(1, 5001)] and end == Exit(3)


HOLDERS = {
    "deaf to the hang-up": "sleep 600",
    "in a session of its own": "setsid sleep 600",
    "stopped there": "setsid sh -c 'kill -STOP $$'",
    "deaf there": """setsid sh -c "trap '' TERM; sleep 600; :" """,
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("killed", [False, True], ids=["the shell ends", "the shell is killed"])
def test_who_holds_the_terminal_when_the_shell_is_gone_does_not_hold_the_exit(holder: str, killed: bool) -> None:
    terminal, output = Terminal(), list[bytes]()
    ready, ended, ends = threading.Event(), threading.Event(), list[Exit]()

    def take(channel: str, data: bytes) -> None:
        output.append(data)
        if b"holder" in b"".join(output):
            ready.set()

    def pump() -> None:
        ends.append(terminal.pump(take))
        ended.set()

    command = f"trap '' HUP; ({holder}) & echo holder $!; {'sleep 600' if killed else 'exit 7'}"
    terminal.start(ProcessSpec(shell_argv("/bin/sh", command), "/", dict(os.environ)))
    assert terminal.leader is not None
    threading.Thread(target=pump, daemon=True).start()
    try:
        assert ready.wait(20)
        if killed:
            os.kill(terminal.leader.pid, signal.SIGKILL)
        assert ended.wait(20), "the pump waits for the holder"
        end = ends[0]._replace(leftovers=False)
        assert end == (Exit(None, signal.SIGKILL) if killed else Exit(7))
    finally:
        _end_all_with(b"".join(output))
        terminal.kill()
        terminal.close()


def _end_all_with(output: bytes) -> None:
    """The holder that was named and what it has started, which may have left the shell's session."""
    named = int(output.split(b"holder ")[1].split()[0])
    for pid in [*descendants([named]), named]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_an_endless_writer_after_the_exit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "HOLD_S", 0.3)
    end, output = run("trap '' HUP; yes & exit 4")
    assert end == Exit(4, None, leftovers=sys.platform == "linux") and "y\r\ny\r\n" in output


@pytest.mark.skipif(sys.platform != "linux", reason="the exit hangs the terminal up")
def test_what_was_written_before_the_exit_is_read_however_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "HOLD_S", 0.0)
    terminal, chunks = Terminal(), list[bytes]()
    command = "trap '' HUP; sleep 600 & echo first; head -c 5000 /dev/zero; echo end"
    terminal.start(ProcessSpec(shell_argv("/bin/sh", command), "/", dict(os.environ)))
    assert terminal.leader is not None
    pid = terminal.leader.pid

    def take_late(channel: str, data: bytes) -> None:
        chunks.append(data)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    terminal.pump(take_late)
    assert b"".join(chunks) == b"first\r\n" + bytes(5000) + b"end\r\n"
    terminal.kill()
    terminal.close()


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
