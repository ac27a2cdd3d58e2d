"""All mail between actors, grouped under its receiver.

Mail that asks is an imperative (`RunBash`), mail that tells a fact is past or a noun (`ReplyEnded`). Mail is frozen:
once told, nobody changes it. `Ticket` is the identity of a command on its way through the house; its serial is ours and
unique, the client's id is only echoed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from actors.base import Address, Down
from actors.model.attempts import NO_HINT, RequestLimits, RetryHint
from actors.pump import Ack
from actors.tool.table import ToolOptions
from protocol.envelope import failed, ok

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.catalog_view import CatalogView, Defaults
    from actors.model.prompt import Credential, ModelPrompt, RequestOptions
    from actors.session.file import OpenedSession
    from actors.session.surroundings import Surroundings
    from actors.session.tree import Entry
    from actors.task.agent_view import AgentView
    from actors.task.checkout import Changes, CheckoutPlan
    from actors.task.child_message import ChildMessage, Contact
    from actors.task.definition import AgentDefinition
    from actors.task.effects import WaitPolicy
    from actors.task.notice import TaskNotice
    from actors.task.transcript import History
    from actors.task.view import OutputView
    from actors.task.worktree import Checkout
    from actors.tool.table import Tool, ToolOutput
    from protocol.codec import Rejected
    from protocol.commands import Command, QueueMode, WithImages
    from protocol.events import AssistantMessageEvent
    from protocol.inspector import InspectorSession
    from protocol.messages import AssistantMessage, BashExecutionMessage, ToolCall, UserContent
    from protocol.model import Model, ThinkingLevel
    from protocol.tasks import (
        Action,
        ActivityState,
        CancelReceipt,
        Observation,
        TaskKind,
        TaskRecord,
        TaskResult,
        TranscriptEntry,
        YieldReason,
    )


class Ticket(Struct, frozen=True):
    """A command under way: our serial, the client's id as raw JSON (empty: none), and the name to echo. `visitor` tells
    who sent it: 0 is the client on stdin, the others are numbered, and each counts its own serials."""

    serial: int
    id: bytes
    command: str | None
    visitor: int = 0

    def ok(self, data: bytes | None = None) -> Record:
        return Record(ok(self.id, self.command or "", data), self.serial, self.visitor)

    def failed(self, error: str, code: str | None = None, details: dict[str, str] | None = None) -> Record:
        return Record(failed(self.id, self.command, error, code, details), self.serial, self.visitor)


class Tick(Struct, frozen=True):
    """The clock rings: the time that was armed with `key` has passed."""

    key: str


# ---- Writer ------------------------------------------------------------------------------------------------------


class Record(Struct, frozen=True):
    """Bytes for stdout: whole JSON lines. `serial` is that of the command which this record answers, else 0. With a
    `visitor` it is for that one, and never for stdout."""

    line: bytes
    serial: int = 0
    visitor: int = 0


class Write(Struct, frozen=True):
    """Write `records` in order. `boundary` ends the burst after them; `ack` is settled once the bytes have left."""

    records: tuple[Record, ...]
    boundary: bool = False
    ack: Ack | None = None


class CloseWriter(Struct, frozen=True):
    """Write what is pending and stop."""


WriterMail = Write | CloseWriter
PrinterMail = WriterMail | Tick
"""The Printer stands where the Writer does when the program is no server."""

# ---- Intake ------------------------------------------------------------------------------------------------------


class StdinBytes(Struct, frozen=True):
    data: bytes
    ack: Ack | None = None


class StdinEnded(Struct, frozen=True):
    pass


class Answered(Struct, frozen=True):
    """The Writer took the responses of these commands, and will take no other for them."""

    serials: tuple[int, ...]


class SessionCurrent(Struct, frozen=True):
    """From now on commands go to this session."""

    session: Address[SessionMail]


class CloseIntake(Struct, frozen=True):
    """Refuse what still comes, and answer what is held."""


class SessionLost(Struct, frozen=True):
    """A session died. The commands sent to it that are open get `error`, save those `alive` in a shell."""

    session: Address[SessionMail]
    error: str
    alive: frozenset[int]


class ImagesFitted(Struct, frozen=True):
    """The command with this serial, with images that a model takes, or why there are none."""

    serial: int
    command: WithImages | Rejected


class AnswerOpen(Struct, frozen=True):
    """Answer every command that is still open, so that none stays unanswered: a part of the house died, or (`last`) the
    end has come, which `InputEnded` then confirms."""

    error: str
    last: bool = False


IntakeMail = StdinBytes | Answered | ImagesFitted | SessionCurrent | StdinEnded | CloseIntake | SessionLost | AnswerOpen


class PromptEnded(Struct, frozen=True):
    """What came of a prompt of the command line, once nothing more comes by itself. `whole` tells that its answer is;
    `refused` that it was never accepted. Then, and when a run failed, `error` is for the user."""

    whole: bool
    error: str | None = None
    refused: bool = False


class ExtensionFailed(Struct, frozen=True):
    """What an `extension_error` tells: the run goes on, and where no events are shown the user hears of it this way."""

    path: str
    error: str


OneShotMail = IntakeMail | PromptEnded | ExtensionFailed
"""OneShot stands where Intake does when the prompts come with the command line."""

# ---- SessionDesk -------------------------------------------------------------------------------------------------


class OpenFirst(Struct, frozen=True):
    """The house stands: start the first session."""


class Replace(Struct, frozen=True):
    """new_session, switch_session, import_session, fork or clone."""

    ticket: Ticket
    command: Command


class TargetOpened(Struct, frozen=True):
    """The pump opened what was asked for. `serial` is the replacement's, or minus the key of a session that died."""

    serial: int
    opened: OpenedSession
    surroundings: Surroundings | None = None


