"""A session between a real queue, a real journal and probes: prompts, aborts, bash records, and letting go."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.base import Down
from actors.catalog_view import Defaults
from actors.mail import (
    BashAdopted,
    BashFinished,
    BashLost,
    BashRecorded,
    BecomeCurrent,
    CancelCall,
    CancelTool,
    CloseTasks,
    Commands,
    DescribeFork,
    ForkReady,
    ForkRefused,
    LetGo,
    NoMoreCommands,
    Reload,
    ReplyDelta,
    ReplyEnded,
    ReplyStarted,
    Reread,
    Retire,
    Retired,
    RunBash,
    SessionGone,
    SessionReloaded,
    TaskChanged,
    TaskCommand,
    TasksClosed,
    TasksGone,
    Ticket,
    ToolEnded,
    ToolProgress,
    UseCatalog,
    Write,
)
from actors.model.prompt import Credential
from actors.probe import Probe
from actors.pump import Window
from actors.session.actor import Session
from actors.session.answering import Answerer
from actors.session.compaction_files import DiskFiles
from actors.session.compaction_work import worked
from actors.session.file import OpenedSession, Stamps, new_session
from actors.session.opening import Rereader
from actors.session.queue import Queue
from actors.session.services import LONG, Services
from actors.session.surroundings import Surroundings
from actors.task.notice import TaskNotice
from actors.task.state import Launch, Task
from actors.tool.table import Tool, ToolOutput, text_output
from protocol.codec import Rejected, encode, read_command
from protocol.events import TextDelta
from protocol.messages import AssistantMessage, BashExecutionMessage, StopReason, TextContent, ToolCall, Usage
from protocol.model import Model, ModelCost, ThinkingLevel
from protocol.responses import AuthStatus, ScopedModel
from protocol.tasks import CompletionEnvelope, TaskCancelled, TaskCompleted, TaskRef

MODEL = Model("m", "M", "scripted", "p", "", False, ("text",), ModelCost(), 100_000, 100)
MODES: Any = {"steering": "one-at-a-time", "followUp": "one-at-a-time"}
RETIRED = Retired(1, MODES, Defaults())


class Choice:
    model: Model | None = MODEL
    thinking_level: ThinkingLevel = "off"
    message = None
    reason = None


class Models:
    """A catalogue of one model; `no_key` refuses it."""

    no_key: str | None = None

    def available(self) -> list[Model]:
        return [MODEL]

    def scope(self) -> tuple[ScopedModel, ...]:
        return ()

    def find(self, provider: str, model_id: str) -> Model | None:
        return MODEL

    def knows(self, provider: str) -> bool:
        return True

    def refusal(self, model: Model | None) -> str | None:
        return self.no_key

    def choose(self, saved: Any, saved_level: Any, defaults: Defaults, *, first: bool) -> Choice:
        return Choice()

    def auth_status(self, provider: str) -> AuthStatus:
        return AuthStatus(True)

    def authorize(self, model: Model) -> Credential:
        return Credential("k")

    def reloaded(self, files: Any) -> Models:
        return self

    def logged_out(self, provider: str) -> Models:
        return self


class Inbox:
    """The address of an actor whose mail waits in one line with the mail of all others."""

    def __init__(self, line: deque[tuple[Any, Any]]) -> None:
        self._line = line
        self.actor: Any = None
        self.stopped = False

    def tell(self, mail: Any) -> None:
        self._line.append((self.actor, mail))

    def stop(self) -> None:
        """Only a session whose owner is gone does that."""
        self.stopped = True


class Bench:
    """Delivers mail until all is still. Model requests and tool calls are probes, in the order of their start."""

    def __init__(
        self,
        folder: Path,
        *,
        in_memory: bool = False,
        key: int = 1,
        opened: OpenedSession | None = None,
        long: int = LONG,
    ) -> None:
        self.folder, self.long = folder, long
        numbers = itertools.count(1)
        self.stamps = Stamps(lambda: 1767225600000, lambda: f"s-{next(numbers)}", lambda: f"{next(numbers):08x}-0000")
        opened = opened or new_session(self.stamps, str(folder), None if in_memory else str(folder / "sessions"))
        self.writer, self.shells, self.desk, self.preferences = (Probe[Any]() for _ in range(4))
        self.requests: list[Any] = []
        self.calls: list[Probe[Any]] = []
        self.tools: list[tuple[int, Probe[Any]]] = []
        self.task_desks: list[tuple[str, Probe[Any]]] = []
        self.complaints: list[str] = []
        self.held: list[Callable[[], None]] | None = None
        self.catalog = Models()
        self._line: deque[tuple[Any, Any]] = deque()
        self._serial = 0
        self.session = Session(key, opened, self._services(), MODES)
        self.me = self._inbox(self.session)
        self.session.me = self.me
        self.session.begin()

    def _services(self) -> Services:
        names = ("read", "bad", "slow")
        tools = {name: Tool(name, "", "", {}, lambda c, a: text_output(""), lambda a, c: None) for name in names}
        tools["owned"] = msgspec.structs.replace(tools["slow"], name="owned", owned=True)
        return Services(
            writer=self.writer,
            shells=self.shells,
            desk=self.desk,
            preferences=self.preferences,
            clock=Probe(),
            catalog_owner=Probe(),
            start_queue=lambda session, modes: self._inbox(Queue(session, modes)),
            start_model_call=self._start_call,
            start_task_desk=self._start_task_desk,
            start_tool_call=self._start_tool,
            now=lambda: 1767225600000,
            uuid4=self.stamps.uuid4,
            catalog=self.catalog,
            tools=tools,
            check_arguments=lambda tool, arguments: "bad arguments" if tool.name == "bad" else None,
            surroundings=Surroundings(lambda model, level: "be brief"),
            load_surroundings=lambda ticket, cwd, session: None,
            export=lambda ticket, plan, session: None,
            environment=lambda *_: {"MARK": "m"},
            complain=self.complaints.append,
            reread=Rereader(self._pump, self.stamps.uuid4).start,
            make_answer=Answerer(self._pump).start,
            long=self.long,
            work=lambda job, task, session: session.tell(worked(job, task)),
            compaction_files=lambda: DiskFiles(lambda: 1767225600000, self.stamps.uuid7),
        )

    def _pump(self, name: str, work: Callable[[], None]) -> None:
        """Runs it now, or leaves it to the test."""
        if self.held is None:
            work()
        else:
            self.held.append(work)

    def _inbox(self, actor: Any) -> Inbox:
        inbox = Inbox(self._line)
        inbox.actor = actor
        return inbox

    def _start_call(self, request: Any, session: Any) -> Probe[Any]:
        self.requests.append(request)
        self.calls.append(Probe())
        return self.calls[-1]

    def _start_task_desk(self, scope: str, key: str, session: Any) -> Probe[Any]:
        self.task_desks.append((scope, Probe()))
        return self.task_desks[-1][1]

    def _start_tool(self, request: Any, session: Any) -> Probe[Any]:
        self.tools.append((request.call, Probe()))
        return self.tools[-1][1]

    # -- what happens to it

    def tell(self, *mails: Any) -> None:
        self._line.extend((self.session, mail) for mail in mails)
        while self._line:
            actor, mail = self._line.popleft()
            actor.receive(mail)

    def send(self, *commands: dict[str, Any] | str) -> None:
        """Commands of one read; a text alone is a command without fields. The id of each is its name."""
        items = []
        for command in commands:
            fields = {"type": command} if isinstance(command, str) else command
            self._serial += 1
            ticket = Ticket(self._serial, encode(fields.get("id", fields["type"])), fields["type"])
            items.append((ticket, read_command(json.dumps(fields).encode())))
        self.tell(Commands(tuple(items)))

    def prompt(self, text: str = "hi", **fields: Any) -> None:
        self.send({"type": "prompt", "message": text, **fields})

    def reply(self, *tools: str, stop: StopReason | None = None, text: str | None = "hello") -> None:
        """The model's last request is answered."""
        blocks: list[Any] = [] if text is None else [TextContent(text)]
        blocks += [ToolCall(f"{name}{place}", name, {}) for place, name in enumerate(tools)]
        reason: StopReason = stop or ("toolUse" if tools else "stop")
        message = AssistantMessage(blocks, "scripted", "p", "m", Usage(), reason, 5)
        self.tell(ReplyEnded(self.requests[-1].call, message))

    def returned(self, output: ToolOutput | None = None) -> None:
        """The last tool is done."""
        self.tell(ToolEnded(self.tools[-1][0], output or text_output("done")))

    # -- what it told

    def writes(self) -> list[Write]:
        mails = self.writer.drain()
        assert all(isinstance(mail, Write) for mail in mails)
        return mails

    def records(self) -> list[dict[str, Any]]:
        return [
            json.loads(line) for write in self.writes() for record in write.records for line in record.line.splitlines()
        ]

    def told(self) -> list[str]:
        """Events by type (messages by role), responses as `id ok` or `id: error`."""
        return [_word(record) for record in self.records()]

    def ask(self, *command: dict[str, Any] | str) -> Any:
        """The data of the one answer."""
        self.writes()
        self.send(*command)
        (answer,) = self.records()
        assert answer["success"], answer
        return answer.get("data")

    def roles(self) -> list[str]:
        return [message["role"] for message in self.ask("get_messages")["messages"]]

    def stored_roles(self) -> list[str]:
        path = self.session.history.path
        assert path is not None
        entries = [json.loads(line) for line in Path(path).read_text().splitlines()]
        return [entry["message"]["role"] for entry in entries if entry["type"] == "message"]


