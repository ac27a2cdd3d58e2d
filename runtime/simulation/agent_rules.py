"""What must hold of subagents: no more at once than there is room for, nothing of them left, nothing of them on stdout.

The desk tells how a task is going; these rules look at what really runs: actors, sessions, journals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from actors.base import Down
from actors.mail import LaunchAgents, TaskEnded, TaskReaped
from actors.task.subagent.actor import Subagent
from runtime.simulation.model_server import CHILDS_THOUGHT
from runtime.simulation.scheduler import kind_of
from runtime.simulation.seen import Seen

WINDOW = 200_000
_NOT_FOR_CHILDREN = frozenset(("writer", "sessions", "shells", "root", "intake", "preferences"))


def room(seen: Seen) -> Iterator[str]:
    """Never more subagents of one owner at once than it has room for, and of one launch never more than its
    `concurrency`. One counts from its start until it has told its end."""
    house = seen.house
    limits = {
        mail.operation: mail.concurrency for _, _, mail in house.scheduler.trace if isinstance(mail, LaunchAgents)
    }
    ends: dict[str, int] = {}
    for place, (sender, _, mail) in enumerate(house.scheduler.trace):
        if isinstance(mail, TaskEnded | TaskReaped):
            ends.setdefault(mail.task_id, place)
        elif isinstance(mail, Down) and sender.startswith("agent-"):
            ends.setdefault(sender.removeprefix("agent-"), place)
    for run in house.agents:
        here = [one for one in house.agents if one.started_at <= run.started_at < ends.get(one.task_id, 1 << 60)]
        ours = sum(_owner(one.task_id) == _owner(run.task_id) for one in here)
        same = sum(one.plan.run == run.plan.run for one in here)
        limit = limits.get(run.plan.run)
        if ours > house.most_agents:
            yield f"{ours} agents of {_owner(run.task_id)} run at once when {run.task_id} starts"
        if limit is not None and same > limit:
            yield f"{same} agents of {run.plan.run} run at once instead of {limit}"


def _owner(task_id: str) -> str:
    return task_id.rpartition("-")[0]


def children(seen: Seen) -> Iterator[str]:
    """When the program is over nothing of a subagent is: no actor, no session, no open file, nothing that its commands
    left in the background; also after a crash that is not that of the program."""
    house = seen.house
    if not seen.is_over or house.is_cut_off or seen.is_fatal:
        return
    for address in house.scheduler.actors:
        if not address.is_over and (isinstance(address.actor, Subagent) or kind_of(address.name) == "subagent-session"):
            yield f"{address.name} outlives the program"
    yield from (f"the file of a subagent is open: {one.path}" for one in house.disk.children if one.exists_on_disk)
    for checkout in house.disk.checkouts:
        if checkout.finishes > 1 or not (checkout.finishes or seen.struck):
            yield f"the worktree {checkout.folder} was put away {checkout.finishes} times"
    for tool in house.world.tools:
        if tool.remains is not None and not tool.remains.swept:
            yield f"{tool.name} of a subagent left something behind that outlives the program"


def apart(seen: Seen) -> Iterator[str]:
    """What a child says goes to its subagent alone. What it thinks nobody else is shown, unless the client opens its
    file or asks for its transcript."""
    house = seen.house
    for sender, receiver, mail in house.scheduler.trace:
        if receiver in _NOT_FOR_CHILDREN and kind_of(sender) in ("subagent-session", "agent"):
            yield f"{sender} told {receiver} {type(mail).__name__}"
    opened = {path for journal, _ in house.disk.log if (path := journal.path) is not None}
    looked = any(b"/subagents/" in line or b"transcript" in line for line in house.client.sent) or any(
        "/subagents/" in path for path in opened
    )
    if not looked and any(CHILDS_THOUGHT.encode() in burst for burst, _ in house.sink.bursts):
        yield "a child's thought was written to stdout"


def childs_calls(seen: Seen) -> Iterator[str]:
    """In the session of a child each call of a tool has one result before the model is asked again. Not when the disk
    or an actor failed; a run that was aborted skips those that are left, and a reply that tells of a full context may
    be dropped with its calls."""
    if seen.crashed or seen.house.disk.refused or seen.house.is_cut_off:
        return
    message: dict[str, Any]
    waiting: dict[Any, dict[str, bool]] = {}  # whether a call may stay without a result
    for journal, line in seen.house.disk.child_log:
        entry = msgspec.json.decode(line)
        message = entry["message"] if entry["type"] == "message" else {"role": ""}
        calls = waiting.setdefault(journal, {})
        if message["role"] == "toolResult" and calls.pop(message["toolCallId"], None) is None:
            yield f"{message['toolCallId']} has a result too many"
        elif message["role"] == "assistant":
            was_aborted = message["stopReason"] == "aborted"
            yield from (f"{call} has no result" for call, may_lack in calls.items() if not (may_lack or was_aborted))
            calls.clear()
            if message["stopReason"] not in ("error", "aborted"):
                may_lack = message["usage"]["input"] > WINDOW
                ids = [block["id"] for block in message["content"] if block["type"] == "toolCall"]
                calls.update(dict.fromkeys(ids, may_lack))