class TargetFailed(Struct, frozen=True):
    serial: int
    error: str


class ForkReady(Struct, frozen=True):
    """The lines that the new session starts with, and the text that was forked from."""

    ticket: Ticket
    lines: tuple[bytes, ...]
    parent_session: str | None
    text: str | None = None


class ForkRefused(Struct, frozen=True):
    ticket: Ticket
    error: str


class Retired(Struct, frozen=True):
    """The session has let go: its turn is over and journaled, its queue reported. Shells may still run."""

    key: int
    modes: Mapping[QueueKind, QueueMode]
    defaults: Defaults | None = None


class SessionGone(Struct, frozen=True):
    """A retired session has recorded its last bash: it can be stopped, unless it was called back meanwhile. `heard`
    counts the `Retire` and `BecomeCurrent` that it has had."""

    key: int
    heard: int


class SessionReloaded(Struct, frozen=True):
    """The session has read its own file again; `error` tells that it could not, and kept what it had."""

    ticket: Ticket
    error: str | None = None


class CatalogChanged(Struct, frozen=True):
    """For the sessions that live, and for those that will start."""

    view: CatalogView


class TasksBegun(Struct, frozen=True):
    """A session has its first task: there is something to inspect."""


class DoorClosed(Struct, frozen=True):
    """Every visitor is gone, and no other can come."""


class CloseSessions(Struct, frozen=True):
    pass


SessionDeskMail = (
    OpenFirst
    | Replace
    | TargetOpened
    | TargetFailed
    | ForkReady
    | ForkRefused
    | Retired
    | SessionGone
    | SessionReloaded
    | CatalogChanged
    | TasksBegun
    | DoorClosed
    | CloseSessions
    | Down
)

# ---- Session -----------------------------------------------------------------------------------------------------


class Commands(Struct, frozen=True):
    """Commands in the order of the wire. A `Rejected` travels with them, so that its response keeps its place."""

    items: tuple[tuple[Ticket, Command | Rejected], ...]


class PassOn(Struct, frozen=True):
    """The desk's answer, to be told behind those of the commands that came before it."""

    response: Record


class NoMoreCommands(Struct, frozen=True):
    """Intake has sent its last to this session: another one is current."""


class DescribeFork(Struct, frozen=True):
    """Tell the desk what a fork before the user message `entry_id` (None: a clone at the leaf) starts with."""

    ticket: Ticket
    entry_id: str | None


class Retire(Struct, frozen=True):
    """Let go: abort the turn, report the emptied queue, journal; then `Retired`. With `alone` the owner is gone: once
    nothing that began here is left, close the file and stop."""

    alone: bool = False


class BecomeCurrent(Struct, frozen=True):
    """The hand-over is done. A session that was retiring lives again. `modes` and `defaults` are those of the one
    before."""

    modes: Mapping[QueueKind, QueueMode]
    defaults: Defaults | None = None


class Reload(Struct, frozen=True):
    """Switching to the session's own file: let go of the turn and read the file again."""

    ticket: Ticket


class QueuedMessage(Struct, frozen=True):
    """A message that waits. `key` is unique in its queue."""

    key: int
    text: str
    content: tuple[UserContent, ...]


class QueueView(Struct, frozen=True):
    """What the queue holds, for `queue_update` and `get_state`."""

    steering: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()
    paused: bool = False

    @property
    def pending(self) -> int:
        return len(self.steering) + len(self.follow_up)


QueueKind = Literal["steering", "followUp"]


class QueueChanged(Struct, frozen=True):
    """The answer to a command for the queue. `announce` asks for a `queue_update` before the response; a `Cleared`
    carries what was removed."""

    view: QueueView
    ticket: Ticket | None
    announce: bool = False
    cleared: QueueView | None = None
    released: bool | None = None


class Taken(Struct, frozen=True):
    """The answer to a poll; `kind` tells from which list `messages` came."""

    view: QueueView
    kind: QueueKind
    messages: tuple[QueuedMessage, ...]


class ReplyStarted(Struct, frozen=True):
    """The provider's stream has begun. `message` is the partial, encoded."""

    call: int
    message: bytes


class ReplyDelta(Struct, frozen=True):
    """What the reply grew by; `usage` is the encoded usage at that time."""

    call: int
    usage: bytes
    events: tuple[AssistantMessageEvent, ...]
    ack: Ack | None = None


class ReplyEnded(Struct, frozen=True):
    call: int
    message: AssistantMessage


