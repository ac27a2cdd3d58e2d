"""The asyncio client: the promises of the blocking one, and that a cancelled task takes nothing from the others."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from conformance.client import (
    AgentDied,
    AsyncRpcClient,
    BashDelta,
    ClientClosed,
    CommandRefused,
    DeadlineExceeded,
    Options,
    ProtocolError,
    SpawnFailed,
    TransportError,
    UiRequest,
    event_type,
)
from tests.conformance.client.test_blocking import ASKS, DEATHS, QUICK, RUN, SETTLED, TELLS, gone

Plan = Callable[..., list[str]]


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


@on_loop
async def test_a_conversation_with_the_program(atomic: list[str]) -> None:
    async with AsyncRpcClient(atomic) as client:
        kinds = [event_type(event) async for event in client.prompt("SAY hello")]
        assert kinds[0] == "agent_start" and kinds[-1] == "agent_settled"
        run = await client.prompt("SAY again")
        assert (await run.wait()).text == "again"
        assert (await client.get_state()).message_count == 4
        assert (await client.request("get_last_assistant_text")) == {"text": "again"}
        with pytest.raises(CommandRefused, match="Entry not found"):
            await client.get_entries("nowhere")
        async with client.prompt("SAY first\nWAIT 60000", abort_on_leave=True) as run:
            with pytest.raises(CommandRefused, match="already processing"):
                await client.prompt("SAY no")
        await client.wait_idle(deadline=10)
        assert await client.close() == await client.close() == 0
    with pytest.raises(ClientClosed):
        await client.get_state()


@on_loop
async def test_shells_side_by_side_and_one_cancelled(atomic: list[str]) -> None:
    async with AsyncRpcClient(atomic) as client:
        long = client.bash("echo up; exec sleep 60")
        results = await asyncio.gather(*(client.bash(f"echo {n}").result() for n in range(20)))
        assert [result.output for result in results] == [f"{n}\n" for n in range(20)]
        assert await anext(long) == BashDelta("stdout", "up\n")
        await long.cancel()
        assert (await long).cancelled
        async with client.user_bash("echo out; exit 3") as shell:
            assert [delta.text async for delta in shell] == ["out\n"]
            assert (await shell.result()).exit_code == 3


@on_loop
async def test_a_cancelled_wait_takes_nothing_from_the_others(atomic: list[str]) -> None:
    async with AsyncRpcClient(atomic) as client:
        events = client.events()
        waiting = asyncio.create_task(events.next(deadline=None))
        shell = client.bash("echo one; sleep 0.2; echo two")
        result = asyncio.create_task(shell.result())
        call = asyncio.create_task(client.call(_slow_call()))
        await asyncio.sleep(0)
        for task in (waiting, result, call):
            task.cancel()
        assert await asyncio.gather(waiting, result, call, return_exceptions=True) != []
        assert (await shell.result()).output == "one\ntwo\n"
        deltas = [await events.next(deadline=10), await events.next(deadline=10)]
        assert [delta.delta for delta in deltas if delta] == ["one\n", "two\n"]  # type: ignore[union-attr]
        assert (await client.get_state()).session_id


def _slow_call() -> Any:
    from conformance.client.calls import bash

    return bash("sleep 0.1")


@on_loop
async def test_an_iteration_that_was_cancelled_goes_on_where_it_was(agent: Plan) -> None:
    plan = agent(prompt=["ok", *RUN], abort=[*SETTLED, "ok"])
    async with AsyncRpcClient(plan, options=Options()) as client:
        run = await client.prompt("x")
        for event in ("agent_start", "agent_end"):
            assert event_type(await anext(run)) == event
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(run)
        await client.abort()
        assert [event_type(event) async for event in run] == ["agent_settled"]


@on_loop
async def test_failures_of_the_start(agent: Plan) -> None:
    with pytest.raises(SpawnFailed):
        await AsyncRpcClient(["/no-such-agent"]).start()
    with pytest.raises(AgentDied, match=r"exit code 7\nstderr: no model"):
        await AsyncRpcClient(agent(START=[["stderr", "no model\n"], ["exit", 7]]), options=QUICK).start()
    with pytest.raises(ProtocolError, match="Welcome"):
        await AsyncRpcClient(agent(START=[["raw", "Welcome!\n"]]), options=QUICK).start()
    with pytest.raises(ClientClosed, match="not started"):
        await AsyncRpcClient(["x"]).get_state()


@pytest.mark.parametrize("death", DEATHS)
@on_loop
async def test_nothing_hangs_when_the_agent_ends(agent: Plan, death: str) -> None:
    dying = DEATHS[death]
    async with AsyncRpcClient(agent(bash=["ok"], reload=dying), options=QUICK) as client:
        events = client.events()
        waits: list[Any] = [
            client.within(None).reload(),
            client.prompt("x").wait(),
            events.next(deadline=None),
            client.wait_for("nothing", deadline=None),
        ]
        for result in await asyncio.gather(*waits, return_exceptions=True):
            assert isinstance(result, TransportError)


@on_loop
async def test_a_program_that_is_killed_fails_whatever_waits_for_it(atomic: list[str]) -> None:
    async with AsyncRpcClient(atomic) as client:
        run = await client.prompt("WAIT 60000\nSAY x")
        shell = client.bash("echo up; sleep 60")
        await anext(shell)
        waits = [run.wait(), shell.result(), client.wait_for("nothing", deadline=None)]
        tasks = [asyncio.create_task(wait) for wait in waits]  # type: ignore[arg-type]
        await asyncio.sleep(0)
        os.kill(client.pid, signal.SIGKILL)
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, AgentDied) and result.signal == "SIGKILL"


@on_loop
async def test_an_agent_that_reads_nothing_keeps_nobody(agent: Plan) -> None:
    async with AsyncRpcClient(agent(reload=[["sleep", 60]]), options=QUICK) as client:
        with pytest.raises(DeadlineExceeded):
            await client.within(0.05).reload()
        with pytest.raises(DeadlineExceeded):
            await client.request("get_state", deadline=0.2, pad="x" * 1_000_000)
        assert await client.close() == -signal.SIGTERM


@on_loop
async def test_callbacks_may_be_coroutines(agent: Plan) -> None:
    told: list[str] = []

    async def on_ui(request: UiRequest) -> dict[str, Any] | None:
        await asyncio.sleep(0)
        told.append(request.method)
        return {"value": "a"} if request.wants_answer else None

    plan = agent(prompt=["ok", ["event", TELLS], ["event", ASKS]], extension_ui_response=[*RUN, *SETTLED])
    async with AsyncRpcClient(plan, on_ui=on_ui, on_stderr=told.append, options=QUICK) as client:
        await client.prompt("x").wait()
    assert told == ["notify", "select"]


@on_loop
async def test_a_close_that_is_cancelled_kills_the_agent(agent: Plan) -> None:
    client = AsyncRpcClient(agent(EOF=[["sleep", 60]]), options=Options())
    await client.start()
    pid = client.pid
    closing = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert gone(pid)


@on_loop
async def test_an_agent_that_ignores_everything_is_killed_with_its_group(agent: Plan) -> None:
    plan = agent(START=[["ignore", signal.SIGTERM], ["spawn", {}]], EOF=[["sleep", 60]])
    async with AsyncRpcClient(plan, options=QUICK) as client:
        child = int(client.stderr or (await client.get_state() and client.stderr))
        assert await client.close() == -signal.SIGKILL
    assert gone(child)


@on_loop
async def test_no_task_is_left_behind(agent: Plan) -> None:
    for _ in range(2):
        async with AsyncRpcClient(agent(prompt=["ok", *RUN, *SETTLED]), options=Options()) as client:
            await client.prompt("x").wait()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait_for(task, 5)  # type: ignore[arg-type]
    assert len(asyncio.all_tasks()) == 1
