"""What must hold of tasks: each is admitted, settles and is reaped once, each wait ends once, the first cause is kept,
and what ended in the background is told once, also over a crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from actors.mail import (
    AgentPlan,
    AgentRefusal,
    AgentsAnswer,
    ContactParent,
    DescribeAgents,
    IntercomAnswer,
    KillTask,
    LaunchAgents,
    LaunchShell,
    ParentAnswer,
    TaskAnswer,
    TaskCommand,
    TaskResponse,
    UseIntercom,
    WaitForTask,
)
from actors.task.child_message import MESSAGE as INTERCOM
from actors.task.child_message import RECEIVED
from actors.task.notice import ACK, INTENT, MESSAGE
from actors.tool.actor import ToolCall
from protocol.tasks import (
    Cancelling,
    CleanupReaped,
    Queued,
    Running,
    Settled,
    TaskCancelled,
    TaskFailed,
    TaskRecord,
    YieldedWait,
)
from runtime.simulation.course import Course
from runtime.simulation.disk import Disk
from runtime.simulation.house import House
from runtime.simulation.scheduler import kind_of
from runtime.simulation.seen import Seen

_STEPS = {INTENT: "intent", RECEIVED: "intent", MESSAGE: "said", INTERCOM: "said", ACK: "ack"}
_PHASES = (Queued, Running, Cancelling, Settled)


def tasks(seen: Seen) -> Iterator[str]:
    """Nothing of a task outlives the program. After a crash the sweep of the process has to see to it, unless the actor
    of a command died: its desk waits for what that left."""
    house = seen.house
    struck = house.fault.struck if house.fault is not None else None
    is_excused = seen.crashed and not (struck is not None and kind_of(struck) == "task")
    if seen.is_over and not (is_excused or house.is_cut_off):
        yield from (f"{one.task_id} outlives the program: {one.plan}" for one in house.commands if not one.is_reaped)


def settlements(seen: Seen) -> Iterator[str]:
    """A task goes from queued over running and cancelling to settled, never back; its first cause and its result stay;
    one that is cancelled before it runs never starts; each one settles and is reaped before the program is over. Where
    the desk died, or the program was cut off, nobody is told of the end."""
    house = seen.house
    started = Counter(one.task_id for one in house.agents)
    yield from (f"{task_id} was started {times} times" for task_id, times in started.items() if times > 1)
    excused = not seen.is_over or house.is_cut_off or (seen.struck or "").startswith("tasks-") or seen.is_fatal
    for task_id, told in house.task_book.records.items():
        records = [record for _, record in told]
        yield from (f"{task_id} {fault}" for fault in _course_faults(records))
        last = records[-1]
        ran = any(isinstance(record.execution, Running) for record in records)
        if task_id in started and not ran:
            yield f"{task_id} never ran, but was started"
        if not excused and not (isinstance(last.execution, Settled) and isinstance(last.cleanup, CleanupReaped)):
            yield f"{task_id} is {last.state} at the end, and its cleanup {last.cleanup}"


def _course_faults(records: list[TaskRecord]) -> Iterator[str]:
    phases = [_PHASES.index(type(record.execution)) for record in records]
    if phases != sorted(phases):
        yield f"went back: {[record.state for record in records]}"
    causes = [cause for record in records if (cause := _cause(record)) is not None]
    if len(set(causes)) > 1:
        yield f"was stopped for one cause and then for another: {causes}"
    results = [record.execution.result for record in records if isinstance(record.execution, Settled)]
    if any(result != results[0] for result in results):
        yield f"settled as {results[0]} and then otherwise"
    was_stopping = any(isinstance(record.execution, Cancelling) for record in records)
    if was_stopping and results and not isinstance(results[0], TaskCancelled | TaskFailed):
        yield f"was stopped, and then settled as {results[0]}"


def _cause(record: TaskRecord) -> str | None:
    """Why it is stopped; a task whose output is too long has failed for it."""
    match record.execution:
        case Cancelling(cause) | Settled(TaskCancelled(cause)):
            return cause
        case Settled(TaskFailed(code="OutputLimitExceeded")):
            return "output-limit"
    return None


class _Asking:
    """What was asked of the desks of tasks, and what they answered. Calls of different sessions may share a name."""

    def __init__(self, house: House) -> None:
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self._launches: dict[str, LaunchAgents] = {}
        self._told: dict[str, list[AgentsAnswer]] = {}
        for _, receiver, mail in house.scheduler.trace:
            self._take(receiver, mail)

    def _take(self, receiver: str, mail: Any) -> None:
        match mail:
            case (
                LaunchShell(to=to) | LaunchAgents(to=to) | DescribeAgents(to=to) | WaitForTask(to=to) | KillTask(to=to)
            ):
                self.asked[_name(to)] += 1
                if isinstance(mail, LaunchAgents):
                    self._launches[_name(to)] = mail
            case UseIntercom(to=to) | ContactParent(to=to):
                self.asked[_name(to)] += 1
            case IntercomAnswer() | ParentAnswer():
                self.answered[receiver] += 1
            case TaskCommand(ticket):
                self.asked[f"command {ticket.serial}"] += 1
            case TaskResponse(response):
                self.answered[f"command {response.serial}"] += 1
            case TaskAnswer(outcome):
                self._answer(receiver, [outcome])
            case AgentsAnswer(slots):
                self._answer(receiver, [slot.outcome for slot in slots])
                self._told.setdefault(receiver, []).append(mail)

    def _answer(self, receiver: str, outcomes: list[Any]) -> None:
        self.answered[receiver] += 1
        self.ended.update(outcome.wait_id for outcome in outcomes if isinstance(outcome, YieldedWait))

    def launches(self) -> Iterator[tuple[str, LaunchAgents, AgentsAnswer]]:
        """Those that were answered, each with its answer."""
        for who, launch in self._launches.items():
            if self.asked[who] == 1:
                yield from ((who, launch, answer) for answer in self._told.get(who, ()))


def waits(seen: Seen) -> Iterator[str]:
    """Each call that asked the desk of its tasks is answered once, and each command of the client; no wait ends twice.
    A launch of several is answered with one slot for each, in which those that were admitted have their task. After a
    crash the call ends all the same; what is asked when the program is cut off may stay unanswered."""
    house, asking = seen.house, _Asking(seen.house)
    for who, launch, answer in asking.launches():
        yield from _slot_faults(who, launch.plans, answer)
    yield from (f"{wait} ended {times} times" for wait, times in asking.ended.items() if times > 1)
    too_often = Counter() if seen.crashed else asking.answered - asking.asked  # a desk that dies answers all once more
    yield from (f"{who} was answered {asking.answered[who]} times" for who in too_often)
    was_slow = house.gave_up and (seen.crashed or house.sink.stopped)
    if house.client.signalled > 1 or was_slow or seen.is_fatal or not seen.is_over:
        return
    waiting = asking.asked - asking.answered
    if seen.crashed:
        live = {one.name for one in house.scheduler.actors if isinstance(one.actor, ToolCall) and not one.is_over}
        waiting = Counter(who for who in waiting if who in live)
    yield from (f"{who} was never answered" for who in waiting)


def _name(address: Any) -> str:
    name: str = address.name
    return name


def _slot_faults(call: str, plans: tuple[Any, ...], mail: AgentsAnswer) -> Iterator[str]:
    if len(mail.slots) != len(plans):
        yield f"{call} launched {len(plans)} agents and was told of {len(mail.slots)}"
    for plan, slot in zip(plans, mail.slots, strict=False):
        admitted = not isinstance(slot.outcome, AgentRefusal)
        if isinstance(plan, AgentPlan) and admitted and slot.record is None:
            yield f"{call} was not told which task an agent of it is"
        if isinstance(plan, AgentRefusal) and admitted:
            yield f"{call} launched what was refused"


def notices(seen: Seen) -> Iterator[str]:
    """What ended in the background, and what a subagent has said, is told at most once in each file: after it was
    written down, and before the acknowledgement of an end, over crashes too. When the program is started again on a
    file that owes any of it, it says it then, once. A fork may have the beginning of that in the history that it
    started with, and what a full disk refused is missing."""
    house = seen.house
    for path, lines in house.disk.files.items():
        told = _told_in(lines)
        for name, course in told.items():
            whole = _whole(name)
            begins = whole.index(course[0])
            is_twice = len(set(course)) < len(course)
            if is_twice or not (course == whole[begins : begins + len(course)] or house.disk.refused):
                yield f"{name} in {path}: {course}"
        if any(course[-1] != _whole(name)[-1] for name, course in told.items()):
            yield from _owed_after_a_restart(house, path)


def _whole(name: str) -> list[str]:
    return ["intent", "said", "ack"] if name.startswith("completion-") else ["intent", "said"]


def _told_in(lines: list[bytes]) -> dict[str, list[str]]:
    courses: dict[str, list[str]] = {}
    for line in lines:
        if b'"customType":"' in line:
            entry = msgspec.json.decode(line)
            step = _STEPS.get(entry.get("customType"))
            if step is not None:
                told = entry["details"] if entry["type"] == "custom_message" else entry["data"]
                courses.setdefault(told.get("completionId") or told["messageId"], []).append(step)
    return courses


def _owed_after_a_restart(house: House, path: str) -> Iterator[str]:
    again = House(Course(house.course.seed, choices={}), disk=_copy(house.disk, path), path=path)
    again.play()
    for name, course in _told_in(again.disk.files[path]).items():
        if course[-1] != _whole(name)[-1] or course.count("said") > 1:
            yield f"{name} in {path} after a restart: {course}"


def _copy(disk: Disk, path: str) -> Disk:
    """What is there after the process has gone: the file, and no lock."""
    left = Disk(disk.stamps, in_memory=False)
    left.files, left.ids = {path: list(disk.files[path])}, disk.ids
    return left