class ToolProgress(Struct, frozen=True):
    call: int
    partial: ToolOutput


class ToolEnded(Struct, frozen=True):
    call: int
    output: ToolOutput


class BashFinished(Struct, frozen=True):
    """A shell request that began here is over. `message` is None when nothing ran (nothing is recorded then).
    The session answers `shell` with `BashRecorded`."""

    serial: int
    message: BashExecutionMessage | None
    shell: Address[BashRecorded]


UNTIL_ADOPTED = 0
"""Among the serials that a session waits for: the shell desk has yet to say which ones those are."""


class BashAdopted(Struct, frozen=True):
    """The session that these shell requests began in died, and this one has its file now."""

    serials: frozenset[int]


class BashLost(Struct, frozen=True):
    """The shell actor died: nothing will be recorded."""

    serial: int


class UseCatalog(Struct, frozen=True):
    """Models or credentials have changed."""

    view: CatalogView


class Exported(Struct, frozen=True):
    """The page of `export_html` is at `path`; None with an `error`: it could not be written."""

    ticket: Ticket
    path: str | None
    error: str = ""


class AnswerMade(Struct, frozen=True):
    """A pump has made what the answer to this command holds, unless there is an `error`."""

    ticket: Ticket
    value: Any
    error: str = ""


class Reread(Struct, frozen=True):
    """The session's own file was read again for the `Reload` with this ticket; None with an `error`: it could not."""

    ticket: Ticket
    opened: OpenedSession | None
    error: str = ""


class SurroundingsLoaded(Struct, frozen=True):
    """What `reload` read; None with an `error`: it could not, and everything stays."""

    ticket: Ticket
    surroundings: Surroundings | None
    error: str = ""


class CompactionWorked(Struct, frozen=True):
    """A pump is done with a part of the compaction `job`: `value` is what came out, unless there is an `error`."""

    job: int
    value: Any
    error: str = ""


class PreferenceSaved(Struct, frozen=True):
    """One value of this session is in the settings file, or stderr tells why not."""


class TaskChanged(Struct, frozen=True):
    """A task of this session as it is now. With a notice it is over, and the conversation has to hear of it."""

    record: TaskRecord
    notice: TaskNotice | None = None


class AgentMessaged(Struct, frozen=True):
    """A subagent of this session says something to it."""

    message: ChildMessage


class TaskResponse(Struct, frozen=True):
    """The answer to a command about tasks."""

    response: Record


class TranscriptGrew(Struct, frozen=True):
    """A subagent that is watched has said something."""

    said: AgentSaid


class TasksClosed(Struct, frozen=True):
    """Nothing is left of the tasks of this owner."""

    scope: str


class Visit(Struct, frozen=True):
    """Tell `to` about this session, and with `updates` about its tasks, from now on."""

    visitor: int
    to: Address[VisitorMail]
    updates: bool


class VisitorCommand(Struct, frozen=True):
    """A command about tasks. Its answer goes to `to`, also after the visit."""

    ticket: Ticket
    command: Command
    to: Address[VisitorMail]


class EndVisit(Struct, frozen=True):
    """This visitor looks at another session now, or at none."""

    visitor: int


class CatalogAnswered(Struct, frozen=True):
    """The catalogue is done with a command of this session: `response` goes out once `view` is in force."""

    response: Record
    view: CatalogView


SessionMail = (
    Commands
    | ReplyDelta
    | ReplyStarted
    | ReplyEnded
    | ToolProgress
    | ToolEnded
    | QueueChanged
    | Taken
    | BashFinished
    | BashLost
    | BashAdopted
    | DescribeFork
    | Retire
    | BecomeCurrent
    | Reload
    | NoMoreCommands
    | PassOn
    | UseCatalog
    | TaskChanged
    | AgentMessaged
    | TaskResponse
    | TasksClosed
    | TranscriptGrew
    | Visit
    | VisitorCommand
    | EndVisit
    | CatalogAnswered
    | PreferenceSaved
    | Reread
    | AnswerMade
    | SurroundingsLoaded
    | Exported
    | CompactionWorked
    | Tick
    | Down
)

# ---- Queue -------------------------------------------------------------------------------------------------------


class Enqueue(Struct, frozen=True):
    ticket: Ticket
    kind: QueueKind
    text: str
    content: tuple[UserContent, ...]


class TakeMessages(Struct, frozen=True):
    """Poll one list. For `followUp` nothing is handed out while steering waits (`next_run` takes steering first)."""

    kind: QueueKind
    next_run: bool = False


class ClearQueue(Struct, frozen=True):
    """Empty both lists and the hold. Without a ticket: the session lets go, and the view is announced."""

    ticket: Ticket | None


class PauseQueue(Struct, frozen=True):
    ticket: Ticket


class ResumeQueue(Struct, frozen=True):
    ticket: Ticket


class SetQueueMode(Struct, frozen=True):
    """Without a ticket: the mode is taken over from the session before."""

    ticket: Ticket | None
    kind: QueueKind
    mode: QueueMode


