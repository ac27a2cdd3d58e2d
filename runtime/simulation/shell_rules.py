"""Shell requests: their output, their record, and what cancels them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from actors.mail import AbortBash, CancelShell, CloseShells, RunBash, ShellEnded, Ticket
from runtime.simulation.seen import Seen


def deltas(seen: Seen) -> Iterator[str]:
    """The deltas of each command come whole, in order and before its response, which holds the same output. After a
    crash, or a client that left, some may be missing."""
    whole = seen.house.is_heard_out and not seen.crashed
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


def recorded(seen: Seen) -> Iterator[str]:
    """Each command is recorded once, in the file of the session that it began in. What failed to start is not; what
    a full disk refused answers with its output; a crash may lose the record, never double it."""
    house = seen.house
    records: dict[str, list[Any]] = {}
    for (journal, _), entry in zip(house.disk.log, seen.log, strict=True):
        if entry["type"] == "message" and entry["message"]["role"] == "bashExecution":
            records.setdefault(entry["message"]["command"], []).append(journal.path)
    excused = seen.crashed or house.disk.refused > 0 or house.is_cut_off
    for process in house.world.processes:
        found = records.pop(process.plan.command, [])
        may_lack = excused or process.failed  # one that was cancelled before it failed to start is recorded
        if seen.crashed and (process.home.path not in house.disk.files):
            continue  # a session that was never saved dies with its records, and another one adopts what runs
        if found != [process.home.path] and not (may_lack and found == []):
            yield f"{process.plan.command} of {process.home.path} was recorded in {found}"
    yield from (f"{name} never ran but was recorded" for name in records)


def interrupts(seen: Seen) -> Iterator[str]:
    """An `abort_bash` reaches every command that it follows on the wire, in whichever session that began: each shell
    is told to cancel for each abort that means it, for the end of the program, and once for all that came before it."""
    if seen.crashed or seen.house.is_cut_off:
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