def _word(record: dict[str, Any]) -> str:
    if record["type"] == "response":
        return f"{record['id']} ok" if record["success"] else f"{record['id']}: {record['error']}"
    if record["type"] in ("message_start", "message_end"):
        return f"{record['type'].removeprefix('message_')} {record['message']['role']}"
    return str(record["type"])


def pair(role: str) -> list[str]:
    return [f"start {role}", f"end {role}"]


USER, ASSISTANT, RESULT = pair("user"), pair("assistant"), pair("toolResult")
END = ["turn_end", "agent_end"]
BEGUN = ["prompt ok", "agent_start", "turn_start", *USER]
BUSY = "prompt: Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# ---- prompts ------------------------------------------------------------------------------------------------------


def test_a_prompt_is_answered_then_runs_and_ends_with_one_agent_settled(bench: Bench) -> None:
    bench.prompt()
    assert bench.told() == BEGUN
    bench.reply()
    assert bench.told() == [*ASSISTANT, *END, "agent_settled"]
    assert bench.stored_roles() == bench.roles() == ["user", "assistant"]


def test_agent_settled_never_shares_a_burst_with_agent_end(bench: Bench) -> None:
    bench.prompt()
    bench.writes()
    bench.reply()
    *_, before, last = bench.writes()
    assert before.boundary and b"agent_end" in before.records[-1].line
    assert [json.loads(record.line)["type"] for record in last.records] == ["agent_settled"]