QueueMail = Enqueue | TakeMessages | ClearQueue | PauseQueue | ResumeQueue | SetQueueMode

# ---- ModelCall ---------------------------------------------------------------------------------------------------


class ModelRequest(Struct, frozen=True):
    """One request to a provider. `call` is the session's number for it. `authorize` finds the credential for a model;
    it may run commands, so it belongs into a pump, and raises `ValueError` with a text for the user."""

    call: int
    model: Model
    prompt: ModelPrompt
    options: RequestOptions
    authorize: Callable[[Model], Credential]
    limits: RequestLimits = RequestLimits()


class StreamHead(Struct, frozen=True):
    status: int
    hint: RetryHint = NO_HINT


class StreamBytes(Struct, frozen=True):
    data: bytes
    ack: Ack | None = None


class StreamEnded(Struct, frozen=True):
    """The body is over. `error` tells that it did not end well, `unanswered` that the network failed before a head."""

    error: str | None = None
    unanswered: bool = False


class CancelCall(Struct, frozen=True):
    pass


ModelCallMail = StreamBytes | StreamHead | StreamEnded | CancelCall | Tick

# ---- ToolCall ----------------------------------------------------------------------------------------------------


class ToolRequest(Struct, frozen=True):
    """One call of a tool. `call` is the session's number for it, `tool_call` what the model asked for. `tasks` owns
    what the call starts; without it a command is the call's own. `parent` is for a tool that starts subagents."""

    call: int
    tool: Tool
    tool_call: ToolCall
    place: ToolPlace
    tasks: Address[TaskDeskMail] | None = None
    parent: ParentView | None = None


class ToolPlace(Struct, frozen=True):
    """Where a tool runs: the session's folder and what its children see of the session."""

    cwd: str
    session_id: str
    environment: Mapping[str, str]
    supports_images: bool
    options: ToolOptions = ToolOptions()


class ParentView(Struct, frozen=True):
    """What subagents take over of the session that starts them, as it was then. `path` is its file (None: in memory),
    `branch` its entries from the root to the leaf, `tools` the names of its tools."""

    path: str | None
    is_saved: bool
    branch: tuple[Entry, ...]
    model: Model | None
    level: ThinkingLevel
    catalog: CatalogView
    defaults: Defaults
    tools: tuple[str, ...]


class ToolUpdated(Struct, frozen=True):
    partial: ToolOutput


class ToolReturned(Struct, frozen=True):
    output: ToolOutput


class MutationGranted(Struct, frozen=True):
    """The file is this call's alone until `ReleaseMutation`."""

    path: str


class CancelTool(Struct, frozen=True):
    pass


class LetGo(Struct, frozen=True):
    """A message of the user or of a subagent waits for the parent: no wait of this call for a task is to hold it up."""

    reason: YieldReason


class TaskAnswer(Struct, frozen=True):
    """What came of a launch, a wait or a kill: once for each. `outcome` is how the wait ended or what the kill came
    upon; a text: why it was refused."""

    outcome: Observation | CancelReceipt | str
    view: OutputView | None = None


class ParentAnswer(Struct, frozen=True):
    """What came of contacting the parent, once for each: its answer, that the message was passed on, or (`is_error`)
    why neither. `request_id` names the question that is answered."""

    text: str
    request_id: str | None = None
    is_error: bool = False


class IntercomAnswer(Struct, frozen=True):
    """What came of a call of `intercom`, as JSON. A refusal comes as `TaskAnswer`."""

    told: Mapping[str, Any]


class AgentsPlanned(Struct, frozen=True):
    """A pump has read what a launch of subagents needs. `run` names the launch."""

    run: str
    plans: tuple[AgentPlan | AgentRefusal, ...]


class AgentSlot(Struct, frozen=True):
    """One agent of a launch: how the wait for it ended, or why it was not admitted. Without an outcome: as it is."""

    outcome: Observation | AgentRefusal | None
    record: TaskRecord | None = None
    view: AgentView | None = None


class AgentsAnswer(Struct, frozen=True):
    """What became of each agent of a launch, in their order; or those that a call asked about. Once for each."""

    slots: tuple[AgentSlot, ...]


class TasksGone(Struct, frozen=True):
    """This desk died, or its session did: what it has not heard of by now gets no answer from it."""

    desk: Address[TaskDeskMail]


ToolCallMail = (
    ToolUpdated
    | ToolReturned
    | MutationGranted
    | CancelTool
    | LetGo
    | TaskAnswer
    | AgentsPlanned
    | AgentsAnswer
    | TasksGone
    | ParentAnswer
    | IntercomAnswer
)

# ---- MutationDesk ------------------------------------------------------------------------------------------------


class AcquireMutation(Struct, frozen=True):
    path: str
    holder: Address[MutationGranted]


class ReleaseMutation(Struct, frozen=True):
    """`holder` no longer wants the file, whether it has it or waits for it."""

    path: str
    holder: Address[MutationGranted]


MutationDeskMail = AcquireMutation | ReleaseMutation

# ---- ShellDesk ---------------------------------------------------------------------------------------------------


