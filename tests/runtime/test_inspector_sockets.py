"""Where sockets lie, which of them live, and how a connection's pumps end."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.mail import DoorRefused, VisitorBytes, VisitorCame, VisitorEnded, VisitorRead
from actors.probe import Probe
from runtime import inspector_sockets
from runtime.inspector_sockets import PATH_BYTES, NoPlace, is_live, known_sockets, place_for, sweep
from runtime.local_socket import LocalSocket, SocketWire
from runtime.threads import start_pump
from runtime.visitor_pumps import PumpedConnection

UID = os.getuid()


@pytest.fixture
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary directory, and the one that stands in for /tmp."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="s") as folder:
        root, short = Path(folder) / "t", Path(folder) / "s"
        root.mkdir()
        short.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(root))
        monkeypatch.setattr(inspector_sockets, "SHORT_ROOT", str(short))
        yield root


def live_sockets() -> list[tuple[int, str]]:
    return [found for found in known_sockets() if is_live(found[1])]


def listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


def test_nothing_is_found_where_nothing_ever_was(temp: Path) -> None:
    assert live_sockets() == []


def test_only_sockets_at_which_somebody_listens_are_found(temp: Path) -> None:
    folder = Path(place_for(1, UID)[0])
    dead = listening(folder / "t22.sock")
    dead.close()
    (folder / "t33.sock").write_text("no socket")
    with listening(folder / "t11.sock"), listening(folder / "n44.sock"), listening(folder / "t5x.sock"):
        assert live_sockets() == [(11, str(folder / "t11.sock"))]


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_not_believed(temp: Path, mode: int) -> None:
    folder = temp / f"atomic-{UID}"
    folder.mkdir()
    folder.chmod(mode)
    with listening(folder / "t11.sock"):
        assert live_sockets() == []
        folder.chmod(0o700)
        assert live_sockets() == [(11, str(folder / "t11.sock"))]


def test_a_link_in_place_of_the_folder_is_not_followed(temp: Path) -> None:
    elsewhere = temp / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (temp / f"atomic-{UID}").symlink_to(elsewhere)
    with listening(elsewhere / "t11.sock"):
        assert live_sockets() == []
        with pytest.raises(NoPlace, match=f"^{temp}/atomic-{UID} is a link"):
            place_for(1, UID)
    (temp / f"atomic-{UID}").unlink()
    (temp / f"atomic-{UID}").write_text("")
    with pytest.raises(OSError, match=f"{temp}/atomic-{UID}"):
        place_for(1, UID)


@pytest.mark.parametrize("over", [0, 1])
def test_the_longest_path_is_used_and_one_byte_more_leads_to_the_short_root(
    temp: Path, monkeypatch: pytest.MonkeyPatch, over: int
) -> None:
    rest = len(f"/atomic-{UID}/t{7}.sock")
    root = temp / ("d" * (PATH_BYTES - rest - len(str(temp)) - 1 + over))
    root.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    folder, path = place_for(7, UID)
    assert Path(folder).parent == (Path(inspector_sockets.SHORT_ROOT) if over else root)
    with listening(Path(path)):
        assert live_sockets() == [(7, path)]


def test_without_a_root_that_is_short_enough_there_is_no_place(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = temp / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    monkeypatch.setattr(inspector_sockets, "SHORT_ROOT", str(deep / "e"))
    with pytest.raises(NoPlace, match="too long for a socket"):
        place_for(7, UID)
    to = Probe[Any]()
    LocalSocket(start_pump).open(to)
    assert "too long for a socket" in to.of(DoorRefused).error


def test_the_sweep_takes_what_is_left_over_and_nothing_else(temp: Path) -> None:
    folder = Path(place_for(1, UID)[0])
    for name in ("t1.sock", "n2.sock", "n3.sock", "x4.sock"):
        listening(folder / name).close()
    (folder / "session").mkdir()
    (folder / "note.txt").write_text("")
    os.utime(folder / "n2.sock", (0, 0))
    with listening(folder / "t5.sock"):
        sweep(str(folder), time.time())
        assert sorted(path.name for path in folder.iterdir()) == [
            "n3.sock",
            "note.txt",
            "session",
            "t5.sock",
            "x4.sock",
        ]


def test_a_socket_of_the_same_pid_is_taken_over_and_removed_at_the_end(temp: Path) -> None:
    folder, path = place_for(os.getpid(), UID)
    listening(Path(path)).close()
    (Path(folder) / f"n{os.getpid()}.sock").write_text("left over")
    to = Probe[Any]()
    way = LocalSocket(start_pump)
    way.open(to)
    client = connect(path)
    came = to.next()
    assert isinstance(came, VisitorCame)
    assert [found for found, _ in live_sockets()] == [os.getpid()]
    client.close()
    came.connection.close()
    way.close()
    way.close()
    assert os.listdir(folder) == []


def connect(path: str) -> socket.socket:
    """As soon as somebody listens."""
    until = time.monotonic() + 10
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(10)
        try:
            client.connect(path)
        except OSError:
            client.close()
            assert time.monotonic() < until, "nobody listens"
            continue
        return client


# ---- one connection ----------------------------------------------------------------------------------------------


@pytest.fixture
def pair() -> Iterator[tuple[PumpedConnection, socket.socket]]:
    here, there = socket.socketpair(socket.AF_UNIX)
    there.settimeout(10)
    connection = PumpedConnection(SocketWire(here), start_pump)
    yield connection, there
    connection.close()
    there.close()


def test_what_comes_is_told_and_its_end(pair: tuple[PumpedConnection, socket.socket]) -> None:
    connection, there = pair
    to = Probe[Any]()
    connection.read(to)
    there.sendall(b"abc\n")
    assert to.of(VisitorBytes).data == b"abc\n"
    there.shutdown(socket.SHUT_WR)
    assert to.next() == VisitorEnded(is_gone=False)


def test_whoever_has_closed_is_gone(pair: tuple[PumpedConnection, socket.socket]) -> None:
    connection, there = pair
    to = Probe[Any]()
    connection.read(to)
    there.close()
    assert to.next() == VisitorEnded(is_gone=True)


def test_what_is_sent_arrives_in_order_and_is_told_when_it_has_left(
    pair: tuple[PumpedConnection, socket.socket],
) -> None:
    connection, there = pair
    to = Probe[Any]()
    pieces = [bytes([65 + at % 26]) * 50_000 for at in range(60)]
    for piece in pieces:
        connection.send(piece, to)
    received = b""
    while len(received) < 3_000_000:
        received += there.recv(1 << 16)
    assert received == b"".join(pieces)
    left = 0
    while left < 3_000_000:
        left += to.of(VisitorRead).size
    assert left == 3_000_000


def test_who_is_dismissed_is_told_why_before_the_end(pair: tuple[PumpedConnection, socket.socket]) -> None:
    connection, there = pair
    there.sendall(b"what came meanwhile is not read\n")
    connection.dismiss(b"no room\n")
    assert there.recv(100) == b"no room\n"
    with contextlib.suppress(ConnectionResetError):
        assert there.recv(100) == b""


def test_dismissing_one_that_is_gone_or_takes_nothing_is_no_fault() -> None:
    for fill in (False, True):
        here, there = socket.socketpair(socket.AF_UNIX)
        if fill:
            here.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    here.send(b"x" * 65536)
        else:
            there.close()
        PumpedConnection(SocketWire(here), start_pump).dismiss(b"no room\n")
        there.close()


def test_closing_frees_pumps_that_sit_in_a_read_or_a_write() -> None:
    here, there = socket.socketpair(socket.AF_UNIX)
    ended = [threading.Event(), threading.Event()]
    waiting = iter(ended)

    def pump(name: str, work: Any) -> None:
        over = next(waiting)
        start_pump(name, lambda: (work(), over.set()))

    connection = PumpedConnection(SocketWire(here), pump)
    to = Probe[Any]()
    connection.read(to)
    connection.send(b"x" * 10_000_000, to)  # more than anybody takes who does not read
    there.recv(1)
    connection.close()
    assert all(event.wait(10) for event in ended)
    there.close()


def test_sending_to_one_that_is_gone_is_told(pair: tuple[PumpedConnection, socket.socket]) -> None:
    connection, there = pair
    there.close()
    to = Probe[Any]()
    connection.send(b"x", to)
    assert to.of(VisitorEnded) == VisitorEnded(is_gone=True)