def test_of_two_prompts_in_one_read_one_starts_and_the_other_sees_a_busy_session(bench: Bench) -> None:
    bench.send({"type": "prompt", "message": "a"}, {"type": "prompt", "message": "b"})
    assert bench.told() == [*BEGUN, BUSY]
    assert len(bench.calls) == 1


def test_a_prompt_that_the_catalogue_refuses_starts_nothing(bench: Bench) -> None:
    bench.catalog.no_key = "No API key found for p."
    bench.prompt()
    assert bench.told() == ["prompt: No API key found for p."]
    assert bench.calls == []
    assert bench.ask("get_state")["isStreaming"] is False


def test_deltas_go_out_as_they_come_with_their_ack(bench: Bench) -> None:
    bench.prompt()
    call = bench.requests[-1].call
    bench.tell(ReplyStarted(call, b'{"role":"assistant","stopReason":"pending"}'))
    bench.writes()
    ack = Window().admit(1)
    bench.tell(ReplyDelta(call, b'{"input":1}', (TextDelta(0, "a"), TextDelta(0, "b")), ack))
    (write,) = bench.writes()
    assert write.ack is ack
    updates = [json.loads(line) for line in write.records[0].line.splitlines()]
    assert [update["assistantMessageEvent"]["delta"] for update in updates] == ["a", "b"]
    assert updates[0]["usage"] == {"input": 1}


def test_what_comes_late_from_an_old_request_is_dropped_and_its_ack_settled(bench: Bench) -> None:
    bench.prompt()
    bench.reply()
    bench.prompt()
    bench.writes()
    window, old = Window(max_messages=1), bench.requests[0].call
    message = AssistantMessage([], "a", "p", "m", Usage(), "stop", 1)
    bench.tell(ReplyStarted(old, b"{}"), ReplyDelta(old, b"{}", (), window.admit(1)), ReplyEnded(old, message))
    assert bench.told() == []
    assert window.admit(1) is not None


def test_tools_run_with_their_progress_and_the_model_is_asked_again(bench: Bench) -> None:
    bench.prompt()
    bench.reply("read")
    bench.told()
    call = bench.tools[0][0]
    bench.tell(ToolProgress(call, text_output("half")))
    bench.returned()
    assert bench.told() == ["tool_execution_update", "tool_execution_end", *RESULT, "turn_end", "turn_start"]
    assert len(bench.calls) == 2
    bench.tell(ToolProgress(call, text_output("late")), ToolEnded(call, text_output("twice")))
    assert bench.told() == []


def test_a_call_of_an_unknown_tool_or_with_bad_arguments_is_refused_and_the_run_goes_on(bench: Bench) -> None:
    bench.prompt()
    bench.reply("nosuch", "bad")
    ended = [record for record in bench.records() if record["type"] == "tool_execution_end"]
    texts = [record["result"]["content"][0]["text"] for record in ended]
    assert texts == ["Tool nosuch not found", "bad arguments"]
    assert len(bench.calls) == 2


# ---- the queue ----------------------------------------------------------------------------------------------------


def test_a_busy_session_queues_a_prompt_as_it_asks_and_answers_after_the_update(bench: Bench) -> None:
    bench.prompt()
    bench.told()
    bench.prompt("later", streamingBehavior="followUp")
    assert bench.told() == ["queue_update", "prompt ok"]
    assert bench.ask("get_state")["pendingMessageCount"] == 1
    bench.reply()
    assert bench.told() == [*ASSISTANT, "turn_end", "turn_start", "queue_update", *USER]
    assert bench.ask("get_state")["pendingMessageCount"] == 0


def test_a_steer_comes_before_the_next_model_call(bench: Bench) -> None:
    bench.prompt()
    bench.reply("read")
    bench.send({"type": "steer", "message": "stop that"})
    bench.told()
    bench.returned()
    assert bench.told()[-4:] == ["turn_start", "queue_update", *USER]
    assert bench.requests[-1].prompt.messages[-1].content[0].text == "stop that"


def test_a_steer_while_idle_waits_for_the_next_prompt(bench: Bench) -> None:
    bench.send({"type": "steer", "message": "s"})
    assert bench.told() == ["queue_update", "steer ok"]
    assert bench.calls == []
    bench.prompt()
    assert bench.told() == [*BEGUN, "queue_update", *USER]


def test_a_paused_session_holds_a_prompt_byte_for_byte_and_starts_nothing(bench: Bench) -> None:
    bench.send("pause_queued_messages")
    bench.prompt("  odd\n\ttext ")
    assert bench.told() == ["pause_queued_messages ok", "queue_update", "prompt ok"]
    assert bench.calls == []
    state = bench.ask("get_state")
    assert (state["queuedMessagesPaused"], state["pendingMessageCount"], state["isStreaming"]) == (True, 1, False)
    assert bench.ask("resume_queued_messages") == {"released": True}
    bench.prompt("go")
    texts = [message.content[0].text for message in bench.requests[-1].prompt.messages]
    assert texts == ["go", "  odd\n\ttext "]


