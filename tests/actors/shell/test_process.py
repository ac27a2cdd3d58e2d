"""Real children: what they write, how they end, and that nobody of theirs outlives a kill."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actors.shell import group, pipes
from actors.shell.output import Sanitizer, Tail
from actors.shell.process import (
    Channel,
    Exit,
    OnOutput,
    Process,
    ProcessSpec,
    SpawnError,
    choose_shell,
    shell_argv,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sessions and signals are POSIX")
BASH = "/bin/bash" if os.path.exists("/bin/bash") else "bash"
DEADLINE_S = 20.0


def spec(command: str, cwd: str = "/") -> ProcessSpec:
    return ProcessSpec(shell_argv(BASH, command), cwd, dict(os.environ))


class Collector:
    """Keeps chunks in order, and lets a test wait until some text has come."""

    def __init__(self) -> None:
        self.chunks: list[tuple[Channel, bytes]] = []
        self._more = threading.Condition()

    def __call__(self, channel: Channel, data: bytes) -> None:
        with self._more:
            self.chunks.append((channel, data))
            self._more.notify_all()

    def text(self, channel: Channel | None = None) -> str:
        return b"".join(data for name, data in self.chunks if channel in (None, name)).decode()

    def line_with(self, word: str) -> str:
        """The first whole line that contains `word`."""

        def lines() -> list[str]:
            return [line for line in self.text().split("\n")[:-1] if word in line]

        with self._more:
            assert self._more.wait_for(lambda: bool(lines()), DEADLINE_S), f"no {word} in {self.text()!r}"
            return lines()[0]


class Run:
    """A child whose pump runs in a thread."""

    def __init__(self, command: str, on_output: OnOutput | None = None) -> None:
        self.process = Process()
        self.output = Collector()
        self.exit: Exit | None = None
        assert self.process.start(spec(command))
        self._thread = threading.Thread(target=self._pump, args=(on_output or self.output,), daemon=True)
        self._thread.start()

    def _pump(self, on_output: OnOutput) -> None:
        self.exit = self.process.pump(on_output)

    def ended(self, within_s: float = DEADLINE_S) -> Exit:
        self._thread.join(within_s)
        assert self.exit is not None, "the pump has not ended"
        return self.exit


@pytest.fixture(params=["pidfd", "asking"])
def watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to learn of an exit: the second is the one of systems without a pidfd."""
    if request.param == "asking":
        monkeypatch.setattr(pipes, "_open_pidfd", lambda pid: None)


def run(command: str, cwd: str = "/") -> tuple[Exit, Collector]:
    process, output = Process(), Collector()
    assert process.start(spec(command, cwd))
    end = process.pump(output)
    process.kill_group_leftovers()
    return end, output


class Watched:
    """A process that is not our child, by descriptor: its number may go to another one."""

    def __init__(self, pid: int) -> None:
        self._fd = os.pidfd_open(pid)

    def is_gone(self, within_s: float = DEADLINE_S) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        gone = bool(poll.poll(within_s * 1000))
        if gone:
            os.close(self._fd)
        return gone


needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the test watches strangers by pidfd")


@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize(
    ("command", "end"),
    [
        ("true", Exit(0)),
        ("exit 3", Exit(3)),
        ("kill -9 $$", Exit(None, signal.SIGKILL)),
        ("kill -TERM $$", Exit(None, signal.SIGTERM)),
        ("exec >&- 2>&-; exec sleep 0.05", Exit(0)),
    ],
)
def test_the_exit_is_a_code_or_a_signal(command: str, end: Exit) -> None:
    assert run(command)[0] == end


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the child reads our pipe through /proc")
def test_both_channels_arrive_in_the_order_observed() -> None:
    # Each step waits for the answer of the test, so that only one order is right.
    answers, answer = os.pipe()
    seen: list[tuple[Channel, bytes]] = []

    def on_output(channel: Channel, data: bytes) -> None:
        seen.append((channel, data))
        os.write(answer, b"\n")

    process = Process()
    process.start(spec(f"exec 3</proc/{os.getpid()}/fd/{answers}; echo 1; read -u 3; echo 2 >&2; read -u 3; echo 3"))
    process.pump(on_output)
    process.close()
    os.close(answers)
    os.close(answer)
    assert seen == [("stdout", b"1\n"), ("stderr", b"2\n"), ("stdout", b"3\n")]


def test_stdin_is_empty_and_not_ours() -> None:
    end, output = run("cat; echo end")
    assert (end, output.text()) == (Exit(0), "end\n")


