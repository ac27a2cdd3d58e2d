"""Shows one conversation on stdout, in the Writer's place, when nobody drives the program.

Sessions and desks tell it what they would tell the Writer. It passes on what its form makes of it, and the Writer alone
touches stdout. Responses are not shown: they, the end of each run and the errors of extensions are told to OneShot. The
rest of a burst's road, acks and the count of what is answered, stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from actors.base import Actor, Address
from actors.mail import (
    Arm,
    ClockMail,
    CloseWriter,
    ExtensionFailed,
    OneShotMail,
    PrinterMail,
    PromptEnded,
    Record,
    Tick,
    Write,
    WriterMail,
)
from actors.print_outcome import Outcome, outcome_of
from actors.print_stream import INTERVAL_MS, Lines
from actors.pump import Ack
from protocol.codec import decode_any

if TYPE_CHECKING:
    from actors.print_stream import Form

HELD_ACKS = 32
"""So many messages may wait in one snapshot with their room unsettled. A client that does not read thereby stops the
model's stream after a few snapshots, while one that reads is never slowed down by the waiting."""

_MESSAGE_END = b'{"type":"message_end"'
_SETTLED = b'{"type":"agent_settled"'
_EXTENSION_ERROR = b'{"type":"extension_error"'


class Acks(Ack):
    """Several, settled as one."""

    __slots__ = ("_acks",)

    def __init__(self, acks: list[Ack]) -> None:
        self._acks = acks

    def settle(self) -> None:
        for ack in self._acks:
            ack.settle()


class Printer(Actor[PrinterMail]):
    """`last` is the last message of a conversation that is gone on with."""

    def __init__(
        self,
        form: Form,
        last: Outcome,
        writer: Address[WriterMail],
        clock: Address[ClockMail],
        one_shot: Address[OneShotMail],
    ) -> None:
        self._form = form
        self._last = last
        self._last_line: bytes | None = None
        self._writer = writer
        self._clock = clock
        self._one_shot = one_shot
        self._acks: list[Ack] = []
        self._refused = False

    def receive(self, mail: PrinterMail) -> None:
        match mail:
            case Write():
                self._show(mail)
            case Tick(key):
                self._pass_on([Record(line) for line in self._form.tick(int(key))])
            case CloseWriter():
                lines = self._form.end(self._outcome(), refused=self._refused)
                self._pass_on([Record(line) for line in lines])
                self._writer.tell(CloseWriter())
            case _:
                assert_never(mail)
        if (number := self._form.wants_tick()) is not None:
            self._clock.tell(Arm(str(number), INTERVAL_MS, self.me))

    def _show(self, mail: Write) -> None:
        records: list[Record] = []
        for record in mail.records:
            if record.serial:
                self._answered(record)
                records.append(Record(b"", record.serial))
            else:
                records += map(Record, self._event(record.line))
        if mail.ack is not None:
            self._acks.append(mail.ack)
        self._pass_on(records, boundary=mail.boundary)

    def _event(self, line: bytes) -> Lines:
        if line.startswith(_MESSAGE_END):
            self._last_line = line
        elif line.startswith(_EXTENSION_ERROR):
            said = decode_any(line)
            self._one_shot.tell(ExtensionFailed(said["extensionPath"], said["error"]))
        lines = self._form.take(line)
        if line.startswith(_SETTLED):
            last = self._outcome()
            self._one_shot.tell(PromptEnded(last.whole, None if last.whole else last.error))
        return lines

    def _answered(self, response: Record) -> None:
        said = decode_any(response.line)
        if not said.get("success"):
            self._refused = True
            self._one_shot.tell(PromptEnded(False, str(said.get("error")), refused=True))

    def _outcome(self) -> Outcome:
        if self._last_line is not None:
            self._last = outcome_of(decode_any(self._last_line).get("message"))
            self._last_line = None
        return self._last

    def _pass_on(self, records: list[Record], *, boundary: bool = False) -> None:
        if self._form.waits():
            self._settle_surplus()
            acks: list[Ack] = []
        else:
            acks, self._acks = self._acks, []
        if records:
            self._writer.tell(Write(tuple(records), boundary, Acks(acks) if acks else None))
        else:
            for ack in acks:
                ack.settle()

    def _settle_surplus(self) -> None:
        """What is merged ends its road here."""
        for ack in self._acks[HELD_ACKS:]:
            ack.settle()
        del self._acks[HELD_ACKS:]