def test_what_is_paused_and_prompted_in_one_read_is_held_too(bench: Bench) -> None:
    bench.send("pause_queued_messages", {"type": "prompt", "message": "x"}, "get_state")
    assert bench.told() == ["pause_queued_messages ok", "queue_update", "prompt ok", "get_state ok"]
    assert bench.calls == []


def test_clearing_the_queue_tells_an_update_and_gives_the_texts_back(bench: Bench) -> None:
    bench.send({"type": "steer", "message": "a"}, {"type": "follow_up", "message": "b"})
    bench.writes()
    bench.send("clear_queue")
    update, answer = bench.records()
    assert (update["steering"], update["followUp"]) == ([], [])
    assert answer["data"] == {"steering": ["a"], "followUp": ["b"]}


def test_a_queue_mode_is_in_force_at_once_and_saved(bench: Bench) -> None:
    bench.send({"type": "set_steering_mode", "mode": "all"}, "get_state")
    _, state = bench.records()
    assert state["data"]["steeringMode"] == "all"
    assert bench.preferences.next().value == "all"
    bench.send({"type": "steer", "message": "a"}, {"type": "steer", "message": "b"})
    bench.prompt()
    assert len(bench.requests[-1].prompt.messages) == 3


# ---- aborts -------------------------------------------------------------------------------------------------------


def test_an_abort_is_answered_after_agent_end_and_before_agent_settled(bench: Bench) -> None:
    bench.prompt()
    bench.send("abort", "abort")
    bench.told()
    assert bench.calls[-1].drain() == [CancelCall(), CancelCall()]
    bench.reply(stop="aborted")
    assert bench.told() == [*ASSISTANT, *END, "abort ok", "abort ok", "agent_settled"]


def test_an_abort_in_the_same_read_as_its_prompt_reaches_it(bench: Bench) -> None:
    bench.send({"type": "prompt", "message": "x"}, "abort")
    assert bench.calls[-1].drain() == [CancelCall()]
    assert bench.told() == BEGUN


def test_an_abort_of_an_idle_session_is_a_success(bench: Bench) -> None:
    bench.send("abort")
    assert bench.told() == ["abort ok"]


def test_an_abort_cancels_the_tools_that_run(bench: Bench) -> None:
    bench.prompt()
    bench.reply("read", "slow")
    bench.send("abort")
    assert [probe.drain() for _, probe in bench.tools] == [[CancelTool()], [CancelTool()]]


def test_a_steer_lets_go_what_waits_for_tasks_and_nothing_else(bench: Bench) -> None:
    bench.prompt()
    bench.reply("owned", "slow")
    bench.send({"type": "follow_up", "message": "later"})
    assert [probe.drain() for _, probe in bench.tools] == [[], []]
    bench.send({"type": "steer", "message": "now"})
    assert [probe.drain() for _, probe in bench.tools] == [[LetGo("input-needed")], []]


@pytest.mark.parametrize("paused", [True, False])
def test_what_begins_to_wait_behind_a_steer_lets_go_at_once(bench: Bench, paused: bool) -> None:
    bench.prompt()
    bench.send({"type": "steer", "message": "now"}, *(["pause_queued_messages"] if paused else []))
    bench.reply("owned", "slow")
    assert [probe.drain() for _, probe in bench.tools] == [[] if paused else [LetGo("input-needed")], []]


def test_what_is_queued_starts_a_new_run_right_after_an_abort(bench: Bench) -> None:
    bench.prompt()
    bench.send({"type": "follow_up", "message": "f"}, "abort")
    bench.told()
    bench.reply(stop="aborted")
    assert bench.told() == [*ASSISTANT, *END, "abort ok", "agent_start", "turn_start", "queue_update", *USER]
    bench.reply()
    assert bench.told() == [*ASSISTANT, *END, "agent_settled"]


def test_what_a_task_has_to_say_begins_its_run_after_the_answer_to_an_abort_of_a_retry(bench: Bench) -> None:
    bench.prompt()
    told = TaskNotice(CompletionEnvelope("completion-t1", "owner-1", "t1", "1", TaskCompleted()), "look")
    failed = AssistantMessage([], "scripted", "p", "m", Usage(), "error", 5, error_message="overloaded")
    bench.tell(ReplyEnded(bench.requests[-1].call, failed))
    bench.session.notices.add(told)
    assert bench.told()[-1] == "auto_retry_start"
    bench.send("abort")
    assert bench.told()[:4] == ["auto_retry_end", "abort ok", "agent_start", "turn_start"]


def test_after_a_pause_an_abort_starts_no_further_run(bench: Bench) -> None:
    bench.prompt()
    bench.send({"type": "follow_up", "message": "f"}, "pause_queued_messages", "abort")
    bench.told()
    bench.reply(stop="aborted")
    assert bench.told() == [*ASSISTANT, *END, "abort ok", "agent_settled"]


def abort_with_a_steer(bench: Bench) -> None:
    """An abort while a tool runs takes the steer along that was queued before."""
    bench.prompt()
    bench.reply("read")
    bench.send({"type": "steer", "message": "Q"}, "abort")
    bench.told()
    bench.returned()


