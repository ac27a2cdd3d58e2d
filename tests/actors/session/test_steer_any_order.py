"""A steer ends every wait for tasks that it would have to wait for, and no other, in whatever order the mail goes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from actors.base import Actor
from actors.mail import (
    AgentsPlanned,
    CommandBegun,
    CommandExited,
    Commands,
    CommandSwept,
    ReplyEnded,
    StopAgent,
    TaskReaped,
    TaskSpawned,
    Ticket,
    ToolEnded,
    Write,
)
from actors.probe import Probe
from actors.session.actor import Session
from actors.session.file import Stamps, new_session
from actors.session.queue import Queue
from actors.session.services import Services
from actors.session.surroundings import Surroundings
from actors.task.agent_view import AgentView
from actors.task.desk import TaskDesk
from actors.task.effects import Budgets
from actors.task.shell import ShellTask
from actors.tool.actor import ToolCall
from actors.tool.table import Tool, text_output
from protocol import messages
from protocol.codec import read_command
from runtime.simulation.order import SeededOrder
from runtime.simulation.pumps import Once, Pump
from runtime.simulation.scheduler import Scheduler
from tests.actors.session.test_session import Models
from tests.actors.task.agents import plan

SEEDS = 400
TASK = "task-uuid-0-0"
WAIT = ("bash", {"action": "wait", "id": TASK})
AGENT = ("subagent", {"agent": "scout", "task": "t", "wait": {"kind": "foreground"}})
PAUSED = ("pause_queued_messages", "steer", "resume_queued_messages")
SENDS = (("steer",), PAUSED, ("steer", "steer"), (*PAUSED, "steer"), ("steer", *PAUSED))


class Endless:
    """A command that runs until it is told to end."""

    def __init__(self, task: Any) -> None:
        self._task = task

    def stop(self) -> None:
        self._task.tell(CommandExited(None, 15))
        self._task.tell(CommandSwept())

    def kill(self) -> None:
        self.stop()

    def abandon(self) -> None:
        pass

    def type(self, data: bytes) -> None:
        pass

    def cancel(self) -> None:
        pass


class EndlessAgent(Actor[Any]):
    def __init__(self, task_id: str, desk: Any) -> None:
        self._task_id = task_id
        self._desk = desk

    def begin(self) -> None:
        self._desk.tell(TaskSpawned(self._task_id))

    def receive(self, mail: Any) -> None:
        assert isinstance(mail, StopAgent)
        self._desk.tell(TaskReaped(self._task_id, AgentView("", "")))


class Client(Pump):
    """Sends its commands in order, each after a while."""

    def __init__(self, session: Any, kinds: tuple[str, ...], rng: random.Random) -> None:
        super().__init__()
        self._session = session
        self._kinds = kinds
        self._rng = rng

    def _run(self) -> Iterator[bool]:
        for place, kind in enumerate(self._kinds):
            yield from (True for _ in range(self._rng.choice((0, 3, 10, 30))))
            fields = {"type": kind, "message": f"s{place - 1}"} if kind in ("prompt", "steer") else {"type": kind}
            command = read_command(json.dumps(fields).encode())
            self._session.tell(Commands(((Ticket(place + 1, b"1", kind), command),)))


class World:
    """A session whose model launches a command and then waits for tasks, turn after turn, and a client that steers."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.scheduler = Scheduler(SeededOrder(self.rng, self.rng.choice((0.0, 0.2))))
        self.requests = 0
        self.turn: list[int] = []
        self.said: list[str] = []
        stamps = Stamps(lambda: 0, lambda: "s", lambda: f"{self.rng.getrandbits(32):08x}")
        modes: Any = {"steering": self.rng.choice(("all", "one-at-a-time")), "followUp": "all"}
        session = Session(1, new_session(stamps, "/", None), self._services(), modes)
        self.session = self._start(session, "session", Probe())
        sends = self.rng.choice(SENDS)
        self.steers = [f"s{place}" for place, kind in enumerate(sends) if kind == "steer"]
        self.scheduler.add_pump(Client(self.session, ("prompt", *sends), self.rng), "client")

    def _services(self) -> Services:
        bash = Tool("bash", "", "", {}, lambda _, __: text_output(""), lambda _, __: None, owned=True)
        tools = {"bash": bash, "subagent": replace(bash, name="subagent", delegates=True)}
        nobody = Probe[Any]()
        return Services(
            writer=self,
            shells=nobody,
            desk=nobody,
            preferences=nobody,
            clock=nobody,
            catalog_owner=nobody,
            start_queue=lambda session, modes: self._start(Queue(session, modes), "queue", session),
            start_model_call=self._start_call,
            start_task_desk=self._start_desk,
            start_tool_call=self._start_tool,
            now=lambda: 0,
            uuid4=lambda: "uuid",
            catalog=Models(),
            tools=tools,
            check_arguments=lambda tool, arguments: None,
            surroundings=Surroundings(lambda model, level: ""),
            load_surroundings=lambda ticket, cwd, session: None,
            export=lambda ticket, plan, session: None,
            environment=lambda *_: {},
            complain=lambda line: None,
            reread=lambda ticket, opened, session: None,
            make_answer=lambda ticket, make, session: None,
            work=lambda job, task, session: None,
            compaction_files=lambda: nobody,  # type: ignore[arg-type, return-value]
        )

    # -- who is there

    def _start(self, actor: Any, name: str, owner: Any, key: Any = None) -> Any:
        return self.scheduler.start(actor, name, owner, key)

    def _start_desk(self, scope: str, key: str, session: Any) -> Any:
        def start_task(ref: Any, plan: Any, desk: Any, observer: Any) -> Any:
            def start(plan: Any, task: Any) -> Endless:
                self._add(lambda: task.tell(CommandBegun()))
                return Endless(task)

            task = ShellTask(ref, plan, desk, observer, Probe(), start, lambda: (-1, ""), lambda: 0.0)
            return self._start(task, ref.task_id, desk, ref.task_id)

        def start_agent(ref: Any, plan: Any, desk: Any) -> Any:
            return self._start(EndlessAgent(ref.task_id, desk), ref.task_id, desk, ref.task_id)

        desk = TaskDesk(scope, Budgets(until_settled=True), session, Probe(), start_task, start_agent, lambda: 0.0)
        return self._start(desk, key, session, key)

    def _start_tool(self, request: Any, session: Any) -> Any:
        def start_planning(request: Any, call: Any) -> Endless:
            self._add(lambda: call.tell(AgentsPlanned(f"run-{request.call}", (plan(),))))
            return Endless(call)

        self.turn.append(request.call)
        call = ToolCall(request, session, Probe(), start_planning)
        return self._start(call, f"tool-call-{request.call}", session, request.call)

    def _start_call(self, request: Any, session: Any) -> Any:
        launch = ("bash", {"command": "sleep", "wait": {"kind": "background"}})
        wanted = [launch] if not self.requests else self.rng.choices((WAIT, AGENT), k=self.rng.choice((1, 1, 2, 3)))
        self.requests += 1
        self.turn.clear()
        calls: list[Any] = [messages.ToolCall(f"{self.requests}-{n}", *call) for n, call in enumerate(wanted)]
        message = messages.AssistantMessage(calls, "scripted", "p", "m", messages.Usage(), "toolUse", 0)
        self._add(lambda: session.tell(ReplyEnded(request.call, message)))
        return Probe()

    # -- what they do

    def _add(self, work: Any) -> None:
        self.scheduler.add_pump(Once(work), "pump")

    def tell(self, mail: Write) -> None:
        """The session's Writer."""
        for record in mail.records:
            for line in record.line.splitlines():
                event = json.loads(line)
                if event["type"] == "message_start" and event["message"]["role"] == "user":
                    self.said.append(event["message"]["content"][0]["text"])

    @property
    def ended(self) -> set[int]:
        """The calls of the last turn that have ended."""
        mails = [mail for _, _, mail in self.scheduler.trace if isinstance(mail, ToolEnded)]
        return {mail.call for mail in mails} & set(self.turn)


def test_a_steer_is_said_while_the_tasks_run_on_and_what_begins_to_wait_after_it_waits() -> None:
    """Nothing of this world ends by itself, so a wait that is not let go holds the steer up for ever, and one that is
    let go too late for its steer brings one turn more."""
    for seed in range(SEEDS):
        world = World(seed)
        assert not world.scheduler.run(lambda: False), seed
        assert world.said == ["s-1", *world.steers], seed
        assert world.turn and not world.ended, seed
        assert not world.scheduler.deaths, seed
