"""The connection: a greeting, one answer for each request, and an end that everybody hears of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.inspector.link import Link, LinkLost, Refused
from runtime.inspector.records import BadRecord, Response, TaskList, TaskUpdate, read_data, read_record
from tests.runtime.inspector.scripted_door import ScriptedDoor, task

Work = Callable[[Link, list[Any], "asyncio.Future[str]"], Awaitable[None]]


def talk(door: ScriptedDoor, work: Work) -> None:
    """Runs `work` with a link, what it heard, and the reason of its end."""

    async def run() -> None:
        heard: list[Any] = []
        end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        link = Link(str(door.path))
        await link.connect(heard.append, end.set_result)
        try:
            async with asyncio.timeout(20):
                await work(link, heard, end)
        finally:
            link.close()

    asyncio.run(run())


def test_the_greeting_tells_of_the_session_and_each_request_has_its_answer(door: ScriptedDoor) -> None:
    door.tasks["t1"] = task("t1")

    async def work(link: Link, heard: list[Any], _: Any) -> None:
        assert link.hello and (link.hello.session_id, link.hello.thinking_level) == ("0199-session", "medium")
        answers = await asyncio.gather(*(link.ask("get_tasks") for _ in range(20)))
        assert {read_data(answer, TaskList).tasks[0].title for answer in answers} == {"job t1"}
        with pytest.raises(Refused, match="UnknownTask: UnknownTask"):
            await link.ask("get_task", taskId="t9")
        assert heard == []

    talk(door, work)
    assert len({request["id"] for request in door.asked}) == 21


def test_what_changes_behind_an_answer_is_heard_behind_it(door: ScriptedDoor) -> None:
    door.tasks["t1"] = task("t1")

    def answer(request: dict[str, Any]) -> dict[str, Any] | None:
        """The update leaves in the same write as the answer before it."""
        door.answer = lambda _: None
        told = {"id": request["id"], "type": "response", "success": True, "data": {"tasks": []}}
        update = {"type": "task_update", "task": task("t1", title="changed")}
        door.say(json.dumps(told).encode() + b"\n" + json.dumps(update).encode() + b"\n")
        return {"success": True}

    door.answer = answer

    async def work(link: Link, heard: list[Any], _: Any) -> None:
        await link.ask("get_tasks", heard.append)
        while len(heard) < 2:
            await asyncio.sleep(0)
        assert [type(each) for each in heard] == [Response, TaskUpdate]

    talk(door, work)


def test_the_end_of_the_connection_ends_every_open_request_and_is_told_once(door: ScriptedDoor) -> None:
    def hang_up(_: dict[str, Any]) -> None:
        door.hang_up()

    door.answer = hang_up

    async def work(link: Link, _: Any, end: asyncio.Future[str]) -> None:
        results = await asyncio.gather(link.ask("get_tasks"), link.ask("get_tasks"), return_exceptions=True)
        assert [type(each) for each in results] == [LinkLost, LinkLost]
        assert await end
        with pytest.raises(LinkLost):
            await link.ask("get_tasks")

    talk(door, work)


def test_what_is_not_known_is_passed_over_and_what_is_no_record_ends_the_connection(door: ScriptedDoor) -> None:
    async def work(link: Link, heard: list[Any], end: asyncio.Future[str]) -> None:
        door.say({"type": "something_new", "task": 5})
        door.put(task("t1", title="lone \ud83d surrogate", somethingNew=[1]))
        while not heard:
            await asyncio.sleep(0)
        assert heard[0].task.title == "lone \ud83d surrogate"
        door.say(b'{"type":"task_update","task":5}\n')
        assert "makes no sense" in await end

    talk(door, work)


def test_a_long_record_in_many_pieces_is_one_record(door: ScriptedDoor) -> None:
    async def work(link: Link, heard: list[Any], _: Any) -> None:
        line = json.dumps({"type": "task_update", "task": task("t1", title="x" * 300_000)}).encode() + b"\n"
        for start in range(0, len(line), 70_001):
            await asyncio.to_thread(door.say, line[start : start + 70_001])
        while not heard:
            await asyncio.sleep(0)
        assert len(heard[0].task.title) == 300_000

    talk(door, work)


@pytest.mark.parametrize(
    ("greeting", "told"),
    [
        (b'{"type":"response","success":true}\n', "did not greet"),
        (b"hello\n", "makes no sense"),
        (b'{"type":"inspector_refused","error":"no room"}\n', "no room"),
        (b'{"type":"inspector_hello","version":2,"pid":1,"sessionId":"s","cwd":"/"}\n', "version 2"),
    ],
)
def test_who_does_not_greet_is_not_talked_to(private: Path, greeting: bytes, told: str) -> None:
    with ScriptedDoor(private) as door:
        door.greeting = greeting
        with pytest.raises(LinkLost, match=told):
            talk(door, lambda *_: asyncio.sleep(0))


def test_a_door_that_is_shut_and_one_that_says_nothing_are_told_apart(private: Path) -> None:
    async def connect(door: ScriptedDoor) -> None:
        await Link(str(door.path), patience_s=0.05).connect(lambda _: None, lambda _: None)

    with ScriptedDoor(private) as door:
        door.greeting = b""
        with pytest.raises(LinkLost, match=r"did not answer within 0\.05 seconds"):
            asyncio.run(connect(door))
    with pytest.raises(LinkLost, match="No such file"):
        asyncio.run(connect(door))


@pytest.mark.parametrize("line", [b"", b"5", b"null", b"[]", b"{}", b'{"type":5}', b"{", b"\xff", b"[" * 5000])
def test_no_line_brings_the_reader_down(line: bytes) -> None:
    with pytest.raises(BadRecord):
        read_record(line)


@pytest.mark.parametrize("data", [b"null", b"{}", b'{"tasks":5}', b'{"tasks":[{}]}', b'{"tasks":[null]}'])
def test_data_that_is_not_what_was_asked_for_is_told(data: bytes) -> None:
    response = read_record(b'{"type":"response","command":"get_tasks","success":true,"data":' + data + b"}")
    assert isinstance(response, Response)
    with pytest.raises(BadRecord, match="the answer to get_tasks"):
        read_data(response, TaskList)


def test_a_fault_of_the_listener_ends_the_connection_aloud(door: ScriptedDoor) -> None:
    async def run() -> str:
        end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def hear(_: Any) -> None:
            raise ZeroDivisionError

        link = Link(str(door.path))
        await link.connect(hear, end.set_result)
        await link.ask("get_tasks")
        door.put(task("t1"))
        async with asyncio.timeout(20):
            return await end

    assert "the inspector failed: ZeroDivisionError" in asyncio.run(run())