def test_a_queued_message_that_an_abort_swallowed_is_answered_by_one_more_run(bench: Bench) -> None:
    abort_with_a_steer(bench)
    told = bench.told()
    swallowed = ["turn_start", "queue_update", *USER, *ASSISTANT, *END, "abort ok"]
    assert told[-len(swallowed) - 2 :] == [*swallowed, "agent_start", "turn_start"]
    assert bench.requests[-1].prompt.messages[-1].content[0].text == "Q"
    assert bench.roles() == ["user", "assistant", "toolResult", "user"]
    assert bench.stored_roles() == ["user", "assistant", "toolResult", "user", "assistant"]
    bench.reply()
    assert bench.told() == [*ASSISTANT, *END, "agent_settled"]


def test_a_swallowed_message_is_recovered_only_once(bench: Bench) -> None:
    abort_with_a_steer(bench)
    bench.send("abort")
    bench.told()
    bench.reply(stop="aborted", text=None)
    assert bench.told()[-2:] == ["abort ok", "agent_settled"]


def test_an_aborted_prompt_is_no_swallowed_message(bench: Bench) -> None:
    bench.send({"type": "prompt", "message": "x"}, "abort")
    bench.told()
    bench.reply(stop="aborted", text=None)
    assert bench.told() == [*ASSISTANT, *END, "abort ok", "agent_settled"]


# ---- faults -------------------------------------------------------------------------------------------------------


def test_a_run_that_cannot_be_journaled_ends_with_an_error_reply_and_one_complaint(bench: Bench) -> None:
    shutil.rmtree(bench.folder / "sessions")
    bench.prompt()
    assert bench.calls == []
    records = bench.records()
    assert [_word(record) for record in records] == [
        "prompt ok",
        "agent_start",
        "turn_start",
        *ASSISTANT,
        *END,
        "agent_settled",
    ]
    failed = records[-2]["messages"]
    assert [message["stopReason"] for message in failed] == ["error"]
    assert len(bench.complaints) == 1 and bench.complaints[0] == failed[0]["errorMessage"]
    assert bench.roles() == []


def test_a_model_request_that_dies_is_an_error_reply(bench: Bench) -> None:
    bench.prompt()
    bench.tell(Down(bench.requests[-1].call, "ValueError in sse.py:3"))
    end = next(record for record in bench.records() if record["type"] == "agent_end")
    assert end["messages"][-1]["errorMessage"] == "the model request failed: ValueError in sse.py:3"
    assert bench.ask("get_state")["isStreaming"] is False


def test_a_tool_call_that_dies_is_an_error_result(bench: Bench) -> None:
    bench.prompt()
    bench.reply("read")
    bench.told()
    bench.tell(Down(bench.tools[0][0], "E"))
    ended = bench.records()[0]
    assert (ended["isError"], ended["result"]["content"][0]["text"]) == (True, "the tool failed: E")
    assert len(bench.calls) == 2


def test_a_session_dies_with_its_queue(bench: Bench) -> None:
    with pytest.raises(RuntimeError):
        bench.tell(Down("queue", "E"))


def test_a_rejected_command_is_answered_in_its_place(bench: Bench) -> None:
    rejected = (Ticket(8, b'"r"', "foo"), Rejected(b'"r"', "foo", "Unknown command: foo"))
    state = (Ticket(9, b'"s"', "get_state"), read_command(b'{"type":"get_state"}'))
    bench.tell(Commands((rejected, state)))
    assert bench.told() == ["r: Unknown command: foo", "s ok"]


# ---- shell requests -----------------------------------------------------------------------------------------------


def finished(serial: int, shell: Probe[Any], output: str = "out") -> BashFinished:
    return BashFinished(serial, BashExecutionMessage("ls", output, False, False, 5, 0), shell)


def start_bash(bench: Bench) -> int:
    bench.send({"type": "bash", "command": "ls", "excludeFromContext": True})
    run = bench.shells.of(RunBash)
    assert (run.plan.command, run.plan.cwd, run.plan.exclude_from_context) == ("ls", str(bench.folder), True)
    assert run.home is bench.me
    return int(run.ticket.serial)


def test_a_bash_result_of_an_idle_session_is_recorded_at_once(bench: Bench) -> None:
    shell: Probe[Any] = Probe()
    bench.tell(finished(start_bash(bench), shell))
    assert shell.drain() == [BashRecorded()]
    assert bench.told() == []
    assert bench.roles() == bench.stored_roles() == ["bashExecution"]


def test_a_bash_result_during_a_run_is_in_the_file_at_once_and_in_the_context_once_it_settles(bench: Bench) -> None:
    shell: Probe[Any] = Probe()
    serial = start_bash(bench)
    bench.prompt()
    bench.tell(finished(serial, shell))
    assert shell.drain() == [BashRecorded()]
    assert bench.roles() == ["user"]
    assert bench.stored_roles() == ["user", "bashExecution"]
    bench.reply()
    assert bench.roles() == ["user", "assistant", "bashExecution"]


def test_a_bash_result_that_cannot_be_recorded_is_told_to_its_shell_and_to_stderr(bench: Bench) -> None:
    shell: Probe[Any] = Probe()
    serial = start_bash(bench)
    shutil.rmtree(bench.folder / "sessions")
    bench.tell(finished(serial, shell))
    (recorded,) = shell.drain()
    assert recorded.error is not None and bench.complaints == [recorded.error]
    assert bench.roles() == []