class ShellPlan(Struct, frozen=True):
    """Where and how a shell request runs, taken when it starts."""

    command: str
    cwd: str
    session_id: str
    environment: Mapping[str, str]
    exclude_from_context: bool


class RunBash(Struct, frozen=True):
    ticket: Ticket
    plan: ShellPlan
    home: Address[SessionMail]


class AbortBash(Struct, frozen=True):
    """Cancel the requests with this id (raw JSON), or all of them."""

    ticket: Ticket
    request_id: bytes | None


class HomeMoved(Struct, frozen=True):
    """A session died and its file was opened again: what began there is recorded through the new address. `error` is
    for the commands that died with the old one."""

    old: Address[SessionMail]
    new: Address[SessionMail]
    error: str


class Remains(Protocol):
    """Processes that a finished command left in the background. `close` tells whether some still live."""

    def close(self) -> bool: ...
    def kill_group_leftovers(self) -> None: ...


class ShellEnded(Struct, frozen=True):
    serial: int


class LeftBehind(Struct, frozen=True):
    """A command ended, its background processes live on. They are left alone until the program ends."""

    remains: Remains


class CloseShells(Struct, frozen=True):
    """Cancel all that run, and all that still come. `last`: no session is left that could begin another, so say
    `ShellsClosed` once none runs."""

    last: bool = False


class RemainsKilled(Struct, frozen=True):
    """A pump has killed some of what was left behind."""


ShellDeskMail = RunBash | AbortBash | ShellEnded | LeftBehind | HomeMoved | CloseShells | RemainsKilled | Down

# ---- Shell -------------------------------------------------------------------------------------------------------


class ShellOutput(Struct, frozen=True):
    channel: Literal["stdout", "stderr"]
    data: bytes
    ack: Ack | None = None


class ShellExited(Struct, frozen=True):
    """`code` is None after a signal; `error` tells that nothing could be started."""

    code: int | None
    error: str | None = None


class CancelShell(Struct, frozen=True):
    pass


class NewHome(Struct, frozen=True):
    home: Address[SessionMail]


class BashRecorded(Struct, frozen=True):
    """The home session has the result in its file, or tells why not."""

    error: str | None = None


ShellMail = ShellOutput | ShellExited | CancelShell | BashRecorded | NewHome

# ---- TaskDesk ----------------------------------------------------------------------------------------------------


class ShellTaskPlan(Struct, frozen=True):
    """What a shell task runs, and where. `shell` is the tool that was called; `timeout_s` counts from the start."""

    command: str
    cwd: str
    session_id: str
    environment: Mapping[str, str]
    timeout_s: int
    pty: bool = False
    shell: str = "bash"


class LaunchShell(Struct, frozen=True):
    """Run a command as a task of this owner. `operation` names the launch; `to` hears once how its wait ended."""

    operation: str
    plan: ShellTaskPlan
    policy: WaitPolicy
    to: Address[ToolCallMail]


class AgentPlan(Struct, frozen=True):
    """What a subagent is to do, and as what. `fallback_models` are entries like those of the setting; `run` names the
    launch and `index` the place in it. `skipped` tells of models that were passed over. `max_lines` and `max_bytes`
    bound the answer that the parent is shown. With `checkout` it gets a worktree, in which `cwd` lies. `folder` is what
    was read of `cwd`, for the port that made it."""

    agent: AgentDefinition
    task: str
    cwd: str
    context: Literal["fresh", "fork"]
    model: Model
    level: ThinkingLevel
    fallback_models: tuple[str, ...]
    tools: tuple[str, ...]
    parent: ParentView
    run: str
    index: int | None
    skipped: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    output: str | None = None
    only_file: bool = False
    artifacts: bool = True
    max_lines: int = 5000
    max_bytes: int = 204_800
    checkout: CheckoutPlan | None = None
    folder: Any = None


class AgentRefusal(Struct, frozen=True):
    """Why an agent was not admitted."""

    code: str
    message: str


class LaunchAgents(Struct, frozen=True):
    """Run these as tasks of this owner, at most `concurrency` of them at once. `operation` names the launch; `to` hears
    once what became of all of them."""

    operation: str
    plans: tuple[AgentPlan | AgentRefusal, ...]
    policy: WaitPolicy
    concurrency: int | None
    to: Address[ToolCallMail]


class DescribeAgents(Struct, frozen=True):
    """Tell of one subagent, or of all, without waiting."""

    task_id: str | None
    to: Address[ToolCallMail]


class WaitForTask(Struct, frozen=True):
    """Observe a task of this kind that exists. Without a budget that of the owner counts."""

    task_id: str
    budget_ms: float | None
    to: Address[ToolCallMail]
    kind: TaskKind = "command"


class KillTask(Struct, frozen=True):
    """End a task of this kind."""

    task_id: str
    to: Address[ToolCallMail]
    kind: TaskKind = "command"


class GiveUp(Struct, frozen=True):
    """This call was cancelled. A launch that it still waits for is cancelled with it, other tasks run on."""

    call: Address[ToolCallMail]