def test_the_child_leads_a_session_of_its_own_without_our_descriptors() -> None:
    leak = os.open("/", os.O_RDONLY)
    os.set_inheritable(leak, True)
    end, output = run(f"test -e /proc/$$/fd/{leak} && echo leaked; ps -o sid= -p $$; echo $$")
    os.close(leak)
    session, pid = output.text().split()
    assert session == pid and end == Exit(0)


def test_a_closed_pipe_ends_the_writer_as_usual_although_python_ignores_sigpipe() -> None:
    _, output = run("yes | head -1; echo ${PIPESTATUS[0]}")
    assert output.text() == f"y\n{128 + signal.SIGPIPE}\n"


def test_a_character_written_in_two_halves_arrives_whole() -> None:
    _, output = run(r"printf '\342'; sleep 0.05; printf '\202\254\n'")
    sanitizer = Sanitizer()
    assert "".join(sanitizer.feed(data) for _, data in output.chunks) == "€\n"


def test_fifteen_megabytes_pass_with_flat_memory() -> None:
    tail, sanitizer, process = Tail(), Sanitizer(), Process()
    process.start(spec("seq 1 2000000"))
    tracemalloc.start()
    end = process.pump(lambda channel, data: tail.append(sanitizer.feed(data)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    process.close()
    cut = tail.truncated()
    assert end == Exit(0) and cut.total_lines == 2_000_000 and cut.total_bytes == tail.total_bytes == 14_888_896
    assert cut.content.endswith("\n1999999\n2000000") and cut.output_lines == 3000
    assert peak < 2_000_000


def test_a_blocked_reader_stops_the_writer_and_loses_nothing() -> None:
    gate, first, total = threading.Event(), threading.Event(), [0]

    def on_output(channel: Channel, data: bytes) -> None:
        total[0] += len(data)
        first.set()
        assert gate.wait(DEADLINE_S)

    child = Run("head -c 3000000 /dev/zero", on_output)
    assert first.wait(DEADLINE_S)
    assert total[0] <= 65536 and child.exit is None
    gate.set()
    assert child.ended() == Exit(0) and total[0] == 3_000_000


@pytest.mark.usefixtures("watch")
def test_a_silent_background_child_does_not_hold_the_answer() -> None:
    started = time.monotonic()
    end, output = run("sleep 40 & echo done")
    assert (end, output.text()) == (Exit(0, None, True), "done\n")
    assert time.monotonic() - started < 10


def test_what_a_background_child_writes_after_the_exit_still_counts() -> None:
    end, output = run("(for i in 1 2 3 4; do sleep 0.03; echo $i; done) & echo first")
    assert output.text() == "first\n1\n2\n3\n4\n" and end.code == 0


def test_an_endless_writer_after_the_exit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pipes.HOLD_S == 5.0 and pipes.QUIET_S == 0.1
    monkeypatch.setattr(pipes, "HOLD_S", 0.3)
    end, output = run("yes & echo done")
    # Whether the writer has noticed by now that nobody reads any more is open.
    assert end.code == 0 and "y\ny\n" in output.text()


@pytest.mark.usefixtures("watch")
def test_what_was_written_before_the_exit_is_read_however_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "HOLD_S", 0.0)
    end, output = run("sleep 40 & head -c 60000 /dev/zero; head -c 5000 /dev/zero >&2")
    assert len(output.text("stdout")) == 60000 and len(output.text("stderr")) == 5000
    assert end == Exit(0, None, True)


STUBBORN = """bash -c 'trap "" TERM HUP INT; echo pid $$; while :; do sleep 1; done'"""


@needs_pidfd
@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize(
    "command",
    [
        STUBBORN,
        f"{STUBBORN} | cat",
        f"({STUBBORN} &) ; wait; sleep 60",
        f"timeout 300 {STUBBORN}; echo no",
        f"set -m; {STUBBORN} & wait",
        f"setsid {STUBBORN}; echo no",
    ],
    ids=["child", "pipeline", "orphan", "own group", "job control", "own session"],
)
def test_a_kill_reaches_everybody_who_ignores_term(command: str) -> None:
    child = Run(command)
    stubborn = Watched(int(child.output.line_with("pid").split()[1]))
    child.process.kill()
    child.process.kill()
    assert child.ended() == Exit(None, signal.SIGKILL)
    assert stubborn.is_gone() and "no" not in child.output.text()
    assert child.process.close() is False


def test_a_kill_before_the_start_prevents_it(tmp_path: Path) -> None:
    process = Process()
    process.kill()
    assert process.start(spec(f"touch {tmp_path}/ran")) is False
    assert process.pump(Collector()) == Exit(None, signal.SIGKILL)
    assert process.killed and not process.close() and list(tmp_path.iterdir()) == []


def test_a_kill_in_the_middle_of_the_start_is_not_lost() -> None:
    for _ in range(20):
        process = Process()
        killer = threading.Thread(target=process.kill)
        killer.start()
        process.start(spec("sleep 60"))
        killer.join()
        assert process.pump(Collector()) == Exit(None, signal.SIGKILL)
        assert process.close() is False


@needs_pidfd
def test_background_children_are_left_alone_until_the_program_ends() -> None:
    process, output = Process(), Collector()
    process.start(spec("sleep 60 >/dev/null 2>&1 & echo pid $!"))
    assert process.pump(output) == Exit(0, None, True)
    background = Watched(int(output.text().split()[1]))
    assert process.close() is True and not background.is_gone(0)
    process.kill_group_leftovers()
    assert background.is_gone() and process.close() is False


@needs_pidfd
def test_the_number_of_a_child_stays_taken_while_its_background_lives() -> None:
    process, output = Process(), Collector()
    process.start(spec("sleep 60 >/dev/null 2>&1 & echo $$"))
    process.pump(output)
    pid = int(output.text())
    process.close()
    assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    process.kill_group_leftovers()
    with pytest.raises(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)


def test_after_close_a_kill_signals_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    process.start(spec("true"))
    process.pump(Collector())
    assert process.close() is False
    signalled: list[int] = []
    for name in ("kill", "killpg"):
        monkeypatch.setattr(os, name, lambda pid, _: signalled.append(pid))
    process.kill()
    process.kill_group_leftovers()
    assert signalled == []


def test_a_child_closed_while_a_kill_is_under_way_is_reaped_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    leader = group.Leader(4711, lambda: steps.append("reaped"))

    def kill_while_closed(pid: int, census: group.Census) -> None:
        leader.close()
        steps.append("killed")

    monkeypatch.setattr(group, "kill_family", kill_while_closed)
    leader.kill()
    leader.kill()
    assert steps[:2] == ["killed", "reaped"] and steps.count("killed") == 1


def test_many_children_leave_no_descriptors_and_no_zombies() -> None:
    def descriptors() -> int:
        return len(os.listdir("/dev/fd"))

    run("true")
    before = descriptors()
    for _ in range(20):
        process = Process()
        process.start(spec("true"))
        process.pump(Collector())
        del process  # letting go is enough
    assert descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (spec("true", "/no/such"), "Working directory does not exist: /no/such\nCannot execute bash commands."),
        (spec("true", "/dev/null"), "Working directory is not a directory: /dev/null"),
        (spec("a\0b"), r"Invalid command 'a\x00b': it must not contain a NUL character"),
        (spec("a\ud83d"), r"Invalid command 'a\ud83d': it must not contain a lone surrogate"),
        (spec("true", "/\ud83d"), r"Invalid cwd '/\ud83d': it must not contain a lone surrogate"),
        (ProcessSpec(("/no/shell", "-c", "true"), "/", {}), "Cannot run '/no/shell': No such file or directory"),
        (spec("x" * 3_000_000), f"Cannot run '{BASH}': Argument list too long"),
    ],
)
def test_what_cannot_be_started_is_refused_in_words(refused: ProcessSpec, text: str) -> None:
    process = Process()
    with pytest.raises(SpawnError) as error:
        process.start(refused)
    assert str(error.value) == text
    process.kill()
    assert process.close() is False


