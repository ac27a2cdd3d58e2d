"""Bounded load on one live agent: workers that ask at random, from a seed, and check whatever they can.

Owns the tasks and what each of them may do. What is checked: each request is answered, once, under its id (the client's
core does that); output of a shell request is what its deltas said, and its own; each prompt ends; events nest; the
agent ends when its stdin does, leaves no process, and keeps its memory.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET

from conformance.client import AsyncRpcClient, ClientError, CommandRefused, Options, TransportError, event_type
from conformance.driver import MARK, process_table
from conformance.tally import Tally, Watch

_SAMPLE = 0.1  # seconds between two looks at the memory


class Load(NamedTuple):
    """`seconds` until no more is asked, `workers` that each ask one thing after another, `patience` in seconds for any
    answer, `memory_mib` that the agent may have at most."""

    seed: int = 1
    seconds: float = 15.0
    workers: int = 8
    patience: float = 30.0
    memory_mib: float = 512.0


def stress(command: Sequence[str], cwd: Path, env: Mapping[str, str], load: Load) -> Tally:
    """Run the load. Raises `ClientError` when the agent does not even start."""
    return asyncio.run(_Stress(load).run(command, cwd, env))


class _Stress:
    def __init__(self, load: Load) -> None:
        self._load, self.tally = load, Tally()
        self._mark = f"stress-{uuid.uuid4().hex}"
        self._sessions: list[str] = []
        self._deltas_came = False
        self._without_deltas: list[str] = []

    async def run(self, command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Tally:
        load, tally = self._load, self.tally
        options = Options(quick_deadline=load.patience, slow_deadline=load.patience, eof_grace=load.patience)
        client = AsyncRpcClient(command, cwd=cwd, env={**env, MARK: self._mark}, options=options)
        await client.start()
        watching = [
            asyncio.create_task(self._watch_events(client)),
            asyncio.create_task(self._watch_memory(client.pid)),
        ]
        began = time.monotonic()
        try:
            await self._work(client, began + load.seconds)
            tally.seconds = time.monotonic() - began
        finally:
            await self._end(client)
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
        self._judge_deltas()
        self._look_for_processes()
        return tally

    async def _work(self, client: AsyncRpcClient, until: float) -> None:
        """All workers; the first to find the agent gone ends the others."""
        workers = [_Worker(client, self, number, until).work() for number in range(self._load.workers)]
        tasks = [asyncio.create_task(worker) for worker in workers]
        try:
            await asyncio.gather(*tasks)
            await self._quieten(client)
        except TransportError as error:
            self.tally.violated(f"the connection is over: {error}")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _quieten(self, client: AsyncRpcClient) -> None:
        try:
            try:
                await client.resume_queued_messages()
            except CommandRefused as error:
                self.tally.wrongly_refused(error.command, error.message)
            await client.clear_queue()
            await client.abort()
            await client.wait_idle(deadline=self._load.patience)
        except TransportError:
            raise
        except ClientError as error:
            self.tally.violated(f"when all work was done: {error}")

    async def _end(self, client: AsyncRpcClient) -> None:
        tally = self.tally
        tally.violations += client.oddities
        try:
            tally.exit_code = await client.close()
        except ClientError as error:
            tally.violated(str(error))
        if tally.exit_code != 0:
            tally.violated(f"exit code {tally.exit_code} after stdin was closed")

    # ---- watching ----------------------------------------------------------------------------------------------

    async def _watch_events(self, client: AsyncRpcClient) -> None:
        watch = Watch()
        with suppress(TransportError):
            async for event in client.events():
                self.tally.events += 1
                if (problem := watch.broken(event_type(event))) is not None:
                    self.tally.violated(problem)

    async def _watch_memory(self, pid: int) -> None:
        """The most that the process ever had, as long as it can be read."""
        status = Path(f"/proc/{pid}/status")
        while (found := _high_water(status)) is not None:
            self.tally.peak_mib = found
            await asyncio.sleep(_SAMPLE)

    def _look_for_processes(self) -> None:
        tally = self.tally
        if tally.peak_mib is not None and tally.peak_mib > self._load.memory_mib:
            tally.violated(f"{tally.peak_mib:.0f} MiB of memory, {self._load.memory_mib:.0f} are allowed")
        with suppress(NotImplementedError):
            alive = [each for each in process_table() if each.mark == self._mark and each.pid != os.getpid()]
            tally.left_behind = [each.command for each in alive]
            for process in alive:
                tally.violated(f"a process was left behind: {process.command}")
                with suppress(OSError):
                    os.kill(process.pid, signal.SIGKILL)

    # ---- deltas of shell requests --------------------------------------------------------------------------------

    def compare_deltas(self, word: str, joined: str, expected: str) -> None:
        """An agent that never sends any lacks a feature; one that sends some has to send all."""
        self._deltas_came = self._deltas_came or bool(joined)
        if joined == expected:
            return
        what = f"bash {word}: {len(joined)} characters of output in its deltas, {len(expected)} are due"
        if joined:
            self.tally.violated(what)
        else:
            self._without_deltas.append(what)

    def _judge_deltas(self) -> None:
        if self._deltas_came:
            self.tally.violations += self._without_deltas
        elif self._without_deltas:
            self.tally.missing.append("bash_execution_update")

    # ---- sessions ----------------------------------------------------------------------------------------------

    def know_session(self, path: str) -> None:
        if path not in self._sessions:
            self._sessions = [*self._sessions[-19:], path]

    def some_session(self, generator: random.Random) -> str | None:
        return generator.choice(self._sessions) if self._sessions else None


def _high_water(status: Path) -> float | None:
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.M)
    except OSError:
        return None
    return int(found[1]) / 1024 if found else None


Action = Callable[["_Worker"], Awaitable[None]]


class _Worker:
    """Asks one thing after another. A generator of its own, so that what one asks does not depend on the others."""

    def __init__(self, client: AsyncRpcClient, stress: _Stress, number: int, until: float) -> None:
        self._client, self._stress, self._until = client, stress, until
        self._tally, self._number = stress.tally, number
        self._random = random.Random(f"{stress._load.seed} {number}")
        self._count = 0

    async def work(self) -> None:
        while time.monotonic() < self._until:
            self._count += 1
            (action,) = self._random.choices(list(_ACTIONS), list(_ACTIONS.values()))
            try:
                await action(self)
            except TransportError as error:
                if self._client.failure is not None:
                    raise
                self._tally.violated(f"{action.__name__}: {error}")
            except CommandRefused as error:
                self._tally.refused(error.command, error.message)
            except ClientError as error:
                self._tally.violated(f"{action.__name__}: {error}")

    async def _timed(self, what: str, work: Awaitable[Any]) -> Any:
        began = time.monotonic()
        try:
            return await work
        finally:
            self._tally.took(what, time.monotonic() - began)

    async def _must(self, what: str, work: Awaitable[Any]) -> Any:
        """What no good agent refuses, if it knows the command at all."""
        try:
            return await self._timed(what, work)
        except CommandRefused as error:
            self._tally.wrongly_refused(error.command, error.message)

    # ---- what there is to ask ----------------------------------------------------------------------------------

    async def query(self) -> None:
        client = self._client
        name = self._random.choice(["get_state", "get_messages", "get_session_stats", "get_entries", "get_tree"])
        answer = await self._must(name, getattr(client, name)())
        if name == "get_state" and answer is not None and answer.session_file is not UNSET:
            self._stress.know_session(answer.session_file)

    async def settings(self) -> None:
        client, name = self._client, self._random.choice(["set_steering_mode", "set_follow_up_mode"])
        await self._must(name, getattr(client, name)(self._random.choice(["all", "one-at-a-time"])))

    async def nonsense(self) -> None:
        try:
            await self._client.request("no_such_command", x=self._count)
        except CommandRefused as error:
            self._tally.refused(error.command, error.message)
        else:
            self._tally.violated("an unknown command was not refused")

    async def shell(self) -> None:
        """Output that only this request makes, cut into pieces by time."""
        word, lines = f"w{self._number}n{self._count}", self._random.randint(1, 40)
        code = self._random.randint(0, 3)
        script = f"i=0; while [ $i -lt {lines} ]; do echo {word}.$i; i=$((i+1)); done; exit {code}"
        run = self._client.bash(script, deadline=self._stress._load.patience)
        began = time.monotonic()
        joined = "".join([delta.text async for delta in run])
        result = await run.result()
        self._tally.took("bash", time.monotonic() - began)
        expected = "".join(f"{word}.{line}\n" for line in range(lines))
        if result.cancelled:
            return
        if (result.output, result.exit_code) != (expected, code):
            self._tally.violated(f"bash {word}: {len(result.output)} characters of output, {len(expected)} are due")
        self._stress.compare_deltas(word, joined, expected)

    async def cancelled_shell(self) -> None:
        run = self._client.bash("exec sleep 300", deadline=self._stress._load.patience)
        if self._random.random() < 0.5:
            await self._client.get_state()  # else the cancel comes with its target
        await self._timed("abort_bash", run.cancel())
        if not (await run.result()).cancelled:
            self._tally.violated("a shell request that was cancelled does not say so")

    async def prompt(self) -> None:
        text = self._random.choice(
            [
                "SAY " + "word " * self._random.randint(1, 40),
                'TOOL bash {"command": "echo from a tool"}\nSAY done',
                "SLOW 10 5",
                "ERR 529 x1\nSAY after a retry",
            ]
        )
        behavior: Any = self._random.choice([None, "steer", "followUp"])
        began = time.monotonic()
        run = await self._client.prompt(text, streaming_behavior=behavior, deadline=2 * self._stress._load.patience)
        self._tally.took("prompt (accepted)", time.monotonic() - began)
        await run.wait()
        self._tally.took("prompt (settled)", time.monotonic() - began)

    async def queue(self) -> None:
        client, name = self._client, self._random.choice(["steer", "follow_up", "clear_queue"])
        await self._timed(name, client.clear_queue() if name == "clear_queue" else getattr(client, name)("SAY queued"))

    async def pause(self) -> None:
        await self._must("pause_queued_messages", self._client.pause_queued_messages())
        await self._must("resume_queued_messages", self._client.resume_queued_messages())

    async def abort(self) -> None:
        await self._must("abort", self._client.abort())

    async def replace(self) -> None:
        client, path = self._client, self._stress.some_session(self._random)
        kind = self._random.choice(["new_session", "clone", "fork", "switch_session"])
        if kind == "fork":
            messages = (await client.get_fork_messages()).messages
            if messages:
                await self._timed(kind, client.fork(self._random.choice(messages).entry_id))
        elif kind == "switch_session":
            if path is not None:
                await self._timed(kind, client.switch_session(path))
        else:
            await self._timed(kind, client.clone() if kind == "clone" else client.new_session())


_ACTIONS: dict[Action, int] = {
    _Worker.query: 30,
    _Worker.shell: 25,
    _Worker.prompt: 15,
    _Worker.queue: 10,
    _Worker.settings: 5,
    _Worker.cancelled_shell: 5,
    _Worker.abort: 4,
    _Worker.replace: 3,
    _Worker.nonsense: 2,
    _Worker.pause: 1,
}
