"""The named pipe of a program: who gets in, how a connection's pumps end, and that the name stays ours."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from actors.mail import DoorRefused, VisitorBytes, VisitorCame, VisitorEnded, VisitorRead
from actors.probe import Probe
from runtime.inspector_pipes import descriptor_of, pipe_name
from runtime.threads import start_pump

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="named pipes are of Windows")

if sys.platform == "win32":
    import _winapi

    from runtime.inspector_pipes import is_live, known_pipes
    from runtime.local_pipe import LocalPipe, PipeWire
    from runtime.named_pipe import Event, PipeEnd, PipeRefused, PipeServer, current_user, open_client, owner_of
    from runtime.visitor_pumps import PumpedConnection

    USER = current_user()
    NAME = pipe_name(USER, os.getpid())

    def opened(name: str = NAME) -> PipeEnd:
        """The inspector's end, as soon as somebody listens."""
        until = time.monotonic() + 20
        while True:
            try:
                handle = open_client(name, USER)
            except FileNotFoundError:
                handle = None
            if handle is not None:
                return PipeEnd(handle, Event())
            assert time.monotonic() < until, "nobody listens"

    @pytest.fixture
    def way() -> Iterator[tuple[LocalPipe, Probe[Any]]]:
        """An open way in. Its pump has ended when the test has."""
        over = threading.Event()
        way = LocalPipe(lambda name, work: start_pump(name, lambda: (work(), over.set())))  # type: ignore[func-returns-value, arg-type]
        to = Probe[Any]()
        way.open(to)
        yield way, to
        way.close()
        assert over.wait(20)

    @pytest.fixture
    def pair() -> Iterator[tuple[PumpedConnection, PipeEnd]]:
        end, there = connected()
        connection = PumpedConnection(PipeWire(end), start_pump)
        end.close()
        yield connection, there
        connection.close()
        there.close()

    def connected() -> tuple[PipeEnd, PipeEnd]:
        """Both ends of a pipe."""
        name = rf"\\.\pipe\pair-{os.getpid()}-{time.monotonic_ns()}"
        here = PipeEnd(PipeServer(name, descriptor_of(USER)).instance(), Event())
        there = opened(name)
        assert here.await_client()
        return here, there

    def own_pipes() -> list[tuple[int, str]]:
        """Other programs of this user may be there too."""
        return [(pid, name) for pid, name in known_pipes() if pid == os.getpid()]

    def let_in(to: Probe[Any]) -> None:
        """Somebody comes, is let in and leaves."""
        there = opened()
        to.of(VisitorCame).connection.close()
        there.close()

    def read_all(end: PipeEnd) -> bytes:
        received = b""
        while data := end.read():
            received += data
        return received


# ---- the name ----------------------------------------------------------------------------------------------------


def test_a_program_that_listens_is_found_and_nobody_was_let_in_for_that(way: tuple[LocalPipe, Probe[Any]]) -> None:
    _, to = way
    let_in(to)
    for _ in range(20):
        assert own_pipes() == [(os.getpid(), NAME)]
    let_in(to)
    assert to.drain() == []


def test_nobody_is_found_where_nobody_listens() -> None:
    assert own_pipes() == []
    assert not is_live(NAME)
    with pytest.raises(FileNotFoundError):
        open_client(NAME, USER)


def test_once_closed_nobody_comes_and_who_is_here_stays(way: tuple[LocalPipe, Probe[Any]]) -> None:
    door, to = way
    there = opened()
    connection = to.of(VisitorCame).connection
    door.close()
    door.close()
    until = time.monotonic() + 20
    while is_live(NAME):
        assert time.monotonic() < until
    assert own_pipes() == []
    connection.send(b"still here\n", Probe[Any]())
    assert there.read() == b"still here\n"
    connection.close()
    there.close()


def test_a_name_that_somebody_has_taken_is_refused_and_not_shared() -> None:
    taken = PipeServer(NAME, descriptor_of(USER)).instance()
    try:
        to = Probe[Any]()
        LocalPipe(start_pump).open(to)
        assert to.next() == DoorRefused(f"{NAME}: another process has taken it")
    finally:
        _winapi.CloseHandle(taken)