def test_a_command_that_never_ran_is_not_recorded(bench: Bench) -> None:
    shell: Probe[Any] = Probe()
    bench.tell(BashFinished(start_bash(bench), None, shell))
    assert shell.drain() == [BashRecorded()]
    assert bench.roles() == []


def test_an_adopted_result_that_the_dead_session_had_recorded_is_not_recorded_twice(bench: Bench) -> None:
    shell: Probe[Any] = Probe()
    bench.tell(BashAdopted(frozenset({50, 51})))
    bench.tell(finished(50, shell, "same"), finished(51, shell, "same"), finished(51, shell, "other"))
    assert bench.roles() == ["bashExecution", "bashExecution"]
    assert len(shell.drain()) == 3


# ---- letting go ---------------------------------------------------------------------------------------------------


def test_retiring_aborts_the_run_reports_the_emptied_queue_and_tells_the_desk_when_it_is_still(bench: Bench) -> None:
    bench.prompt()
    bench.send({"type": "follow_up", "message": "f"})
    bench.told()
    bench.tell(Retire())
    assert bench.calls[-1].drain() == [CancelCall()]
    assert bench.told() == ["queue_update"]
    assert bench.desk.drain() == []
    bench.reply(stop="aborted")
    assert bench.told() == [*ASSISTANT, *END, "agent_settled"]
    assert bench.desk.drain() == [RETIRED]
    assert bench.stored_roles() == ["user", "assistant"]


def test_an_idle_session_with_an_empty_queue_retires_without_a_word(bench: Bench) -> None:
    bench.tell(Retire())
    assert bench.told() == []
    assert bench.desk.drain() == [RETIRED]


def test_a_retired_session_is_done_after_its_last_command_and_its_last_bash(bench: Bench) -> None:
    serial, shell = start_bash(bench), Probe[Any]()
    bench.tell(Retire())
    bench.desk.drain()
    bench.tell(NoMoreCommands())
    assert bench.desk.drain() == []
    bench.tell(finished(serial, shell))
    assert bench.desk.drain() == [SessionGone(1, 1)]
    assert bench.stored_roles() == ["bashExecution"]


def test_a_bash_whose_shell_died_is_not_waited_for(bench: Bench) -> None:
    serial = start_bash(bench)
    bench.tell(Retire(), NoMoreCommands())
    bench.desk.drain()
    bench.tell(BashLost(serial))
    assert bench.desk.drain() == [SessionGone(1, 1)]


def test_a_session_that_is_called_back_takes_commands_again_and_can_retire_again(bench: Bench) -> None:
    bench.tell(Retire(), NoMoreCommands())
    assert bench.desk.drain() == [RETIRED, SessionGone(1, 1)]
    bench.tell(BecomeCurrent(MODES))
    bench.prompt()
    bench.reply()
    assert bench.told() == [*BEGUN, *ASSISTANT, *END, "agent_settled"]
    bench.tell(Retire(), NoMoreCommands())
    assert bench.desk.drain() == [RETIRED, SessionGone(1, 3)]


def test_the_modes_of_the_session_before_are_taken_over(bench: Bench) -> None:
    bench.tell(BecomeCurrent({"steering": "all", "followUp": "one-at-a-time"}))
    assert bench.ask("get_state")["steeringMode"] == "all"
    assert bench.told() == []
    assert bench.preferences.drain() == []


def test_a_session_without_an_owner_closes_its_file_and_stops_once_nothing_is_left(bench: Bench) -> None:
    serial, shell = start_bash(bench), Probe[Any]()
    bench.tell(Retire(alone=True), NoMoreCommands())
    assert not bench.me.stopped
    bench.tell(finished(serial, shell))
    assert bench.me.stopped and not bench.session.history.journal.exists_on_disk
    assert bench.stored_roles() == ["bashExecution"]


def test_the_last_words_of_a_session_end_its_request_its_tools_and_its_tasks(bench: Bench) -> None:
    bench.prompt()
    bench.session.last_words([])
    assert bench.calls[-1].drain() == [CancelCall()]
    desk: Any = bench.session.tasks.owner()
    bench.reply("read", "slow")
    bench.session.last_words([])
    assert [probe.drain() for _, probe in bench.tools] == [[CancelTool(), TasksGone(desk)]] * 2
    assert desk.drain() == [CloseTasks(alone=True)]


def test_a_session_that_is_back_has_a_fresh_owner_of_tasks_while_the_old_one_is_closing(bench: Bench) -> None:
    old: Any = bench.session.tasks.owner()
    bench.tell(Retire())
    assert bench.session.tasks.owner() is old and old.drain() == [CloseTasks()], "it refuses what comes late"
    bench.tell(BecomeCurrent(MODES))
    fresh: Any = bench.session.tasks.owner()
    assert fresh is not old and bench.session.tasks.owner() is fresh
    (before, _), (after, _) = bench.task_desks
    assert before != after, "ids of the one are unknown to the other"
    bench.send("get_tasks")
    assert [type(mail) for mail in fresh.drain()] == [TaskCommand] and old.drain() == []
    bench.tell(TasksClosed(before))
    assert old.stopped and not fresh.stopped
    bench.tell(Retire())
    assert fresh.drain() == [CloseTasks()]


