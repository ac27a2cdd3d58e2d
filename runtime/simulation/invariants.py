"""What must hold at the end of every course, whatever order its mail came in.

`violations` looks at a house that has been played: the bytes on stdout against the lines that the client wrote, the
journals, the commands that ran, and the mail. Each violation is one sentence. A crash, a failing disk or a client that
left excuses some things; the docstring of each check says which. The checks of one subject stand in a module of their
own (`response_rules`, `shell_rules`, `task_rules`, `agent_rules`, `queue_rules`, `event_order`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from actors.mail import (
    AgentSaid,
    AgentsAnswer,
    AnswerQuestion,
    BashRecorded,
    CancelCall,
    CancelShell,
    CancelTool,
    EndVisit,
    HideOutput,
    IntercomAnswer,
    LetGo,
    MutationGranted,
    NewHome,
    NoMoreCommands,
    ParentAnswer,
    Retire,
    SessionDescribed,
    SteerChild,
    StopAgent,
    StopCommand,
    StreamBytes,
    StreamEnded,
    StreamHead,
    TaskAnswer,
    TasksGone,
    Tick,
    ToolReturned,
    ToolUpdated,
    TraceGone,
    Visit,
    VisitorAnswered,
    VisitorBytes,
    VisitorCommand,
    VisitorEnded,
    VisitorRead,
    VisitorTold,
    WithdrawContact,
)
from actors.session.actor import Session
from runtime.simulation.agent_rules import apart, children, childs_calls, room
from runtime.simulation.event_order import event_order
from runtime.simulation.house import House
from runtime.simulation.queue_rules import prompts, queue
from runtime.simulation.response_rules import lanes, responses, told_after_written
from runtime.simulation.script import SECRET
from runtime.simulation.seen import Seen, Violation
from runtime.simulation.shell_rules import deltas, interrupts, recorded
from runtime.simulation.task_rules import notices, settlements, tasks, waits
from runtime.simulation.visitor_rules import visitor_answers, visitor_backlog, visitor_records, visitor_updates

TOO_LATE = frozenset(
    (
        StreamBytes,
        StreamEnded,
        StreamHead,
        ToolReturned,
        ToolUpdated,
        CancelCall,
        CancelTool,
        CancelShell,
        LetGo,
        TaskAnswer,
        TraceGone,
        AgentSaid,
        AgentsAnswer,
        TasksGone,
        ParentAnswer,
        IntercomAnswer,
        WithdrawContact,
        AnswerQuestion,
        SteerChild,
        StopAgent,
        StopCommand,
        HideOutput,
        MutationGranted,
        NewHome,
        Retire,
        NoMoreCommands,
        Visit,
        EndVisit,
        VisitorCommand,
        VisitorAnswered,
        VisitorBytes,
        VisitorEnded,
        VisitorRead,
        VisitorTold,
        SessionDescribed,
        Tick,
    )
)
"""Mail that may find its receiver gone: it can do nothing for one that has ended."""


def violations(house: House, is_over: bool) -> list[Violation]:
    seen = Seen(house, is_over)
    return [Violation(check.__name__, text) for check in CHECKS for text in check(seen)]


# ---- the process -------------------------------------------------------------------------------------------------


def ending(seen: Seen) -> Iterator[str]:
    """A crash may end the program, by Root and in order; only without a part that it has asked for something after its
    death does a session wait in vain, until the deadline. Without a clock nobody ends the wait for a client, or an
    inspector, that does not read."""
    house, is_over = seen.house, seen.is_over
    is_unread = house.sink.stopped or any(one.connection.is_unread for one in house.way_in.inspectors)
    if not is_over and not (seen.struck == "clock" and is_unread):
        stuck = [actor.name for actor in house.scheduler.actors if actor.has_mail]
        yield f"the program never ended (phase {house.root.phase}, mail left for {stuck})"
    elif house.gave_up and not house.sink.stopped and seen.struck not in ("shells", "catalog", "preferences"):
        yield f"the deadline passed: {house.stderr[-1]}"
    for name, error in house.scheduler.deaths:
        if not seen.crashed:
            yield f"{name} died of {type(error).__name__}: {error}"
    # the first of two reasons to stop decides, but what could not be written is no success
    wanted = {1 if house.sink.broken else 0, *(128 + number for number in house.course.signals)}
    if not seen.crashed and house.exit_code not in wanted:
        yield f"exit code {house.exit_code}"
    if is_over and not seen.crashed:
        yield from _left_running(house)


def _left_running(house: House) -> Iterator[str]:
    """What the program started it has ended, and what commands left behind as well."""
    for process in house.world.processes:
        if not (process.exited or process.killed):
            yield f"{process.plan.command} outlives the program"
        if process.lingers and process.exited and not process.failed and not process.swept:
            yield f"{process.plan.command} left a process behind that outlives the program"
    if house.is_cut_off:
        return
    yield from (f"request {stream.number} outlives the program" for stream in house.world.streams if not stream.is_over)
    yield from (f"a call of {tool.name} outlives the program" for tool in house.world.tools if not tool.is_over)
    if house.locked:
        yield f"session files are still locked: {sorted(house.locked)}"


def records(seen: Seen) -> Iterator[str]:
    """Only JSON objects with a type, whatever happens."""
    yield from (f"not a record on stdout: {line[:80]!r}" for line in seen.broken_lines)


def secrets(seen: Seen) -> Iterator[str]:
    """No credential on stdout, on stderr or in a session file."""
    house = seen.house
    shown = SECRET.encode()
    if any(shown in burst for burst, _ in house.sink.bursts):
        yield "a credential was written to stdout"
    if any(SECRET in line for line in house.stderr):
        yield "a credential was written to stderr"
    if any(shown in line for lines in house.disk.files.values() for line in lines):
        yield "a credential was written to a session file"


class _Entry(msgspec.Struct, rename="camel"):
    id: str
    parent_id: str | None


_READ_ENTRY = msgspec.json.Decoder(_Entry).decode


def files(seen: Seen) -> Iterator[str]:
    """A session file is a header and entries with ids of their own, each under one that came before, whatever
    happens."""
    for path, (header, *lines) in seen.house.disk.files.items():
        if msgspec.json.decode(header).get("type") != "session":
            yield f"{path} has no header"
        ids: set[str | None] = {None}
        for line in lines:
            entry = _READ_ENTRY(line)
            if entry.id in ids:
                yield f"the entry {entry.id} is twice in {path}"
            if entry.parent_id not in ids:
                yield f"the entry {entry.id} in {path} hangs on {entry.parent_id}, which is not there"
            ids.add(entry.id)


# ---- mail --------------------------------------------------------------------------------------------------------


def lost_mail(seen: Seen) -> Iterator[str]:
    """Nothing but what comes too late is told to one who is gone."""
    if seen.crashed or seen.house.is_cut_off:
        return
    for sender, receiver, mail in seen.house.scheduler.lost:
        too_late = type(mail) in TOO_LATE or (sender == "shells" and isinstance(mail, BashRecorded))
        if not too_late:
            yield f"{sender} told {receiver} {type(mail).__name__} after its end"
    for address in seen.house.scheduler.actors:
        session = address.actor
        if isinstance(session, Session) and not address.is_over and session.shells:
            yield f"{address.name} still waits for shell requests {sorted(session.shells)}"


def acks(seen: Seen) -> Iterator[str]:
    """All room is given back, save in windows that nobody waits at any more. A visitor gives back all that it reads,
    also after it has left."""
    house = seen.house
    if seen.crashed or house.is_cut_off:
        return
    if house.client.window.unsettled:
        yield f"{house.client.window.unsettled} reads of stdin were never acknowledged"
    for process in house.world.processes:
        if process.window.unsettled:
            yield f"{process.window.unsettled} outputs of {process.plan.command} were never acknowledged"
    for stream in house.world.streams:
        if stream.window.unsettled and not (stream.released or stream.window.is_closed):
            yield f"{stream.window.unsettled} pieces of a reply were never acknowledged"
    for inspector in house.way_in.inspectors:
        unsettled = inspector.connection.window.unsettled
        if unsettled:
            yield f"{unsettled} reads of an inspector were never acknowledged"


CHECKS: tuple[Callable[[Seen], Iterator[str]], ...] = (
    ending,
    records,
    responses,
    lanes,
    told_after_written,
    deltas,
    tasks,
    settlements,
    waits,
    notices,
    room,
    children,
    apart,
    childs_calls,
    recorded,
    interrupts,
    queue,
    prompts,
    event_order,
    visitor_answers,
    visitor_records,
    visitor_updates,
    visitor_backlog,
    lost_mail,
    acks,
    files,
    secrets,
)
