"""What a session tells the client while it handles one mail: gathered here, sent as one mail to the Writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from actors.base import Address
from actors.mail import Record, Ticket, Write, WriterMail
from protocol.codec import encode

if TYPE_CHECKING:
    from actors.pump import Ack
    from protocol.responses import Disposition


class Outbox:
    """Keeps the order of events and responses."""

    def __init__(self, writer: Address[WriterMail], *, pi_compat: bool = False) -> None:
        self._writer = writer
        self._pi_compat = pi_compat
        self._records: list[Record] = []

    def event(self, event: Struct) -> None:
        self._records.append(Record(encode(event) + b"\n"))

    def lines(self, lines: bytes) -> None:
        """Records that are encoded already, each with its line feed."""
        self._records.append(Record(lines))

    def ok(self, ticket: Ticket, data: Struct | bytes | None = None) -> None:
        encoded = data if data is None or isinstance(data, bytes) else encode(data)
        self._records.append(ticket.ok(encoded))

    def accepted(self, ticket: Ticket, disposition: Disposition) -> None:
        """A prompt, steering message or follow-up was taken; how, is told to clients of pi alone."""
        if not self._pi_compat:
            self.ok(ticket)
            return
        from protocol.responses import Accepted

        self.ok(ticket, Accepted(disposition))

    def record(self, record: Record) -> None:
        """A response that another actor made."""
        self._records.append(record)

    def failed(self, ticket: Ticket, error: str) -> None:
        self._records.append(ticket.failed(error))

    def send(self, *, boundary: bool = False, ack: Ack | None = None) -> None:
        """`boundary` ends the Writer's burst after these records."""
        if self._records:
            self._writer.tell(Write(tuple(self._records), boundary, ack))
            self._records.clear()
        elif ack is not None:
            ack.settle()
