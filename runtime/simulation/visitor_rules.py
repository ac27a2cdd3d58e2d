"""What must hold of visitors: each command has one answer or its connection has ended, and nothing of theirs is mixed
with what goes over stdin and stdout; what they asked to be told they are told, and a slow one costs nobody anything.

A visitor reads its mail in the order in which it was told, so these rules read the same mail and know what it owes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from actors.mail import (
    EndVisit,
    FaceSession,
    LoseSession,
    SeeOut,
    TaskChanged,
    Tick,
    Visit,
    VisitorAnswered,
    VisitorBytes,
    VisitorCommand,
    VisitorEnded,
    VisitorGone,
    VisitorTold,
    Write,
)
from protocol.codec import encode
from protocol.commands import SetTaskSubscription
from protocol.events import TaskUpdate
from protocol.lines import LineSplitter
from protocol.tasks import CleanupReaped, Settled, TaskRecord
from runtime.simulation.scheduler import kind_of
from runtime.simulation.seen import Key, Seen, expected_key
from runtime.simulation.visitors import SimulatedConnection

_KINDS = frozenset(("inspector_hello", "inspector_session", "response", "task_update", "task_transcript"))


class Looked(Struct):
    """A visitor that was let in, and its mail in the order in which it was read."""

    name: str
    connection: SimulatedConnection
    mail: list[Any]
    sent: list[dict[str, Any]]


def _looked(seen: Seen) -> Iterator[Looked]:
    for inspector in seen.house.way_in.inspectors:
        end = inspector.connection
        if end.number:
            name = f"visitor-{end.number}"
            mail = [mail for _, receiver, mail in seen.house.scheduler.trace if receiver == name]
            yield Looked(name, end, mail, [msgspec.json.decode(line) for line in b"".join(end.sent).splitlines()])


def _is_excused(seen: Seen) -> bool:
    """The program ended where it stood, or because of a crash."""
    return seen.house.is_cut_off or seen.is_fatal or not seen.is_over


# ---- answers -----------------------------------------------------------------------------------------------------


def visitor_answers(seen: Seen) -> Iterator[str]:
    """Exactly one for each command that came before the visitor was seen out, or its inspector said no more or went;
    after that, and where it was dropped since it did not read, at most one. Also when the session dies, or another
    visitor; where the door died the connections end."""
    for looked in _looked(seen):
        certain, possible = _asked(looked)
        got = Counter(Seen.key(record) for record in looked.sent if record["type"] == "response")
        yield from (f"{looked.name} had an answer too many to {key}" for key in got - possible)
        is_over = looked.connection.is_gone or looked.connection.was_dropped or seen.struck in ("door", looked.name)
        if not (is_over or _is_excused(seen)):
            yield from (f"{looked.name} had no answer to {key}" for key in certain - got)


def _asked(looked: Looked) -> tuple[Counter[Key], Counter[Key]]:
    """What has to be answered, and what may be."""
    certain: Counter[Key] = Counter()
    possible: Counter[Key] = Counter()
    splitter, is_over = LineSplitter(), False
    for mail in looked.mail:
        is_over = is_over or isinstance(mail, SeeOut | VisitorEnded | Tick)
        for line in splitter.feed(mail.data) if isinstance(mail, VisitorBytes) else ():
            key = expected_key(line, answers_all=True)
            assert key is not None
            possible[key] += 1
            certain[key] += not is_over
    return certain, possible


# ---- apart -------------------------------------------------------------------------------------------------------


def visitor_records(seen: Seen) -> Iterator[str]:
    """An inspector is greeted first, and is sent whole records of the kinds that are for it. Nothing of a visitor
    reaches stdout, and nobody that serves stdin and stdout is told anything by one, or tells one anything."""
    for looked in _looked(seen):
        kinds = [record["type"] for record in looked.sent]
        if kinds and kinds[0] != "inspector_hello":
            yield f"{looked.name} was sent {kinds[0]} before the greeting"
        yield from (f"{looked.name} was sent {kind}" for kind in sorted(set(kinds) - _KINDS))
        if kinds.count("inspector_hello") > 1:
            yield f"{looked.name} was greeted twice"
    for response in seen.responses:
        if str(response.get("id", "")).startswith("v"):
            yield f"the answer to {response['id']} of a visitor was written to stdout"
    for sender, receiver, mail in seen.house.scheduler.trace:
        if receiver == "writer" and isinstance(mail, Write) and any(one.visitor for one in mail.records):
            yield f"{sender} told the writer an answer for a visitor"
        if {kind_of(sender), kind_of(receiver)} in _APART:
            yield f"{sender} told {receiver} {type(mail).__name__}"


_APART = tuple({"visitor", other} for other in ("writer", "intake", "root", "shells", "visitor"))


# ---- what they asked to be told ----------------------------------------------------------------------------------


def visitor_updates(seen: Seen) -> Iterator[str]:
    """A visitor that subscribed is told of each change of the tasks of the session that it looks at, in order; its last
    wish goes along to the session that follows. At the end of the program it has heard of every task how that ended,
    unless its connection is closed. Not after a crash."""
    if seen.crashed or _is_excused(seen):
        return
    trace = seen.house.scheduler.trace
    listening = _Listening(trace)
    told = _told(trace)
    for looked in _looked(seen):
        for session in listening.sessions(looked.name):
            wanted, got = listening.owed[session, looked.name], told.get((session, looked.name), [])
            if wanted != got:
                yield f"{session} told {looked.name} of {len(got)} changes of its tasks, and owed {len(wanted)}"
        if not (looked.connection.is_gone or looked.connection.was_dropped):
            yield from _end_faults(looked, listening)


def _told(trace: list[tuple[str, str, Any]]) -> dict[tuple[str, str], list[bytes]]:
    told: dict[tuple[str, str], list[bytes]] = {}
    for sender, receiver, mail in trace:
        if isinstance(mail, VisitorTold) and b'"task_update"' in mail.lines[:40]:
            told.setdefault((sender, receiver), []).append(mail.lines)
    return told


class _Listening:
    """Who listens to which session, by the mail that sessions read: `now`, at the end. `owed` are the lines that each
    has to be told, `records` the last of each task in them; what changed while it did not listen nobody is told.
    `asked` is the session that got a command."""

    def __init__(self, trace: list[tuple[str, str, Any]]) -> None:
        self.owed: dict[tuple[str, str], list[bytes]] = {}
        self.now: dict[tuple[str, str], bool] = {}
        self.records: dict[tuple[str, str], dict[str, TaskRecord]] = {}
        self.asked = {
            (mail.ticket.visitor, mail.ticket.serial): receiver
            for _, receiver, mail in trace
            if isinstance(mail, VisitorCommand)
        }
        self._answers = {
            (mail.response.visitor, mail.response.serial): mail.updates
            for _, _, mail in trace
            if isinstance(mail, VisitorAnswered)
        }
        for _, receiver, mail in trace:
            if receiver.startswith("session-"):
                self._read(receiver, mail)

    def sessions(self, visitor: str) -> list[str]:
        return [session for session, who in self.owed if who == visitor]

    def _read(self, session: str, mail: Any) -> None:
        match mail:
            case Visit(number, _, updates):
                self._listen(session, number, updates)
            case EndVisit(number):
                self.now.pop((session, f"visitor-{number}"), None)
            case VisitorCommand(ticket, SetTaskSubscription()):
                wish = self._answers.get((ticket.visitor, ticket.serial))
                if wish is not None and (session, f"visitor-{ticket.visitor}") in self.now:
                    self._listen(session, ticket.visitor, wish)
            case TaskChanged(record):
                for (where, who), listens in self.now.items():
                    if where == session and listens:
                        self.owed[session, who].append(encode(TaskUpdate(record)) + b"\n")
                        self.records[session, who][record.ref.task_id] = record

    def _listen(self, session: str, number: int, updates: bool) -> None:
        key = (session, f"visitor-{number}")
        if not self.now.get(key):
            self.records[key] = {}
        self.now[key] = updates
        self.owed.setdefault(key, [])


class _Stay:
    """A visitor that was there to the end, by the mail that it read. `passed` is what it was told of the session that
    it looked at, `wishes` what it was granted, by serial; `left` says that it was not there to the end after all."""

    def __init__(self, looked: Looked, listening: _Listening) -> None:
        self._looked = looked
        self._listening = listening
        self._current: Any = None
        self._lost: list[Any] = []
        self._is_over = False
        self.left = False
        self.passed: list[dict[str, Any]] = []
        self.wishes: dict[int, bool] = {}
        self.faults = [fault for mail in looked.mail for fault in self._read(mail)]

    def _read(self, mail: Any) -> Iterator[str]:
        match mail:
            case FaceSession(session):
                self._current = session
            case LoseSession(session):
                yield from self._lose(session)
            case VisitorTold(session, lines) if session is self._current:
                self.passed.append(msgspec.json.decode(lines))
                if self._is_over:
                    yield f"{self._looked.name} was told of a task after it was seen out"
            case VisitorAnswered(response, bool() as updates):
                asked = self._listening.asked[response.visitor, response.serial]
                if not any(asked == one.name for one in self._lost):  # else it was refused by now
                    self.wishes[response.serial] = updates
            case VisitorEnded():  # after its end it is told of its own leaving
                self.left = self.left or not self._is_over
            case SeeOut():
                self._is_over = True

    def _lose(self, session: Any) -> Iterator[str]:
        self._lost.append(session)
        if session is not self._current:
            return
        self._current = None
        listens = self._listening.now.get((session.name, self._looked.name))
        if self.wishes and listens is not self.wishes[max(self.wishes)] and not self._is_refused(session):
            yield f"{session.name} has another wish of {self._looked.name} than its last one"

    def _is_refused(self, session: Any) -> bool:
        """Whether the session granted one that the visitor had refused by then, since it had lost the session."""
        number = int(self._looked.name.rpartition("-")[2])
        return any(
            visitor == number and asked == session.name and serial > max(self.wishes)
            for (visitor, serial), asked in self._listening.asked.items()
        )


def _end_faults(looked: Looked, listening: _Listening) -> Iterator[str]:
    """Of a visitor that was there to the end."""
    stay = _Stay(looked, listening)
    if stay.left:
        return
    yield from stay.faults
    sent = [record for record in looked.sent if record["type"] in ("task_update", "task_transcript")]
    if sent != stay.passed:
        yield f"{looked.name} was told {len(stay.passed)} changes, and sent {len(sent)}"
    for (where, who), listens in listening.now.items():
        for record in listening.records[where, who].values() if who == looked.name and listens else ():
            if not (isinstance(record.execution, Settled) and isinstance(record.cleanup, CleanupReaped)):
                yield f"{who} never heard how {record.ref.task_id} ended"


# ---- slow ones, and the end --------------------------------------------------------------------------------------


def visitor_backlog(seen: Seen) -> Iterator[str]:
    """Never is more sent to somebody who has too much unread, and nobody else is dropped: a visitor stays until its
    inspector says no more, or is seen out. When the program is over every connection is closed,
    but for one that came to a door which had died."""
    house = seen.house
    for number, inspector in enumerate(house.way_in.inspectors):
        end = inspector.connection
        if end.most_waiting > house.way_in.most_unread:
            yield f"an inspector was sent more, with {end.most_waiting} bytes unread"
        if not (end.is_closed or seen.struck == "door" or _is_excused(seen)):
            yield f"the connection of inspector {number} is open at the end"
    if seen.crashed or _is_excused(seen):
        return
    reasons: set[str] = set()
    dropped = {looked.name for looked in _looked(seen) if looked.connection.was_dropped}
    for sender, receiver, mail in house.scheduler.trace:
        if isinstance(mail, SeeOut | VisitorEnded):
            reasons.add(receiver)
        elif isinstance(mail, VisitorGone) and sender not in reasons | dropped:
            yield f"{sender} had to leave for nothing"