def test_a_long_command_is_shortened_in_its_refusal() -> None:
    with pytest.raises(SpawnError) as error:
        Process().start(spec("\0" + "x" * 500))
    assert len(str(error.value)) < 160


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "myshell"
    path.write_text('#!/bin/sh\nexec /bin/sh "$@"\n')
    path.chmod(0o755)
    yield str(path)


def nowhere(name: str) -> str | None:
    return None


def test_the_configured_shell_is_taken_or_missed_by_name(shell: str) -> None:
    assert choose_shell(shell, nowhere) == shell
    with pytest.raises(SpawnError, match=r"^Custom shell path not found: /no/shell$"):
        choose_shell("/no/shell", nowhere)


def test_without_a_configured_shell_bash_is_preferred_to_sh(monkeypatch: pytest.MonkeyPatch) -> None:
    exists: Callable[[str], bool] = os.path.exists
    assert not exists("/bin/bash") or choose_shell(None, nowhere) == "/bin/bash"
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    assert choose_shell(None, lambda name: f"/opt/{name}") == "/opt/bash"
    assert choose_shell(None, nowhere) == "sh"


def test_the_command_prefix_stands_on_a_line_of_its_own() -> None:
    assert shell_argv("sh", "echo $X", "X=1 # set") == ("sh", "-c", "X=1 # set\necho $X")
    assert shell_argv("sh", "true") == shell_argv("sh", "true", "") == ("sh", "-c", "true")
