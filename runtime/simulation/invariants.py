"""What must hold at the end of every seed, whatever order its mail came in.

`violations` looks at a house that has been played: the bytes on stdout against the lines that the client wrote, the
journals, the commands that ran, and the mail. Each violation is one sentence. A crash or a failing disk excuses some
things; the docstring of each check says which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from actors.base import Down
from actors.mail import (
    AbortBash,
    BashRecorded,
    CancelCall,
    CancelShell,
    CancelTool,
    CloseShells,
    MutationGranted,
    NewHome,
    NoMoreCommands,
    Reload,
    Retire,
    RunBash,
    ShellEnded,
    StreamBytes,
    StreamEnded,
    StreamHead,
    Tick,
    Ticket,
    ToolReturned,
    ToolUpdated,
)
from actors.session.actor import Session
from protocol.codec import Rejected, encode, read_command
from protocol.commands import ExtensionUiResponse, command_name
from runtime.root import UNANSWERED
from runtime.simulation.event_order import order_violations
from runtime.simulation.house import House

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
        MutationGranted,
        NewHome,
        Retire,
        NoMoreCommands,
        Tick,
    )
)
"""Mail that may find its receiver gone: it can do nothing for one that has ended."""

Key = tuple[bytes, str | None]


class Seen:
    """What the client saw: whole records in order, each with the number of journal lines written before it left."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.records: list[tuple[dict[str, Any], int]] = []
        self.broken_lines: list[bytes] = []
        for burst, journaled in house.sink.bursts:
            for line in burst.removesuffix(b"\n").split(b"\n"):
                self._read(line, journaled)
        self.struck = house.fault.struck if house.fault else None
        self.crashed = self.struck is not None
        self.is_fatal = any(receiver == "root" and type(mail) is Down for _, receiver, mail in house.scheduler.trace)

    def _read(self, line: bytes, journaled: int) -> None:
        try:
            record = msgspec.json.decode(line)
        except msgspec.DecodeError:
            record = None
        if isinstance(record, dict) and isinstance(record.get("type"), str):
            self.records.append((record, journaled))
        else:
            self.broken_lines.append(line)

    @property
    def responses(self) -> Iterator[dict[str, Any]]:
        return (record for record, _ in self.records if record["type"] == "response")


def violations(house: House, is_over: bool) -> list[str]:
    seen = Seen(house)
    found = list(_ending(house, is_over, seen))
    for check in (_lines, _responses, _deltas, _recorded, _interrupts, _queue, _mail, _acks):
        found += check(seen)
    if not seen.crashed:
        found += order_violations(seen.records, house.disk, house.sink.broken)
    return found


# ---- the process -------------------------------------------------------------------------------------------------


def _ending(house: House, is_over: bool, seen: Seen) -> Iterator[str]:
    """A crash may end the program, by Root and in order; only without a part that it has asked for something after its
    death does a session wait in vain, until the deadline."""
    if not is_over:
        stuck = [actor.name for actor in house.scheduler.actors if actor.has_mail]
        yield f"the program never ended (phase {house.root.phase}, mail left for {stuck})"
    elif house.gave_up and seen.struck not in ("shells", "catalog", "preferences"):
        yield f"the deadline passed: {house.stderr[-1]}"
    for name, error in house.scheduler.deaths:
        if not seen.crashed:
            yield f"{name} died of {type(error).__name__}: {error}"
    wanted = {0, 1, 143} if house.sink.broken else {0, 143}  # the first of two reasons to stop decides
    if not seen.crashed and house.exit_code not in wanted:
        yield f"exit code {house.exit_code}"
    if is_over and not seen.crashed:
        yield from (
            f"{process.plan.command} outlives the program" for process in house.world.processes if not process.exited
        )


def _lines(seen: Seen) -> Iterator[str]:
    """Only JSON objects with a type, whatever happens."""
    yield from (f"not a record on stdout: {line[:80]!r}" for line in seen.broken_lines)


# ---- responses ---------------------------------------------------------------------------------------------------


