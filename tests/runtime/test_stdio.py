"""The standard streams, blocking or not, read or not, open or closed: with real pipes and a real process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from actors.mail import InputEnding, StdinBytes, StdinEnded
from actors.probe import Probe
from actors.pump import WINDOW_MESSAGES
from runtime.stdio import LOST, MOST_UNWRITTEN, Complaints, StdoutSink, plain, read_stdin
from runtime.threads import start_pump

ROOT = Path(__file__).resolve().parents[2]
LARGE = bytes(range(256)) * 4096  # 1 MiB: more than a pipe holds


class Pipe:
    def __init__(self) -> None:
        self.read, self.write = os.pipe()

    def close(self) -> None:
        for fd in (self.read, self.write):
            try:
                os.close(fd)
            except OSError:
                continue

    def read_all(self, size: int) -> bytes:
        pieces = []
        while size > 0:
            piece = os.read(self.read, min(size, 8192))
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def written(sink: StdoutSink, burst: bytes) -> Probe[Any]:
    """Tells `None` once the burst has been written, or the error."""
    done: Probe[Any] = Probe()

    def write() -> None:
        try:
            sink.write_all(burst)
        except OSError as error:
            done.tell(error)
        else:
            done.tell(None)

    threading.Thread(target=write, daemon=True).start()
    return done


@pytest.mark.parametrize("blocking", [True, False])
def test_a_burst_larger_than_the_pipe_arrives_whole_once_the_client_reads(pipe: Pipe, blocking: bool) -> None:
    os.set_blocking(pipe.write, blocking)
    sink = StdoutSink(pipe.write)
    done = written(sink, LARGE)
    with pytest.raises(AssertionError):
        done.next(0.05)
    assert pipe.read_all(len(LARGE)) == LARGE
    assert done.next() is None
    assert sink.written == len(LARGE)


def test_what_the_client_has_room_for_counts_as_progress(pipe: Pipe) -> None:
    os.set_blocking(pipe.write, False)
    sink = StdoutSink(pipe.write)
    done = written(sink, LARGE)
    first = pipe.read_all(len(LARGE) // 2)  # more than the pipe holds, so a second write has begun
    assert 0 < sink.written < len(LARGE)
    assert first + pipe.read_all(len(LARGE) // 2) == LARGE
    assert done.next() is None


@pytest.mark.parametrize("blocking", [True, False])
def test_a_client_that_goes_away_in_the_middle_of_a_burst_is_an_error(pipe: Pipe, blocking: bool) -> None:
    os.set_blocking(pipe.write, blocking)
    done = written(StdoutSink(pipe.write), LARGE)
    assert pipe.read_all(1) == LARGE[:1]
    os.close(pipe.read)
    assert isinstance(done.next(), BrokenPipeError)


@pytest.fixture
def stdin() -> Iterator[Pipe]:
    """A pipe in the place of file descriptor 0."""
    made, kept = Pipe(), os.dup(0)
    os.dup2(made.read, 0)
    yield made
    os.dup2(kept, 0)
    os.close(kept)
    made.close()


def reading() -> Probe[Any]:
    intake: Probe[Any] = Probe()
    threading.Thread(target=read_stdin, args=(intake,), daemon=True).start()
    return intake


def end(stdin: Pipe, intake: Probe[Any]) -> None:
    os.close(stdin.write)
    assert isinstance(intake.of(StdinEnded), StdinEnded)


@pytest.mark.parametrize("blocking", [True, False])
def test_what_comes_in_is_told_read_by_read_until_the_end(stdin: Pipe, blocking: bool) -> None:
    os.set_blocking(0, blocking)
    intake = reading()
    for data in (b'{"type":', b'"get_state"}\n'):
        os.write(stdin.write, data)
        mail = intake.next()
        assert mail.data == data
        mail.ack.settle()
    end(stdin, intake)
    os.set_blocking(0, True)


def test_no_more_is_read_than_intake_has_acked(stdin: Pipe) -> None:
    intake = reading()
    mails: list[StdinBytes] = []
    for _ in range(WINDOW_MESSAGES):
        os.write(stdin.write, b"x")
        mails.append(intake.next())
    os.write(stdin.write, b"y")
    with pytest.raises(AssertionError):
        intake.next(0.05)
    ack = mails[0].ack
    assert ack is not None
    ack.settle()
    assert intake.next().data == b"y"
    end(stdin, intake)


def test_root_hears_of_the_end_from_the_pump_whoever_hangs(stdin: Pipe) -> None:
    """Intake may stand behind a handler that never returns: then nobody else would let the time of the end run."""
    intake, root = Probe[Any](), Probe[Any]()
    threading.Thread(target=read_stdin, args=(intake, root), daemon=True).start()
    os.write(stdin.write, b"unread")
    os.close(stdin.write)
    assert root.next() == InputEnding()


def run(code: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, timeout=30, **streams)


def test_whatever_else_prints_goes_to_stderr_once_stdout_is_taken() -> None:
    done = run(
        """
        import os, subprocess
        from runtime.stdio import StdoutSink, take_stdout
        print("before")
        sink = StdoutSink(take_stdout())
        print("library")
        os.write(1, b"raw\\n")
        subprocess.run(["echo", "child"])
        sink.write_all(b"record\\n")
        """,
        capture_output=True,
    )
    assert done.stdout == b"before\nrecord\n"
    assert sorted(done.stderr.split()) == [b"child", b"library", b"raw"]


def test_children_do_not_inherit_the_clients_pipe() -> None:
    """Else a client would never see the end of a program whose background processes live on."""
    done = run(
        """
        import os, subprocess, sys
        from runtime.stdio import take_stdout
        fd = take_stdout()
        probe = "import os, sys; os.fstat(int(sys.argv[1]))"
        command = [sys.executable, "-c", probe, str(fd)]
        sys.exit(subprocess.run(command, close_fds=False, stderr=subprocess.DEVNULL).returncode)
        """,
        stdout=subprocess.PIPE,
    )
    assert done.returncode == 1


def test_a_complaint_is_one_line_and_a_closed_stderr_is_no_fault() -> None:
    code = """
        import os
        from runtime.stdio import complain
        complain("first")
        os.close(2)
        complain("second")
        """
    done = run(code, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"atomic: first\n")


class Reader:
    """Takes a line only when the test lets it."""

    def __init__(self) -> None:
        self.begun: Probe[str] = Probe()
        self.go: SimpleQueue[None] = SimpleQueue()
        self.seen: Probe[str] = Probe()

    def take(self, text: str) -> None:
        self.begun.tell(text)
        self.go.get()
        self.seen.tell(text)

    def read_on(self, lines: int) -> list[str]:
        for _ in range(lines):
            self.go.put(None)
        return [self.seen.next() for _ in range(lines)]


def test_whoever_complains_waits_for_nobody_and_lines_that_cannot_be_kept_are_said_to_be_missing() -> None:
    reader = Reader()
    complaints = Complaints(start_pump, reader.take)
    complaints.complain("0")
    assert reader.begun.next() == "0"
    for number in range(1, MOST_UNWRITTEN + 500):
        complaints.complain(str(number))
    assert complaints.flush(0) is False
    assert reader.read_on(MOST_UNWRITTEN + 1) == [str(number) for number in range(MOST_UNWRITTEN + 1)]
    assert reader.read_on(1) == [LOST]
    complaints.complain("more")
    assert reader.read_on(1) == ["more"]


def test_the_end_waits_for_what_was_complained_and_for_nothing_if_nobody_did() -> None:
    written: list[str] = []
    complaints = Complaints(start_pump, written.append)
    assert complaints.flush(0) is True
    for text in ("first", "second"):
        complaints.complain(text)
    assert complaints.flush() is True
    assert written == ["first", "second"]


def test_every_line_of_a_complaint_has_our_name_and_moves_no_cursor() -> None:
    done = run(
        """
        from runtime.stdio import complain
        complain("first\\n\\nthird \\x1b[31m\\r\\x9b \\udcff \u00e4")
        """,
        capture_output=True,
    )
    expected = "atomic: first\natomic: \natomic: third \\x1b[31m\\r\\x9b \\udcff \u00e4\n"
    assert done.stderr.decode() == expected


def test_whatever_stands_in_a_text_it_can_be_said() -> None:
    code = r"""
        from runtime.stdio import say
        say("file \udcff")
        say("lone \ud83d", end="")
        """
    done = run(code, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"file \xff\nlone ?", b"")
    done = run("from runtime.stdio import say; say('\u20ac')", capture_output=True, env={"PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stdout) == (0, b"?\n")


def test_json_is_utf_8_whatever_the_encoding_of_stdout_is() -> None:
    code = 'from runtime.stdio import say_json; say_json(\'{"a":"\u20ac"}\'.encode())'
    done = run(code, capture_output=True, env={"PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stdout) == (0, '{"a":"\u20ac"}\n'.encode())


def test_plain_text_is_left_alone() -> None:
    assert plain("a \u00e4 \u20ac") == "a \u00e4 \u20ac"
    assert plain("a\x1bb\nc\ud83dd\u202e") == "a b c d "


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_no_file_of_ours_gets_the_number_of_a_stream_that_was_closed(tmp_path: Path, closed: str) -> None:
    code = textwrap.dedent(
        f"""
        import os
        from runtime.stdio import complain, hold_closed_streams
        hold_closed_streams()
        fd = os.open({str(tmp_path / "number")!r}, os.O_RDWR | os.O_CREAT)
        os.write(fd, str(fd).encode())
        complain("said")
        """
    )
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, timeout=30, capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == (b"" if "2>" in closed else b"atomic: said\n")
    assert int((tmp_path / "number").read_text()) > 2