def test_a_session_that_lets_go_before_it_had_a_task_refuses_what_comes_late(bench: Bench) -> None:
    bench.prompt()
    bench.tell(Retire())
    late: Any = bench.session.tasks.owner()
    assert late.drain() == [CloseTasks()] and bench.session.tasks.owner() is late


def test_changes_of_tasks_are_told_to_a_client_that_asked_for_them_and_to_no_other(bench: Bench) -> None:
    task = Task(TaskRef("o", "t1", "a", "g"), Launch("op", "command", "make"), 0, float)
    for enabled in (None, True, False):
        if enabled is not None:
            bench.send({"type": "set_task_subscription", "enabled": enabled})
        bench.writes()
        bench.tell(TaskChanged(task.record()))
        assert bench.told() == (["task_update"] if enabled else [])


def test_a_session_without_tasks_knows_none(bench: Bench) -> None:
    assert bench.ask("get_tasks") == {"tasks": []}
    bench.writes()
    asked = {"get_task": {}, "wait_task": {}, "cancel_task": {}, "send_task_input": {"input": "x"}}
    for command, fields in {**asked, "resize_task": {"columns": 80, "rows": 24}}.items():
        bench.send({"type": command, "taskId": "task-00000001-0-0", **fields})
        assert bench.told() == [f"{command}: UnknownTask: UnknownTask"]
    assert bench.task_desks == []


def test_calls_that_the_dead_owner_of_tasks_never_heard_of_are_told(bench: Bench) -> None:
    bench.prompt()
    desk: Any = bench.session.tasks.owner()
    ((scope, _),) = bench.task_desks
    bench.reply("read", "slow")
    bench.tell(Down(f"tasks-{scope}", "KeyError"))
    assert [probe.drain() for _, probe in bench.tools] == [[TasksGone(desk)], [TasksGone(desk)]]


def test_a_retiring_session_starts_no_run_from_its_queue(bench: Bench) -> None:
    bench.prompt()
    bench.send({"type": "follow_up", "message": "f"})
    bench.tell(Retire())
    bench.reply(stop="aborted")
    assert len(bench.calls) == 1


# ---- answers about a long session ---------------------------------------------------------------------------------

ABOUT_ALL = ("get_tree", "get_fork_messages", "get_session_stats")


def grown(folder: Path, long: int) -> Bench:
    bench = Bench(folder, long=long)
    for number in range(3):
        bench.prompt(f"p{number}")
        bench.reply()
    bench.writes()
    return bench


@pytest.mark.parametrize("command", ABOUT_ALL)
def test_an_answer_about_many_entries_is_made_in_a_pump_and_says_the_same(tmp_path: Path, command: str) -> None:
    short, long = (grown(tmp_path / name, limit) for name, limit in (("short", 7), ("long", 6)))
    long.held = []
    long.send(command, "get_state")
    assert long.told() == []
    (make,) = long.held
    make()
    long.tell()
    answer, state = long.records()
    assert (answer["command"], state["command"]) == (command, "get_state")
    expected = json.dumps(short.ask(command)).replace(str(tmp_path / "short"), str(tmp_path / "long"))
    assert json.dumps(answer["data"]) == expected


# ---- reload and fork ----------------------------------------------------------------------------------------------


def test_a_reload_reads_what_the_file_says_now(bench: Bench) -> None:
    bench.prompt("first")
    bench.reply()
    path = bench.session.history.path
    assert path is not None
    lines = Path(path).read_text().splitlines(keepends=True)
    Path(path).write_text("".join(line for line in lines if '"assistant"' not in line))
    ticket = Ticket(70, b'"s"', "switch_session")
    bench.tell(Reload(ticket))
    assert bench.desk.drain() == [SessionReloaded(ticket)]
    assert bench.roles() == ["user"]


@pytest.mark.parametrize("is_read", ["before", "after"])
def test_what_is_recorded_while_the_file_is_read_again_is_neither_lost_nor_doubled(bench: Bench, is_read: str) -> None:
    bench.prompt("first")
    bench.reply()
    serial = start_bash(bench)
    bench.held = []
    ticket = Ticket(70, b'"s"', "switch_session")
    bench.tell(Reload(ticket))
    (read,) = bench.held
    told: list[Any] = []
    if is_read == "before":
        opened = Rereader(bench._pump, bench.stamps.uuid4).reread(bench.session.opened)
        told.append(Reread(ticket, opened))
    bench.tell(finished(serial, Probe()))
    assert bench.desk.drain() == []
    if is_read == "after":
        read()
    bench.tell(*told)
    assert bench.desk.drain() == [SessionReloaded(ticket)]
    assert bench.roles() == ["user", "assistant", "bashExecution"]
    ids = [entry.head.id for entry in bench.session.history.tree.entries]
    assert len(ids) == len(set(ids))
    assert bench.session.history.tree.leaf_id == ids[-1]


def test_a_session_whose_file_takes_long_to_be_read_again_may_be_retired_meanwhile(bench: Bench) -> None:
    bench.prompt("first")
    bench.reply()
    bench.held = []
    bench.tell(Reload(Ticket(70, b'"s"', "switch_session")))
    bench.tell(Retire(), NoMoreCommands())
    assert bench.desk.drain() == [RETIRED]
    bench.held[0]()
    bench.tell()
    assert SessionGone(1, 1) in bench.desk.drain()