class UseIntercom(Struct, frozen=True):
    """The parent's model looks at its agents, or tells one of them something. `target` is a task id or a name,
    `reply_to` names a question."""

    action: Literal["list", "pending", "reply", "send"]
    target: str | None
    reply_to: str | None
    message: str
    to: Address[ToolCallMail]


class ReleaseWaits(Struct, frozen=True):
    """A message for the parent was taken: what it waits for runs on without it."""

    reason: YieldReason


class TaskCommand(Struct, frozen=True):
    """A command of the client about one task. Answered by one `TaskResponse`."""

    ticket: Ticket
    command: Command


class TaskSpawned(Struct, frozen=True):
    task_id: str


class TaskEnded(Struct, frozen=True):
    """How it ended. What it started may live on."""

    task_id: str
    result: TaskResult
    view: OutputView | AgentView


class TaskReaped(Struct, frozen=True):
    """Nothing that it started is left, and its output is complete."""

    task_id: str
    view: OutputView | AgentView


class AgentProgress(Struct, frozen=True):
    """What a subagent does now, and what it has done: tools that it called, tokens that its requests took. `activity`
    and `is_quiet` tell whether somebody should look at it."""

    task_id: str
    model: str
    level: str
    action: Action | None
    tools: int
    tokens: int
    activity: ActivityState | None = None
    is_quiet: bool = False


class AgentSpoke(Struct, frozen=True):
    """A subagent says something to its parent. If it waits for an answer, `message_id` names the question."""

    task_id: str
    message_id: str
    contact: Contact


class QuestionWithdrawn(Struct, frozen=True):
    """Nobody waits for an answer to this any more."""

    task_id: str
    request_id: str


class TaskUncleaned(Struct, frozen=True):
    """What could not be ended in time; `TaskReaped` may still come."""

    task_id: str
    resources: tuple[str, ...]


class TaskOrphaned(Struct, frozen=True):
    """The last words of a task's actor: this is left of the task, and goes by itself."""

    task_id: str
    resources: tuple[str, ...]


class TraceGone(Struct, frozen=True):
    """Nothing is left of what a task's actor has started. Told past that actor, which may be dead."""

    task_id: str


class TaskOverLimit(Struct, frozen=True):
    task_id: str


class WatchTranscripts(Struct, frozen=True):
    """Somebody watches what these subagents say, and nobody any other."""

    task_ids: frozenset[str]


class AgentSaid(Struct, frozen=True):
    """What is new of a subagent that is watched: `entries`, encoded, from the number `first` on, and what it is saying.
    `ack` is settled once the client has it, or at once if the client does not watch."""

    task_id: str
    first: int
    entries: tuple[bytes, ...]
    live: TranscriptEntry | None
    ack: Ack


class TranscriptRead(Struct, frozen=True):
    """What a subagent has said so far, as far as it is kept, and what it is saying."""

    number: int
    history: History
    live: TranscriptEntry | None


class HistoryRead(Struct, frozen=True):
    """Entries of a transcript out of a session file, encoded; None if it cannot be read."""

    number: int
    entries: tuple[bytes, ...] | None


class OutputRead(Struct, frozen=True):
    number: int
    view: OutputView


class InputTyped(Struct, frozen=True):
    """How much of an input a task took, or the code and text of why not. It also answers `ResizeTerminal`."""

    ticket: Ticket
    accepted: int
    error: str | None = None


class CloseTasks(Struct, frozen=True):
    """End everything that is owned here. `TasksClosed` comes when nothing of it is left. With `alone` the session is
    gone: stop then."""

    alone: bool = False


class PauseTasks(Struct, frozen=True):
    """Refuse launches, and end everything that is owned here now. `to` hears once, as `TasksPaused`, when nothing of
    that is left, or what is."""

    to: Address[PauseMail]


class ResumeTasks(Struct, frozen=True):
    """Allow launches again. `to` hears once, as `TasksResumed`. Nothing that was stopped comes back."""

    to: Address[PauseMail]


TaskDeskMail = (
    LaunchShell
    | LaunchAgents
    | DescribeAgents
    | WaitForTask
    | KillTask
    | UseIntercom
    | GiveUp
    | ReleaseWaits
    | TaskCommand
    | TaskSpawned
    | TaskEnded
    | TaskReaped
    | TaskUncleaned
    | TaskOverLimit
    | TaskOrphaned
    | TraceGone
    | AgentProgress
    | AgentSpoke
    | QuestionWithdrawn
    | WatchTranscripts
    | AgentSaid
    | TranscriptRead
    | HistoryRead
    | OutputRead
    | InputTyped
    | CloseTasks
    | PauseTasks
    | ResumeTasks
    | Tick
    | Down
)


class TasksPaused(Struct, frozen=True):
    """With an `error` the pause is not confirmed: something could not be ended in time. The receipts tell how each of
    the tasks stands, in the order of launch. Launches are refused in either case."""

    error: str | None
    receipts: tuple[CancelReceipt, ...] = ()


class TasksResumed(Struct, frozen=True):
    """The generation of what is launched from now on, or why nothing can be."""

    generation: str | None
    error: str | None = None


PauseMail = TasksPaused | TasksResumed
"""What one that pauses tasks takes."""

