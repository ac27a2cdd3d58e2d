"""The actor of a task dies: the task is reaped only when nothing is left of what that actor had started."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from actors.base import Actor, Down
from actors.mail import (
    ArtifactsWritten,
    ChildOpened,
    CloseTasks,
    CommandBegun,
    CommandExited,
    CommandSwept,
    InputTyped,
    LaunchAgents,
    LaunchShell,
    ReplyEnded,
    ShellTaskPlan,
    TaskChanged,
    TaskCommand,
    TaskOrphaned,
    TaskResponse,
    TasksClosed,
    TaskSpawned,
    Tick,
    Ticket,
    ToolReturned,
    TraceGone,
)
from actors.probe import Probe
from actors.session.actor import Session
from actors.session.file import Stamps, new_session
from actors.session.queue import Queue
from actors.session.services import Services
from actors.session.surroundings import Surroundings
from actors.task.desk import TaskDesk
from actors.task.effects import Budgets, WaitPolicy
from actors.task.shell import ShellTask
from actors.task.subagent.actor import Subagent
from actors.tool.actor import ToolCall
from actors.tool.table import Tool, text_output
from protocol import commands as c
from protocol import messages
from protocol import tasks as t
from runtime.simulation.order import SeededOrder
from runtime.simulation.pumps import Once, Pump
from runtime.simulation.scheduler import Fault, Scheduler
from tests.actors.session.test_session import Models
from tests.actors.task.agents import plan

SEEDS = 500
BACKGROUND = WaitPolicy("background")
STAMPS = Stamps(lambda: 0, lambda: "s", itertools.count().__next__)  # type: ignore[arg-type]
SHELL = ShellTaskPlan("sleep", "/", "s", {}, 300)


class Work(Pump):
    """A command or a tool: it goes on until it is told to end, and takes a while for that."""

    def __init__(self, begins: Any, ends: Any) -> None:
        super().__init__()
        self._begins, self._ends = begins, ends
        self.is_asked = False
        self.is_alive = True

    def _run(self) -> Iterator[bool]:
        self._begins()
        yield True
        while not self.is_asked:
            yield False
        yield from (True for _ in range(10))
        self.is_alive = False
        self._ends()

    def stop(self) -> None:
        self.is_asked = True

    cancel = kill = abandon = stop


class World:
    """A desk with a command, and an agent whose tool runs. One of the two actors of these may die at any mail."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        others = {"desk", "session", "queue", "tool-call", *(f"tool-call-{number}" for number in range(9))}
        others.add(rng.choice(("task-s-0", "task-s-1", "")))
        fault = Fault(rng.randrange(1, 40), rng.choice(("before", "inside", "after")), frozenset(others))
        self.scheduler = Scheduler(SeededOrder(rng, rng.choice((0.0, 0.2))), fault=fault)
        self.works: dict[str, Work] = {}
        self.child: Any = None
        self.states: dict[str, t.TaskRecord] = {}
        self.closed = 0
        self.too_early = False
        desk = TaskDesk("s", Budgets(), self, Probe(), self._start_command, self._start_agent, float)
        self.desk = self._start(desk, "desk", Probe())
        self.desk.tell(LaunchShell("c", SHELL, BACKGROUND, Probe()))
        self.desk.tell(LaunchAgents("a", (plan(artifacts=False),), BACKGROUND, None, Probe()))

    def _start(self, actor: Actor[Any], name: str, owner: Any, key: Any = None) -> Any:
        return self.scheduler.start(actor, name, owner, key)

    def _add(self, what: Any) -> None:
        self.scheduler.add_pump(what if isinstance(what, Pump) else Once(what), "pump")

    # -- what runs

    def _start_command(self, ref: Any, plan: Any, desk: Any, observer: Any) -> Any:
        def start(plan: Any, task: Any) -> Work:
            def ends() -> None:
                task.tell(CommandExited(None, 9))
                task.tell(CommandSwept())

            work = self.works[ref.task_id] = Work(lambda: task.tell(CommandBegun()), ends)
            self._add(work)
            return work

        task = ShellTask(ref, plan, desk, observer, Probe(), start, lambda: (-1, ""), lambda: 0.0)
        return self._start(task, ref.task_id, desk, ref.task_id)

    def _start_agent(self, ref: Any, plan: Any, desk: Any) -> Any:
        agent = Subagent(ref, plan, desk, Probe(), self, self._start_child, lambda: 0.0)
        return self._start(agent, ref.task_id, desk, ref.task_id)

    def open(self, plan: Any, to: Any) -> None:
        opened = new_session(STAMPS, "/", None)
        self._add(lambda: to.tell(ChildOpened(opened, Surroundings(lambda *_: ""))))

    def abandon(self) -> None:
        pass

    def keep(self, *given: Any) -> None:
        self._add(lambda: given[-1].tell(ArtifactsWritten()))

    def _start_child(self, plan: Any, opened: Any, surroundings: Any, road: Any, owner: Any) -> Any:
        nobody = Probe[Any]()
        bash = Tool("bash", "", "", {}, lambda _, __: text_output(""), lambda _, __: None)

        def start_call(request: Any, session: Any) -> Any:
            call = messages.ToolCall("1", "bash", {})
            message = messages.AssistantMessage([call], "scripted", "p", "m", messages.Usage(), "toolUse", 0)
            self._add(lambda: session.tell(ReplyEnded(request.call, message)))
            return Probe()

        def start_tool(request: Any, session: Any) -> Any:
            def run(request: Any, call: Any) -> Work:
                work = self.works["task-s-1"] = Work(int, lambda: call.tell(ToolReturned(text_output(""))))
                self._add(work)
                return work

            actor = ToolCall(request, session, nobody, run)
            return self._start(actor, f"tool-call-{request.call}", session, request.call)

        services = Services(
            writer=road,
            shells=road,
            desk=road,
            preferences=nobody,
            clock=nobody,
            catalog_owner=nobody,
            start_queue=lambda session, modes: self._start(Queue(session, modes), "queue", session),
            start_model_call=start_call,
            start_task_desk=None,
            start_tool_call=start_tool,
            now=lambda: 0,
            uuid4=lambda: "uuid",
            catalog=Models(),
            tools={"bash": bash},
            check_arguments=lambda tool, arguments: None,
            surroundings=surroundings,
            load_surroundings=lambda ticket, cwd, session: None,
            export=lambda ticket, plan, session: None,
            environment=lambda *_: {},
            complain=lambda line: None,
            reread=lambda ticket, opened, session: None,
            make_answer=lambda ticket, make, session: None,
            work=lambda job, task, session: None,
            compaction_files=lambda: nobody,  # type: ignore[arg-type, return-value]
        )
        modes: Any = {"steering": "all", "followUp": "all"}
        self.child = self._start(Session(0, opened, services, modes), "session", owner, 0)
        return self.child

    # -- the session of the desk

    def tell(self, mail: Any) -> None:
        if isinstance(mail, TasksClosed):
            self.closed += 1
        if isinstance(mail, TaskChanged):
            task_id = mail.record.ref.task_id
            before = self.states.get(task_id)
            self.states[task_id] = mail.record
            if isinstance(mail.record.cleanup, t.CleanupReaped) and before != mail.record:
                self.too_early |= task_id in self.works and self.works[task_id].is_alive


