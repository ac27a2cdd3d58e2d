"""Questions of subagents in any order of the mail: the real desk, subagents and calls under the seeded scheduler.

Children ask, report and end; their parent's model and a client answer, tell and stop them; now and then a child's
session dies, and in the end the owner closes. Whatever comes first: each call ends once, each question is answered once
at most and with what was accepted, and what a child said is told before its end.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from actors.base import Actor
from actors.mail import (
    AgentMessaged,
    ArtifactsWritten,
    CancelTool,
    ChildOpened,
    CloseTasks,
    Commands,
    LaunchAgents,
    Record,
    Retire,
    SessionGone,
    TaskChanged,
    TaskCommand,
    TaskResponse,
    TasksClosed,
    Ticket,
    ToolEnded,
    ToolPlace,
    ToolRequest,
    Write,
)
from actors.session.file import Stamps, new_session
from actors.session.surroundings import Surroundings
from actors.task.child_message import ChildMessage
from actors.task.desk import TaskDesk
from actors.task.effects import Budgets, WaitPolicy
from actors.task.subagent.actor import Subagent
from actors.tool.actor import ToolCall
from actors.tool.contact_call import contact_tool
from actors.tool.table import Tool, builtin_tools
from protocol import commands as c
from protocol import messages
from runtime.simulation.order import SeededOrder
from runtime.simulation.pumps import Once
from runtime.simulation.scheduler import Scheduler
from tests.actors.task.agents import agent, plan

SEEDS = 800
STAMPS = Stamps(lambda: 1, lambda: "01890000-0000-7000-8000-000000000000", lambda: "u")
CONTACT, INTERCOM = contact_tool(), builtin_tools()["intercom"]
DONE = {"role": "assistant", "content": [{"type": "text", "text": "did it"}], "stopReason": "stop", "usage": {}}
REASONS = ("need_decision", "need_decision", "interview_request", "progress_update")


class Deaf(Actor[Any]):
    """Whom nobody needs here."""

    def receive(self, mail: Any) -> None:
        pass


class ChildSession(Actor[Any]):
    """A child's run: some calls, one or two at a time, then it is over. It ends as sessions do."""

    def __init__(self, play: Play, road: Any, supervisor: Any) -> None:
        self.play, self.road, self.supervisor = play, road, supervisor
        self.calls: dict[int, Any] = {}
        self.left = play.rng.randrange(4)
        self.is_retiring = False

    def receive(self, mail: Any) -> None:
        match mail:
            case Commands(((ticket, _),)) if ticket.command == "prompt":
                self._go_on()
            case Retire():
                self.is_retiring = True
                for call in self.calls.values():
                    call.tell(CancelTool())
            case ToolEnded(number, output):
                self.play.heard(number, output)
                del self.calls[number]
                if self.play.rng.random() < 0.2:
                    raise RuntimeError("injected")
                if not self.calls and not self.is_retiring:
                    self._go_on()
        if self.is_retiring and not self.calls:
            self.road.tell(SessionGone(0, 1))

    def _go_on(self) -> None:
        if self.left == 0:
            lines = [{"type": "message_end", "message": DONE}, {"type": "agent_settled"}]
            encoded = [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines]
            self.road.tell(Write(tuple(Record(line) for line in encoded)))
            return
        self.left -= 1
        for _ in range(self.play.rng.choice((1, 1, 2))):
            reason = self.play.rng.choice(REASONS)
            asked: dict[str, Any] = {"reason": reason, "message": "?"}
            if reason == "interview_request":
                asked["questions"] = [{"type": "text", "question": "?"}]
            number = self.play.number()
            self.calls[number] = self.play.call(CONTACT, asked, number, self.me, supervisor=self.supervisor)