def _responses(seen: Seen) -> Iterator[str]:
    """Exactly one a command. Of what the client wrote after its signal, or after the crash that ends the program, or
    when nobody read stdout any more, or when the Writer died: at most one. A signal during the end after a crash ends
    the program at once. A crash during the end may lose some: a known gap, see docs/simulation.md."""
    client = seen.house.client
    heard = len(client.sent) if client.heard is None else client.heard
    if seen.house.heard_before_crash is not None and seen.is_fatal:
        heard = 0 if client.heard is not None else min(heard, seen.house.heard_before_crash)
    if seen.house.crashed_while_ending:
        heard = 0
    certain = _expected(client.sent[:heard])
    possible = _expected(client.sent)
    got = Counter(_key(response) for response in seen.responses)
    if not (seen.house.sink.broken or seen.struck == "writer"):
        yield from (f"no response to {_shown(key)}" for key in (certain - got))
    if not seen.crashed:
        late = [response for response in seen.responses if response.get("error") == UNANSWERED]
        yield from (f"no response to {_shown(_key(response))} before the end" for response in late)
    yield from (f"a response too many to {_shown(key)}" for key in (got - possible))


def _expected(lines: list[bytes]) -> Counter[Key]:
    expected: Counter[Key] = Counter()
    for line in lines:
        command = read_command(line)
        if isinstance(command, Rejected):
            expected[command.id, command.command] += 1
        elif not isinstance(command, ExtensionUiResponse):
            expected[bytes(command.id), command_name(command)] += 1
    return expected


def _key(response: dict[str, Any]) -> Key:
    return (encode(response["id"]) if "id" in response else b"", response.get("command"))


def _shown(key: Key) -> str:
    return f"{key[1]} (id {key[0].decode() or 'none'})"


# ---- shell requests ----------------------------------------------------------------------------------------------


def _deltas(seen: Seen) -> Iterator[str]:
    """The deltas of each command come whole, in order and before its response, which holds the same output. After a
    crash, or a client that left, some may be missing."""
    whole = not (seen.crashed or seen.house.sink.broken)
    shown: dict[str, list[str]] = {}
    for record, _ in seen.records:
        if record["type"] == "bash_execution_update" and record["delta"]:
            shown.setdefault(record["delta"].partition(":")[0], []).append(record["delta"])
        elif record["type"] == "response" and record.get("data") and record.get("command") in ("bash", "user_bash"):
            output = record["data"]["output"]
            name = output.partition(":")[0]
            if output and "".join(shown.get(name, ())) != output:
                yield f"the response of {name} came before its deltas or differs from them"
    for process in seen.house.world.processes:
        put_out = [text for _, text in process.chunks]
        told = shown.get(process.plan.command, [])
        if told != put_out[: len(told)] or (whole and told != put_out):
            yield f"{process.plan.command} put out {put_out}, the client saw {told}"


def _recorded(seen: Seen) -> Iterator[str]:
    """Each command is recorded once, in the file of the session that it began in. What failed to start is not; what
    a full disk refused answers with its output; a crash may lose the record, never double it."""
    house = seen.house
    records: dict[str, list[Any]] = {}
    for journal, line in house.disk.log:
        if b'"bashExecution"' in line:
            message = msgspec.json.decode(line)["message"]
            records.setdefault(message["command"], []).append(journal.path)
    excused = seen.crashed or house.disk.refused > 0
    for process in house.world.processes:
        found = records.pop(process.plan.command, [])
        may_lack = excused or process.failed  # one that was cancelled before it failed to start is recorded
        if seen.crashed and (process.home.path not in house.disk.files):
            continue  # a session that was never saved dies with its records, and another one adopts what runs
        if found != [process.home.path] and not (may_lack and found == []):
            yield f"{process.plan.command} of {process.home.path} was recorded in {found}"
    yield from (f"{name} never ran but was recorded" for name in records)


def _interrupts(seen: Seen) -> Iterator[str]:
    """An `abort_bash` reaches every command that it follows on the wire, in whichever session that began: each shell
    is told to cancel for each abort that means it, for the end of the program, and once for all that came before it."""
    if seen.crashed:
        return
    mails = [mail for _, _, mail in seen.house.scheduler.trace]
    cancels = Counter(receiver for _, receiver, mail in seen.house.scheduler.trace if isinstance(mail, CancelShell))
    ended = {mail.serial: place for place, mail in enumerate(mails) if isinstance(mail, ShellEnded)}
    stops = [(place, mail) for place, mail in enumerate(mails) if isinstance(mail, AbortBash | CloseShells)]
    for begun, ticket in ((place, mail.ticket) for place, mail in enumerate(mails) if isinstance(mail, RunBash)):
        meant = [place for place, stop in stops if _means(stop, ticket) and place < ended.get(ticket.serial, place)]
        wanted = len({max(place, begun) for place in meant})
        if cancels[f"shell-{ticket.serial}"] < wanted:
            yield f"shell-{ticket.serial} was cancelled {cancels[f'shell-{ticket.serial}']} times instead of {wanted}"