def test_a_pipe_of_another_owner_is_not_talked_to(way: tuple[LocalPipe, Probe[Any]]) -> None:
    _, to = way
    there = opened()
    connection = to.of(VisitorCame).connection
    with pytest.raises(PipeRefused, match="made by another user"):
        open_client(NAME, "S-1-5-21-1-1-1-1001")
    read = Probe[Any]()
    to.of(VisitorCame).connection.read(read)
    assert read.next() == VisitorEnded(is_gone=True)  # it was sent nothing
    connection.close()
    there.close()


def test_the_pipe_is_its_users_from_both_ends() -> None:
    server = PipeServer(rf"\\.\pipe\owner-{os.getpid()}", descriptor_of(USER))
    handle = server.instance()
    try:
        assert owner_of(handle) == USER
    finally:
        _winapi.CloseHandle(handle)


def test_many_who_come_at_once_are_all_let_in(way: tuple[LocalPipe, Probe[Any]]) -> None:
    _, to = way
    ends: list[PipeEnd] = []
    threads = [threading.Thread(target=lambda: ends.append(opened())) for _ in range(20)]
    for thread in threads:
        thread.start()
    connections = [to.of(VisitorCame).connection for _ in threads]
    for thread in threads:
        thread.join(20)
    assert len(ends) == 20
    for connection in connections:
        connection.dismiss(b"no room\n")
    for end in ends:
        assert read_all(end) == b"no room\n"
        end.close()


def test_who_leaves_before_being_let_in_is_missed_by_nobody(way: tuple[LocalPipe, Probe[Any]]) -> None:
    _, to = way
    for _ in range(30):
        opened().close()
    there = opened()
    there.write(b"last\n")
    heard = Probe[Any]()
    while True:
        connection = to.of(VisitorCame).connection
        connection.read(heard)
        mail = heard.next()
        if isinstance(mail, VisitorBytes):
            assert mail.data == b"last\n"
            break
        connection.close()
    connection.close()
    there.close()


# ---- one connection ----------------------------------------------------------------------------------------------


def test_what_comes_is_told_and_its_end(pair: tuple[PumpedConnection, PipeEnd]) -> None:
    connection, there = pair
    to = Probe[Any]()
    connection.read(to)
    there.write(b"abc\n")
    assert to.of(VisitorBytes).data == b"abc\n"
    there.close()
    assert to.next() == VisitorEnded(is_gone=True)


def test_a_write_of_nothing_is_no_end(pair: tuple[PumpedConnection, PipeEnd]) -> None:
    connection, there = pair
    to = Probe[Any]()
    connection.read(to)
    there.offer(b"")
    there.write(b"abc\n")
    assert to.next().data == b"abc\n"


def test_what_was_written_before_the_end_is_still_read(pair: tuple[PumpedConnection, PipeEnd]) -> None:
    connection, there = pair
    there.write(b"abc\n")
    there.close()
    to = Probe[Any]()
    connection.read(to)
    assert to.of(VisitorBytes).data == b"abc\n"
    assert to.next() == VisitorEnded(is_gone=True)


def test_reading_and_writing_do_not_wait_for_each_other(pair: tuple[PumpedConnection, PipeEnd]) -> None:
    """A read is open all the while, and so is a write that nobody takes."""
    connection, there = pair
    to = Probe[Any]()
    connection.read(to)
    connection.send(b"x" * 3_000_000, to)
    for number in range(20):
        there.write(b"%d\n" % number)
        mail = to.of(VisitorBytes)
        assert mail.data == b"%d\n" % number
        assert mail.ack is not None
        mail.ack.settle()
    received = 0
    while received < 3_000_000:
        received += len(there.read())
    assert to.of(VisitorRead).size == received == 3_000_000


