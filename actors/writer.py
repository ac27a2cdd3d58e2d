"""The only actor that touches stdout.

It takes records in the order in which they are told, gathers a burst, and writes it in one call as soon as its inbox is
empty. It lets exactly one response through for each command: the first. Once the bytes have left it settles the acks
of those who wait, and tells Intake which commands are answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from actors.base import Actor, Address
from actors.mail import (
    Answered,
    CloseWriter,
    IntakeMail,
    Record,
    RootMail,
    StdoutClosed,
    Write,
    WriterClosed,
    WriterMail,
)

if TYPE_CHECKING:
    from actors.pump import Ack

BURST_BYTES = 256 * 1024
"""A burst is written at this size even if more mail waits, so that memory stays flat."""


class AnsweredSerials:
    """Which serials have their response. Serials are given out in order and all get answered, so all below a rising
    mark are known by the mark alone."""

    def __init__(self) -> None:
        self._mark = 0
        self._above: set[int] = set()

    def add(self, serial: int) -> bool:
        """False if `serial` had its response already."""
        if serial <= self._mark or serial in self._above:
            return False
        self._above.add(serial)
        while self._mark + 1 in self._above:
            self._mark += 1
            self._above.remove(self._mark)
        return True


class Writer(Actor[WriterMail]):
    """`write_all` writes bytes to the client and raises `OSError` when nobody can read them any more; `first_written`
    hears that the first burst has left."""

    apart = True  # a client that does not read holds it up

    def __init__(
        self,
        write_all: Callable[[bytes], None],
        root: Address[RootMail],
        first_written: Callable[[], None] = lambda: None,
    ) -> None:
        self._write_all = write_all
        self._first_written: Callable[[], None] | None = first_written
        self._root = root
        self._intake: Address[IntakeMail] | None = None
        self._answered = AnsweredSerials()
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._acks: list[Ack] = []
        self._told: list[int] = []
        self._broken = False

    def connect(self, intake: Address[IntakeMail]) -> None:
        """Called by the wiring before the first mail: the Writer starts first, and Intake after it."""
        self._intake = intake

    def receive(self, mail: WriterMail) -> None:
        if isinstance(mail, Write):
            self._take(mail)
        elif isinstance(mail, CloseWriter):
            self._flush()
            self._root.tell(WriterClosed())
        else:
            assert_never(mail)

    def idle(self) -> None:
        self._flush()

    def _take(self, mail: Write) -> None:
        for record in mail.records:
            if not record.serial or self._first_response(record):
                self._pending.append(record.line)
                self._pending_bytes += len(record.line)
        if mail.ack is not None:
            self._acks.append(mail.ack)
        if mail.boundary or self._pending_bytes >= BURST_BYTES:
            self._flush()

    def _first_response(self, record: Record) -> bool:
        first = self._answered.add(record.serial)
        if first:
            self._told.append(record.serial)
        return first

    def _flush(self) -> None:
        burst = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        if burst and not self._broken:
            self._write(burst)
        for ack in self._acks:
            ack.settle()
        self._acks.clear()
        if self._told and self._intake is not None:
            self._intake.tell(Answered(tuple(self._told)))
        self._told.clear()

    def _write(self, burst: bytes) -> None:
        try:
            self._write_all(burst)
        except OSError as error:
            self._broken = True
            reason = "" if isinstance(error, ConnectionError) else error.strerror or str(error)
            self._root.tell(StdoutClosed(reason))
        first, self._first_written = self._first_written, None
        if first is not None:
            first()