def test_a_task_whose_actor_dies_is_reaped_when_all_of_it_is_gone_and_the_owner_closes() -> None:
    struck = set()
    for seed in range(SEEDS):
        world = World(seed)
        world.scheduler.run(lambda: False)
        world.desk.tell(CloseTasks())
        world.scheduler.run(lambda: False)
        assert (world.closed, world.too_early) == (1, False), seed
        assert not any(work.is_alive for work in world.works.values()), seed
        assert world.child is None or world.child.is_over or not world.scheduler.deaths, seed
        assert {type(record.cleanup) for record in world.states.values()} == {t.CleanupReaped}, seed
        struck |= {name for name, _ in world.scheduler.deaths}
    assert struck == {"task-s-0", "task-s-1"}


class Bench:
    """A desk with one agent that has begun. Its mail is handed over one by one."""

    def __init__(self) -> None:
        self.session, self.clock, self.agent = Probe[Any](), Probe[Any](), Probe[Any]()
        desk = TaskDesk("s", Budgets(), self.session, self.clock, lambda *_: Probe(), lambda *_: self.agent, float)
        desk.me = Probe()
        desk.begin()
        self.desk = desk
        self.tell(LaunchAgents("a", (plan(),), BACKGROUND, None, Probe()), TaskSpawned("task-s-0"))

    def tell(self, *mails: Any) -> list[t.Cleanup]:
        """What cleanup the session was told of since."""
        for mail in mails:
            self.desk.receive(mail)
        return [mail.record.cleanup for mail in self.session.drain() if isinstance(mail, TaskChanged)]


ORPHANED, DOWN, GONE = TaskOrphaned("task-s-0", ("a session",)), Down("task-s-0", "KeyError"), TraceGone("task-s-0")


@pytest.mark.parametrize("order", [(ORPHANED, DOWN, GONE), (ORPHANED, GONE, DOWN), (GONE, ORPHANED, DOWN)])
def test_it_is_reaped_with_the_last_of_what_has_to_be_heard(order: tuple[Any, ...]) -> None:
    bench = Bench()
    *before, last = order
    assert t.CleanupReaped() not in bench.tell(*before)
    assert bench.tell(last)[-1] == t.CleanupReaped()
    assert bench.tell(GONE, CloseTasks()) == []
    bench.session.drain()


def test_a_death_that_leaves_nothing_reaps_at_once() -> None:
    assert Bench().tell(DOWN)[-1] == t.CleanupReaped()


def test_what_stays_too_long_is_a_cleanup_that_failed_until_it_is_gone_after_all() -> None:
    bench = Bench()
    bench.tell(ORPHANED, DOWN)
    (arm,) = bench.clock.drain()
    assert (arm.key, arm.delay_ms) == ("left-task-s-0", 2000)
    assert bench.tell(Tick(arm.key)) == [t.CleanupFailed(("a session",))]
    bench.tell(CloseTasks())
    assert bench.tell(GONE) == [t.CleanupReaped()]
    assert bench.tell(Tick(arm.key)) == []


def test_what_is_typed_at_a_task_whose_actor_dies_is_answered_once() -> None:
    bench, call = Bench(), Probe[Any]()
    bench.tell(LaunchShell("c", replace(SHELL, pty=True), BACKGROUND, call), TaskSpawned("task-s-1"))
    bench.session.drain()
    ticket = Ticket(7, b"7", "send_task_input")
    bench.desk.receive(TaskCommand(ticket, c.SendTaskInput(task_id="task-s-1", input="y", operation_id="o")))
    for mail in (Down("task-s-1", "KeyError"), InputTyped(ticket, 1)):
        bench.desk.receive(mail)
    (answer,) = [mail for mail in bench.session.drain() if isinstance(mail, TaskResponse)]
    assert b"InputDeliveryUnknown: operationId=o; acceptedBytes=0" in answer.response.line