def test_what_is_sent_arrives_in_order_and_is_told_when_it_has_left(pair: tuple[PumpedConnection, PipeEnd]) -> None:
    connection, there = pair
    to = Probe[Any]()
    pieces = [bytes([65 + at % 26]) * 50_000 for at in range(60)]
    for piece in pieces:
        connection.send(piece, to)
    received = b""
    while len(received) < 3_000_000:
        received += there.read()
    assert received == b"".join(pieces)
    left = 0
    while left < 3_000_000:
        left += to.of(VisitorRead).size
    assert left == 3_000_000


def test_a_reader_that_is_not_acked_stops_reading(pair: tuple[PumpedConnection, PipeEnd]) -> None:
    connection, there = pair
    to = Probe[Any]()
    connection.read(to)
    piece, done = b"x" * 65536, threading.Event()

    def fill() -> None:
        for _ in range(40):  # more than the window and the pipe take
            there.write(piece)
        done.set()

    start_pump("fill", fill)
    received, acks = 0, []
    while received < 1 << 20:
        mail = to.of(VisitorBytes)
        received += len(mail.data)
        acks.append(mail.ack)
    assert not done.is_set()
    assert to.drain() == []
    while received < 40 * len(piece):
        while acks:
            acks.pop().settle()
        mail = to.of(VisitorBytes)
        received += len(mail.data)
        acks.append(mail.ack)
    assert done.wait(20)


def test_what_has_left_can_be_read_after_the_end(pair: tuple[PumpedConnection, PipeEnd]) -> None:
    connection, there = pair
    to = Probe[Any]()
    connection.read(to)
    connection.send(b"the last\n", to)
    assert to.of(VisitorRead).size == 9
    connection.close()
    assert read_all(there) == b"the last\n"


def test_who_is_dismissed_is_told_why_before_the_end(pair: tuple[PumpedConnection, PipeEnd]) -> None:
    connection, there = pair
    there.write(b"what came meanwhile is not read\n")
    connection.dismiss(b"no room\n")
    assert read_all(there) == b"no room\n"


@pytest.mark.parametrize("fill", [False, True])
def test_dismissing_one_that_is_gone_or_takes_nothing_is_no_fault(fill: bool) -> None:
    here, there = connected()
    if fill:
        filler = here.shared(Event())
        for _ in range(40):
            filler.offer(b"x" * 65536)
        filler.close()
    else:
        there.close()
    connection = PumpedConnection(PipeWire(here), start_pump)
    here.close()
    connection.dismiss(b"no room\n")
    assert b"no room" not in read_all(there)
    there.close()


def test_closing_frees_pumps_that_sit_in_a_read_or_a_write() -> None:
    here, there = connected()
    ended = [threading.Event(), threading.Event()]
    waiting = iter(ended)

    def pump(name: str, work: Any) -> None:
        over = next(waiting)
        start_pump(name, lambda: (work(), over.set()))  # type: ignore[func-returns-value, arg-type]

    connection = PumpedConnection(PipeWire(here), pump)
    here.close()
    to = Probe[Any]()
    connection.read(to)
    connection.send(b"x" * 10_000_000, to)  # more than anybody takes who does not read
    there.read()
    connection.close()
    assert all(event.wait(20) for event in ended)
    read_all(there)  # ends, since no handle of it is left
    there.close()


def test_sending_to_one_that_is_gone_is_told(pair: tuple[PumpedConnection, PipeEnd]) -> None:
    connection, there = pair
    there.close()
    to = Probe[Any]()
    connection.send(b"x", to)
    assert to.of(VisitorEnded) == VisitorEnded(is_gone=True)


def test_nothing_is_left_of_many_connections(way: tuple[LocalPipe, Probe[Any]]) -> None:
    """The system gives a new handle the lowest number that is free; the numbers are four apart."""
    _, to = way
    next_handles = []
    for _ in range(3):
        for _ in range(100):
            there = opened()
            connection = to.of(VisitorCame).connection
            connection.read(to)
            connection.send(b"x", to)
            to.of(VisitorRead)
            there.close()
            to.of(VisitorEnded)
            connection.close()
        next_handles.append(Event().handle)
    assert next_handles[2] < next_handles[1] + 4 * 50