def _means(stop: AbortBash | CloseShells, run: Ticket) -> bool:
    if isinstance(stop, CloseShells):
        return True
    return stop.request_id in (None, run.id) and run.serial < stop.ticket.serial


# ---- the queue ---------------------------------------------------------------------------------------------------


def _queue(seen: Seen) -> Iterator[str]:
    """Each message that was queued is said once, or reported once as cleared, or it goes with its session: then the
    lists are empty, and there are no more such moments than hand-overs. A message that the disk refused is lost with
    its run, which tells so. No message comes twice, in any mode."""
    excused = seen.crashed or seen.house.disk.refused > 0
    said = Counter(text for _, line in seen.house.disk.log for text in _user_texts(line))
    cleared: Counter[str] = Counter()
    waiting: set[str] = set()
    gone = 0
    records = seen.records
    for place, (record, _) in enumerate(records):
        if record["type"] == "response" and record.get("command") == "clear_queue" and record["success"]:
            cleared.update(record["data"]["steering"] + record["data"]["followUp"])
        if record["type"] != "queue_update":
            continue
        now = record["steering"] + record["followUp"]
        for text in (text for text, count in Counter(now).items() if count > 1):
            yield f"{text} is twice in the queue"
        missing = waiting - set(now)
        waiting = set(now)
        if missing and not _is_told(missing, records, place):
            gone += 1
            if now and not excused:
                yield f"{sorted(missing)} left the queue without a word"
    yield from (f"{text} was said {count} times" for text, count in said.items() if count > 1)
    yield from (f"{text} was cleared and said" for text in cleared if cleared[text] + said[text] > 1)
    if not excused and gone > _handovers(seen):
        yield f"the queue was emptied {gone} times for {_handovers(seen)} hand-overs"
    if waiting and not (seen.crashed or seen.house.sink.broken):
        yield f"{sorted(waiting)} were left in the queue without a word"


def _user_texts(line: bytes) -> list[str]:
    if b'"role":"user"' not in line:
        return []
    content = msgspec.json.decode(line)["message"]["content"]
    return [block["text"] for block in content]


def _is_told(missing: set[str], records: list[tuple[dict[str, Any], int]], place: int) -> bool:
    """Whether the next record says them, or hands them back."""
    record: dict[str, Any] = records[place + 1][0] if place + 1 < len(records) else {"type": ""}
    if record["type"] == "message_start" and record["message"]["role"] == "user":
        return missing == {block["text"] for block in record["message"]["content"]}
    if record["type"] == "response" and record.get("command") == "clear_queue" and record["success"]:
        return missing <= set(record["data"]["steering"] + record["data"]["followUp"])
    return False


def _handovers(seen: Seen) -> int:
    return sum(isinstance(mail, Retire | Reload) for _, _, mail in seen.house.scheduler.trace)


# ---- mail --------------------------------------------------------------------------------------------------------


def _mail(seen: Seen) -> Iterator[str]:
    """Nothing but what comes too late is told to one who is gone."""
    if seen.crashed:
        return
    for sender, receiver, mail in seen.house.scheduler.lost:
        too_late = type(mail) in TOO_LATE or (sender == "shells" and isinstance(mail, BashRecorded))
        if not too_late:
            yield f"{sender} told {receiver} {type(mail).__name__} after its end"
    for address in seen.house.scheduler.actors:
        session = address.actor
        if isinstance(session, Session) and not address.is_over and session.shells:
            yield f"{address.name} still waits for shell requests {sorted(session.shells)}"


def _acks(seen: Seen) -> Iterator[str]:
    """All room is given back, save in windows that nobody waits at any more."""
    if seen.crashed:
        return
    house = seen.house
    if house.client.window.unsettled:
        yield f"{house.client.window.unsettled} reads of stdin were never acknowledged"
    for process in house.world.processes:
        if process.window.unsettled:
            yield f"{process.window.unsettled} outputs of {process.plan.command} were never acknowledged"
    for stream in house.world.streams:
        if stream.window.unsettled and not (stream.released or stream.window.is_closed):
            yield f"{stream.window.unsettled} pieces of a reply were never acknowledged"
