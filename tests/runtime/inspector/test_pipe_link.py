"""The inspector's own connection over a named pipe, to the real way in of a program."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from actors.mail import Connection, VisitorBytes, VisitorCame, VisitorEnded, VisitorRead
from actors.probe import Probe
from runtime.inspector.link import Link, LinkLost, NobodyThere
from runtime.inspector.programs import known_programs
from runtime.inspector.sessions import Door, find_sessions
from runtime.inspector_pipes import descriptor_of, pipe_name
from runtime.threads import start_pump

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="named pipes are of Windows")

HELLO = {"type": "inspector_hello", "version": 1, "pid": 7, "sessionId": "0199-session", "cwd": "C:\\shop"}

if sys.platform == "win32":
    import _winapi

    from runtime.local_pipe import LocalPipe
    from runtime.named_pipe import Event, PipeEnd, PipeServer, current_user

    NAME = pipe_name(current_user(), os.getpid())

    @pytest.fixture
    def came() -> Iterator[Probe[Any]]:
        """Who has come to the open pipe of this process."""
        over, to = threading.Event(), Probe[Any]()
        way = LocalPipe(lambda name, work: start_pump(name, lambda: (work(), over.set())))  # type: ignore[func-returns-value, arg-type]
        way.open(to)
        until_open()
        yield to
        way.close()
        assert over.wait(20)

    def until_open() -> None:
        from runtime.inspector_pipes import is_live

        while not is_live(NAME):
            pass


def line(**record: Any) -> bytes:
    return json.dumps(record).encode() + b"\n"


class Visit:
    """One connection, greeted: the inspector's link and how it ended, the program's end and what that told."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.heard = Probe[Any]()

    async def begin(self, came: Probe[Any]) -> None:
        connecting = asyncio.create_task(self.link.connect(lambda _: None, self.over.set_result))
        mail = await asyncio.to_thread(came.of, VisitorCame)
        self.connection: Connection = mail.connection
        self.connection.send(line(**HELLO), self.heard)
        self.connection.read(self.heard)
        hello = await connecting
        assert (hello.pid, hello.session_id, hello.cwd) == (7, "0199-session", "C:\\shop")

    async def next(self, kind: type[Any]) -> Any:
        return await asyncio.to_thread(self.heard.of, kind)

    def say(self, **record: Any) -> None:
        self.connection.send(line(**record), self.heard)


def talk(came: Probe[Any], work: Callable[[Visit], Awaitable[None]]) -> None:
    async def run() -> None:
        visit = Visit(Link(NAME))
        await visit.begin(came)
        try:
            async with asyncio.timeout(20):
                await work(visit)
        finally:
            visit.link.close()
            visit.connection.close()

    asyncio.run(run())


def test_a_request_and_its_answer_pass_while_the_other_side_reads(came: Probe[Any]) -> None:
    async def work(visit: Visit) -> None:
        for size in (1, 500_000):
            asking = asyncio.create_task(visit.link.ask("send_task_input", input="x" * size))
            received = b""
            while not received.endswith(b"\n"):
                mail = await visit.next(VisitorBytes)
                received += mail.data
                mail.ack.settle()
            request = json.loads(received)
            assert len(request["input"]) == size
            visit.say(id=request["id"], type="response", success=True, data={"tail": "y" * size})
            assert len(json.loads(bytes((await asking).data))["tail"]) == size

    talk(came, work)


def test_the_program_that_closes_is_noticed_and_what_it_said_last_is_read(came: Probe[Any]) -> None:
    async def work(visit: Visit) -> None:
        assert (await visit.next(VisitorRead)).size == len(line(**HELLO))
        asking = asyncio.create_task(visit.link.ask("get_tasks"))
        await visit.next(VisitorBytes)
        visit.say(id="inspector-1", type="response", success=True, data={"tasks": []})
        await visit.next(VisitorRead)
        visit.connection.close()
        assert (await asking).success
        assert await visit.over == "it closed the connection"
        with pytest.raises(LinkLost):
            await visit.link.ask("get_tasks")

    talk(came, work)


def test_the_inspector_that_closes_is_gone(came: Probe[Any]) -> None:
    async def work(visit: Visit) -> None:
        visit.link.close()
        assert await visit.next(VisitorEnded) == VisitorEnded(is_gone=True)

    talk(came, work)


def test_nobody_there_and_a_pipe_that_never_greets_are_told_apart(came: Probe[Any]) -> None:
    async def connect(name: str) -> None:
        await Link(name, patience_s=0.2).connect(lambda _: None, lambda _: None)

    with pytest.raises(NobodyThere):
        asyncio.run(connect(NAME + "0"))
    with pytest.raises(LinkLost, match=r"did not answer within 0\.2 seconds"):
        asyncio.run(connect(NAME))
    came.of(VisitorCame).connection.close()


def test_a_pipe_whose_instances_are_all_taken_is_waited_for_but_not_for_ever(came: Probe[Any]) -> None:
    """Nobody makes a next instance of it."""
    name = f"{NAME}-full"
    here = PipeServer(name, descriptor_of(current_user())).instance()
    there = _winapi.CreateFile(name, _winapi.GENERIC_READ, 0, 0, _winapi.OPEN_EXISTING, 0, 0)
    try:
        with pytest.raises(LinkLost, match="did not answer within"):
            asyncio.run(Link(name, patience_s=0.2).connect(lambda _: None, lambda _: None))
    finally:
        _winapi.CloseHandle(there)
        _winapi.CloseHandle(here)


def test_a_pipe_that_another_user_made_is_not_spoken_to(came: Probe[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """To a process of somebody else this one's pipe is that of a stranger."""
    monkeypatch.setattr("runtime.inspector.programs.current_user", lambda: "S-1-5-21-1-1-1-1001")
    with pytest.raises(LinkLost, match="its pipe was made by another user"):
        asyncio.run(Link(NAME).connect(lambda _: None, lambda _: None))
    heard = Probe[Any]()
    came.of(VisitorCame).connection.read(heard)
    assert heard.next() == VisitorEnded(is_gone=True)


def test_the_programs_that_listen_are_found_and_keep_their_links(
    came: Probe[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs of this user may be there too, and are left alone."""
    own = [(pid, name) for pid, name in known_programs() if pid == os.getpid()]
    monkeypatch.setattr("runtime.inspector.sessions.known_programs", lambda: own)

    async def run() -> None:
        finding = asyncio.create_task(find_sessions(keep=True))
        mail = await asyncio.to_thread(came.of, VisitorCame)
        mail.connection.send(line(**HELLO), Probe[Any]())
        found = await finding
        assert found.silent == []
        (live,) = found.lives
        assert live.door == Door(os.getpid(), NAME)
        assert live.link is not None
        live.link.close()
        mail.connection.close()

    asyncio.run(run())


def test_what_a_server_says_to_one_that_it_lets_in_no_more_is_heard(came: Probe[Any]) -> None:
    async def run() -> None:
        connecting = asyncio.create_task(Link(NAME).connect(lambda _: None, lambda _: None))
        mail = await asyncio.to_thread(came.of, VisitorCame)
        mail.connection.dismiss(line(type="inspector_refused", error="no room"))
        with pytest.raises(LinkLost, match="no room"):
            await connecting

    asyncio.run(run())


def test_a_handle_can_be_closed_twice(came: Probe[Any]) -> None:
    end = PipeEnd(PipeServer(f"{NAME}-twice", descriptor_of(current_user())).instance(), Event())
    end.close()
    end.close()