class Parent(Actor[Any]):
    """The session of the desk: what it is told, in its order."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.said: dict[str, ChildMessage] = {}
        self.over: set[str] = set()
        self.answers: Counter[int] = Counter()
        self.is_closed = False

    def receive(self, mail: Any) -> None:
        match mail:
            case AgentMessaged(message):
                assert message.message_id not in self.said and message.task_id not in self.over
                self.said[message.message_id] = message
                self.play.react()
            case TaskChanged(record, notice) if notice is not None:
                assert record.ref.task_id not in self.over
                self.over.add(record.ref.task_id)
            case ToolEnded(number, output):
                self.answers[number] += 1
                if not output.is_error and number in self.play.replies:
                    self.play.accepted(json.loads(output.content[0].text)["requestId"], number)
            case TaskResponse(response):
                self.answers[response.serial] += 1
                if json.loads(response.line)["success"] and response.serial in self.play.replies:
                    self.play.accepted(self.play.asked_for[response.serial], response.serial)
            case TasksClosed():
                self.is_closed = True


class Play:
    """One course."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.scheduler = Scheduler(SeededOrder(random.Random(f"{seed} order"), self.rng.choice((0.0, 0.2))))
        self.numbers = 0
        self.replies: dict[int, str] = {}
        self.asked_for: dict[int, str] = {}
        self.taken: dict[str, int] = {}
        self.results: dict[int, Any] = {}
        self.contacts: set[int] = set()
        start = self.scheduler.start
        nobody: Any = start(Deaf(), "nobody", start(Deaf(), "root", None))  # type: ignore[arg-type]
        self.nobody = nobody
        self.parent = Parent(self)
        self.session = start(self.parent, "session", nobody)
        desk = TaskDesk("1", Budgets(), self.session, nobody, self._no_command, self._start_agent, lambda: 0.0)
        self.desk = start(desk, "tasks-1", nobody)
        self.react()
        plans = tuple(plan(agent=agent(name), artifacts=False) for name in ("scout", "worker", "scout"))
        self.desk.tell(LaunchAgents("op", plans, WaitPolicy("background"), None, nobody))

    def run(self) -> None:
        self.scheduler.run(lambda: False)
        self.desk.tell(CloseTasks())
        self.scheduler.run(lambda: False)

    def react(self) -> None:
        """To what a child has said, or without any reason."""
        for _ in range(self.rng.choice((0, 1, 2, 3))):
            does = self.rng.choice((self.reply, self.reply, self.type, self.type, self.kill, self.tell))
            self.scheduler.add_pump(Once(does), "do")

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    # -- what is started

    def _no_command(self, *_: Any) -> Any:
        raise AssertionError

    def _start_agent(self, ref: Any, its_plan: Any, desk: Any) -> Any:
        subagent = Subagent(ref, its_plan, desk, self.nobody, self, self._start_child, lambda: 0.0)
        return self.scheduler.start(subagent, ref.task_id, desk, ref.task_id)

    def _start_child(self, its_plan: Any, opened: Any, surroundings: Any, road: Any, subagent: Any) -> Any:
        return self.scheduler.start(ChildSession(self, road, subagent), "subagent-session", subagent, 0)

    def open(self, its_plan: Any, to: Any) -> None:
        opened = ChildOpened(new_session(STAMPS, "/project", None), Surroundings(lambda *_: ""))
        self.scheduler.add_pump(Once(lambda: to.tell(opened)), "child-pump")

    def abandon(self) -> None:
        pass

    def keep(self, its_plan: Any, text: str, facts: Any, checkout: Any, to: Any) -> None:
        self.scheduler.add_pump(Once(lambda: to.tell(ArtifactsWritten())), "child-pump")

    def call(self, tool: Tool, arguments: Any, number: int, session: Any, supervisor: Any = None) -> Any:
        asked = messages.ToolCall(str(number), tool.name, arguments)
        desk = self.desk if tool.owned else None
        request = ToolRequest(number, tool, asked, ToolPlace("/", "s", {}, False), desk)
        if tool is CONTACT:
            self.contacts.add(number)
        actor = ToolCall(request, session, self.nobody, self._no_command, supervisor)
        return self.scheduler.start(actor, f"tool-call-{number}", session, number)

    # -- what the parent and the client do

    def _question(self) -> str:
        return self.rng.choice([*self.parent.said, "ask-of-nobody"])

    def reply(self) -> None:
        number = self.number()
        which: dict[str, Any] = self.rng.choice(({"replyTo": self._question()}, {"to": "Worker"}, {}))
        self.replies[number] = f"answer {number}"
        arguments = {"action": "reply", "message": self.replies[number], **which}
        self.call(INTERCOM, arguments, number, self.session)

    def type(self) -> None:
        number, question = self.number(), self._question()
        said = self.parent.said.get(question)
        task_id = said.task_id if said is not None else "task-1-0"
        self.replies[number], self.asked_for[number] = f"typed {number}", question
        command = c.SendTaskInput(task_id=task_id, input=self.replies[number], request_id=question)
        self._command("send_task_input", command, number)

    def kill(self) -> None:
        self._command("cancel_task", c.CancelTask(task_id=f"task-1-{self.rng.randrange(3)}"), self.number())

    def tell(self) -> None:
        number = self.number()
        arguments = {"action": "send", "to": f"task-1-{self.rng.randrange(3)}", "message": "hm"}
        self.call(INTERCOM, arguments, number, self.session)

    def _command(self, name: str, command: Any, number: int) -> None:
        self.asked_for.setdefault(number, "")
        self.desk.tell(TaskCommand(Ticket(number, b"", name), command))

    # -- what has come of it

    def accepted(self, request_id: str, number: int) -> None:
        assert request_id not in self.taken
        self.taken[request_id] = number

    def heard(self, number: int, output: Any) -> None:
        """What a call of a child has ended with."""
        assert number not in self.results
        self.results[number] = output

    @property
    def answered(self) -> dict[str, str]:
        """Each answer that reached a child's call, by the question."""
        found = [output for output in self.results.values() if not output.is_error and isinstance(output.details, dict)]
        assert len({output.details["requestId"] for output in found}) == len(found)
        return {output.details["requestId"]: output.content[0].text for output in found}


def check(play: Play) -> None:
    died = {name for name, _ in play.scheduler.deaths}
    assert died <= {"subagent-session"}, play.scheduler.deaths
    assert play.parent.is_closed and play.parent.over <= {f"task-1-{number}" for number in range(3)}
    parents = set(range(1, play.numbers + 1)) - play.contacts
    assert play.parent.answers == Counter(parents)
    if not died:
        assert play.results.keys() == play.contacts
    for request_id, text in play.answered.items():
        assert play.replies[play.taken[request_id]] == text
    for request_id in play.taken:
        assert play.parent.said[request_id].reason != "progress_update"
    left = [
        each for each in play.scheduler.actors if not each.is_over and each.name.startswith(("tool", "task-", "sub"))
    ]
    assert left == []


def test_whatever_comes_first_each_question_has_one_outcome_for_everybody() -> None:
    met: Counter[str] = Counter()
    for seed in range(SEEDS):
        play = Play(seed)
        play.run()
        try:
            check(play)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        met["answered"] += len(play.answered)
        met["accepted in vain"] += len(play.taken.keys() - play.answered.keys())
        met["refused"] += sum(number not in play.taken.values() for number in play.replies)
        met["died"] += bool(play.scheduler.deaths)
        met["open at the end"] += sum(message.is_open for message in play.parent.said.values()) - len(play.taken)
        met["closed before it was told"] += sum(message.is_closed for message in play.parent.said.values())
        met["lost the race"] += sum("Already waiting" in output.content[0].text for output in play.results.values())
    assert all(met.values()), met
    assert len(met) == 7