# ---- ShellTask ---------------------------------------------------------------------------------------------------


class CommandBegun(Struct, frozen=True):
    """The process is there."""


class CommandOutput(Struct, frozen=True):
    channel: Literal["stdout", "stderr"]
    data: bytes
    ack: Ack | None = None


class CommandExited(Struct, frozen=True):
    """`code` is None after a signal; `error` tells that nothing could be started, `failure` is the name for that."""

    code: int | None
    signal: int | None = None
    error: str | None = None
    failure: str = "SpawnFailed"


class CommandSwept(Struct, frozen=True):
    """Everything that it started is gone and reaped, or, with `left`, not yet: then this comes again."""

    left: tuple[str, ...] = ()


class StopCommand(Struct, frozen=True):
    """End it: SIGTERM first, or `at_once`. With `alone` there is no desk any more: stop when it is gone."""

    at_once: bool = False
    alone: bool = False


class HideOutput(Struct, frozen=True):
    """Nobody waits for the launch any more: no more snapshots."""


class ReadOutput(Struct, frozen=True):
    """Tell the desk `OutputRead` with this number. `page`: the next page, which is read with it; else the tail."""

    number: int
    page: bool = False


class TypeInput(Struct, frozen=True):
    """Type this on the task's terminal. `operation` names it: the same one twice is typed once."""

    ticket: Ticket
    operation: str
    data: bytes


class ResizeTerminal(Struct, frozen=True):
    """In characters."""

    ticket: Ticket
    columns: int
    rows: int


class InputTyping(Struct, frozen=True):
    """The pump has typed so much, and still types."""

    accepted: int


class InputTaken(Struct, frozen=True):
    """The pump has typed so much; less than it was given means that the terminal is gone."""

    accepted: int


ShellTaskMail = (
    CommandOutput
    | CommandBegun
    | CommandExited
    | CommandSwept
    | StopCommand
    | HideOutput
    | ReadOutput
    | TypeInput
    | ResizeTerminal
    | InputTyping
    | InputTaken
    | Tick
)

# ---- Subagent ----------------------------------------------------------------------------------------------------


class ChildOpened(Struct, frozen=True):
    """The pump made the child's session, and read what its folder brings. `checkout` is to be put away at the end."""

    opened: OpenedSession
    surroundings: Surroundings
    artifacts: tuple[str, ...] = ()
    checkout: Checkout | None = None


class ChildRefused(Struct, frozen=True):
    """There is no session for the child."""

    error: str


class ChildSaid(Struct, frozen=True):
    """What the child told its Writer, its desk or the shell desk: the subagent stands in their place."""

    mail: WriterMail | SessionDeskMail | ShellDeskMail


class ArtifactsWritten(Struct, frozen=True):
    """The pump wrote what is kept of the answer, or `error` tells why not. `saved_to` is the file that the call asked
    for, `changes` what was found in a worktree, which is put away."""

    paths: tuple[str, ...] = ()
    saved_to: str | None = None
    error: str | None = None
    changes: Changes | None = None


class ReadTranscript(Struct, frozen=True):
    """Tell the desk `TranscriptRead` with this number."""

    number: int


class WatchTranscript(Struct, frozen=True):
    """Tell the desk what is said as `AgentSaid`, from now on, or no more."""

    on: bool


class StopAgent(Struct, frozen=True):
    """End it. With `alone` there is no desk any more: stop when nothing of it is left."""

    alone: bool = False


class ContactParent(Struct, frozen=True):
    """A call of the child speaks to the parent; `to` gets one `ParentAnswer`."""

    contact: Contact
    to: Address[ToolCallMail]


class WithdrawContact(Struct, frozen=True):
    """This call waits no longer."""

    call: Address[ToolCallMail]


class AnswerQuestion(Struct, frozen=True):
    """The parent's answer, or that of the user."""

    request_id: str
    text: str


class SteerChild(Struct, frozen=True):
    """The parent tells the child something that it reads before its next request."""

    text: str


SubagentMail = (
    ChildOpened
    | ChildRefused
    | ChildSaid
    | ArtifactsWritten
    | ContactParent
    | WithdrawContact
    | AnswerQuestion
    | SteerChild
    | ReadTranscript
    | WatchTranscript
    | StopAgent
    | Tick
    | Down
)

# ---- Door --------------------------------------------------------------------------------------------------------


class Connection(Protocol):
    """One connection to an inspector. Nothing here waits. `read` begins to tell what comes, as `VisitorBytes` and one
    `VisitorEnded`; of what is sent, `VisitorRead` tells how much has left. `dismiss` sends one short line to somebody
    who has been sent nothing yet, and closes."""

    def read(self, to: Address[VisitorMail]) -> None: ...
    def send(self, data: bytes, to: Address[VisitorMail]) -> None: ...
    def dismiss(self, line: bytes) -> None: ...
    def close(self) -> None: ...


class VisitorCame(Struct, frozen=True):
    connection: Connection


class DoorRefused(Struct, frozen=True):
    """There is no socket or pipe that an inspector could find."""

    error: str