@pytest.mark.parametrize("command", ABOUT_ALL)
def test_what_is_recorded_while_an_answer_is_made_is_in_the_next_one(tmp_path: Path, command: str) -> None:
    bench, same = grown(tmp_path / "long", 6), grown(tmp_path / "short", 100)
    bench.held = []
    for each in (bench, same):
        serial = start_bash(each)
        each.send(command)
        each.tell(finished(serial, Probe()))
    bench.held[0]()
    bench.tell()
    bench.held = None
    answers = [json.dumps(each.ask(command)) for each in (bench, same)]
    assert answers[0].replace("long", "short") == answers[1]


def test_a_session_is_retired_only_when_the_answer_that_is_made_has_left(tmp_path: Path) -> None:
    bench = grown(tmp_path, 6)
    bench.held = []
    bench.send("get_tree")
    bench.tell(Retire(), NoMoreCommands())
    assert bench.desk.drain() == []
    bench.held[0]()
    bench.tell()
    assert bench.told() == ["get_tree ok"]
    assert bench.desk.drain() == [RETIRED, SessionGone(1, 1)]


def test_an_answer_that_cannot_be_made_is_an_error_and_what_follows_is_answered(tmp_path: Path) -> None:
    bench = grown(tmp_path, 6)
    bench.session.history.tree.raws.clear()
    bench.send("get_tree", "get_last_assistant_text")
    assert bench.told() == ["get_tree: get_tree failed: IndexError", "get_last_assistant_text ok"]


def test_a_reload_lets_go_of_the_run_first(bench: Bench) -> None:
    bench.prompt()
    bench.told()
    ticket = Ticket(70, b'"s"', "switch_session")
    bench.tell(Reload(ticket))
    assert bench.desk.drain() == []
    bench.reply(stop="aborted")
    assert bench.told() == [*ASSISTANT, *END, "agent_settled"]
    assert bench.desk.drain() == [SessionReloaded(ticket)]
    assert bench.roles() == ["user", "assistant"]


def test_a_file_that_cannot_be_read_again_is_told_and_the_session_keeps_what_it_has(bench: Bench) -> None:
    bench.prompt()
    bench.reply()
    path = bench.session.history.path
    assert path is not None
    Path(path).write_text("no session\n")
    ticket = Ticket(70, b'"s"', "switch_session")
    bench.tell(Reload(ticket))
    (reloaded,) = bench.desk.drain()
    assert reloaded.error == f"Session file is not a valid atomic session: {path}"
    assert bench.roles() == ["user", "assistant"]


def test_a_fork_is_described_by_its_lines_its_parent_and_its_text(bench: Bench) -> None:
    bench.prompt("one")
    bench.reply()
    bench.prompt("two")
    bench.reply()
    forkable = bench.ask("get_fork_messages")["messages"]
    ticket = Ticket(70, b'"f"', "fork")
    bench.tell(DescribeFork(ticket, forkable[1]["entryId"]))
    (ready,) = bench.desk.drain()
    assert isinstance(ready, ForkReady)
    assert (ready.text, ready.parent_session) == ("two", bench.session.history.path)
    roles = [json.loads(line)["message"]["role"] for line in ready.lines if b'"message"' in line]
    assert roles == ["user", "assistant"]


def test_a_fork_of_nothing_is_refused(bench: Bench) -> None:
    ticket = Ticket(70, b'"f"', "fork")
    bench.tell(DescribeFork(ticket, "nope"))
    assert bench.desk.drain() == [ForkRefused(ticket, "Invalid entry ID for forking")]


def test_a_session_that_is_not_saved_cannot_be_cloned(bench: Bench) -> None:
    bench.tell(DescribeFork(Ticket(70, b'"c"', "clone"), None))
    (refused,) = bench.desk.drain()
    assert refused.error.startswith("This session has not been saved yet.")


def test_a_session_that_is_not_current_yet_says_nothing_of_what_its_history_owes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, key=2)
    told = TaskNotice(CompletionEnvelope("completion-t1", "owner-1", "t1", "1", TaskCompleted()), "look")
    bench.session.notices.owed["completion-t1"] = told
    bench.tell(UseCatalog(bench.catalog))
    assert bench.told() == [] and bench.requests == []
    bench.tell(BecomeCurrent(MODES))
    assert bench.told() == ["start custom", "end custom"] and bench.requests == []


def test_a_task_that_its_closed_owner_ended_is_told_also_when_the_session_is_back_before_and_begins_no_run(
    bench: Bench,
) -> None:
    result = TaskCancelled("owner-close")
    bench.session.notices.add(TaskNotice(CompletionEnvelope("completion-t1", "owner-1", "t1", "1", result), "sleep"))
    bench.session.outbox.send()
    assert [message["role"] for message in bench.ask("get_messages")["messages"]] == ["custom"]
    kinds = [entry.get("customType") for entry in bench.ask("get_entries")["entries"]]
    names = ("task-completion-intent", "task-completion", "task-completion-ack")
    assert [kind for kind in kinds if kind in names] == list(names)
    assert bench.requests == [] and bench.session.notices.owed == {}