class ShowSession(Struct, frozen=True):
    """From now on visitors look at this session."""

    session: Address[SessionMail]


class SessionLeft(Struct, frozen=True):
    """This session has answered its last: with `error`, whatever of it is still open."""

    session: Address[SessionMail]
    error: str


class VisitorGone(Struct, frozen=True):
    visitor: int


class CloseDoor(Struct, frozen=True):
    """Let nobody in any more, and see the visitors out; `DoorClosed` follows."""


DoorMail = VisitorCame | DoorRefused | ShowSession | SessionLeft | VisitorGone | CloseDoor | Down

# ---- Visitor -----------------------------------------------------------------------------------------------------


class VisitorBytes(Struct, frozen=True):
    data: bytes
    ack: Ack | None = None


class VisitorEnded(Struct, frozen=True):
    """Nothing more comes. `is_gone`: nothing can be sent either."""

    is_gone: bool = False


class VisitorRead(Struct, frozen=True):
    """So many bytes have left."""

    size: int


class FaceSession(Struct, frozen=True):
    session: Address[SessionMail]


class LoseSession(Struct, frozen=True):
    """What this session has not answered by now, it never will."""

    session: Address[SessionMail]
    error: str


class SeeOut(Struct, frozen=True):
    """The program ends."""


class SessionDescribed(Struct, frozen=True):
    """Which session it is that a visitor looks at, and what of it has changed."""

    session: Address[SessionMail]
    facts: InspectorSession


class VisitorAnswered(Struct, frozen=True):
    """The answer to a command of this visitor. `updates` tells whether it hears of tasks now, if that was asked for."""

    response: Record
    updates: bool | None = None


class VisitorTold(Struct, frozen=True):
    """Events of this session, encoded, each with its line feed."""

    session: Address[SessionMail]
    lines: bytes


VisitorMail = (
    VisitorBytes
    | VisitorTold
    | VisitorAnswered
    | VisitorRead
    | VisitorEnded
    | SessionDescribed
    | FaceSession
    | LoseSession
    | SeeOut
    | Tick
)

# ---- Clock -------------------------------------------------------------------------------------------------------


class Arm(Struct, frozen=True):
    """Tell `to` a `Tick(key)` in `delay_ms` milliseconds."""

    key: str
    delay_ms: int
    to: Address[Tick]


class Woke(Struct, frozen=True):
    """The clock's pump has slept as long as it was told."""


ClockMail = Arm | Woke

# ---- Catalog -----------------------------------------------------------------------------------------------------


class RefreshCatalog(Struct, frozen=True):
    """Read models and credentials again. After `timeout_ms` the answer tells what is known by then."""

    ticket: Ticket
    session: Address[SessionMail]
    timeout_ms: float | None


class SaveCredential(Struct, frozen=True):
    ticket: Ticket
    session: Address[SessionMail]
    provider: str
    credential: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"SaveCredential({self.ticket!r}, provider={self.provider!r})"


class RemoveCredential(Struct, frozen=True):
    ticket: Ticket
    session: Address[SessionMail]
    provider: str


class CatalogLoaded(Struct, frozen=True):
    """What the files held when the reading began, `at` seconds of a clock that never goes back. Only a view knows what
    `files` is. `errors` are pairs of provider (or file) and message."""

    job: int
    at: float
    files: Any
    errors: tuple[tuple[str, str], ...] = ()


class CatalogLate(Struct, frozen=True):
    """The deadline of a refresh has passed; its result may still come."""

    job: int


class CredentialRefused(Struct, frozen=True):
    """A credential was not written. Or, `committed`, it was, and then the files could not be read."""

    job: int
    error: str
    committed: bool = False


CatalogMail = RefreshCatalog | SaveCredential | RemoveCredential | CatalogLoaded | CatalogLate | CredentialRefused

# ---- Preferences -------------------------------------------------------------------------------------------------


class SavePreference(Struct, frozen=True):
    """Write one value into the user's settings file. `session` waits with its end until that is tried."""

    path: tuple[str, ...]
    value: Any
    session: Address[SessionMail] | None = None


PreferencesMail = SavePreference

# ---- Root --------------------------------------------------------------------------------------------------------


class InputEnding(Struct, frozen=True):
    """Stdin is closed. What came before is still worked off; `InputEnded` follows."""


class InputEnded(Struct, frozen=True):
    """Nothing that comes from the client is let in any more. `answered` says that it follows the last `AnswerOpen`.
    `exit_code` counts unless something else has begun to end the process."""

    answered: bool = False
    exit_code: int = 0


class SignalReceived(Struct, frozen=True):
    number: int


class StdoutClosed(Struct, frozen=True):
    """Nothing more can be written. `error` is empty if that is only because the client went away."""

    error: str = ""


class SessionsClosed(Struct, frozen=True):
    pass


class ShellsClosed(Struct, frozen=True):
    pass


class WriterClosed(Struct, frozen=True):
    pass


RootMail = (
    InputEnding
    | InputEnded
    | SignalReceived
    | StdoutClosed
    | SessionsClosed
    | ShellsClosed
    | WriterClosed
    | Tick
    | Down
)
