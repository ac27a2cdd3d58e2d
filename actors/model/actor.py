"""One request to a provider: it reads the stream as it comes and tells its session what the reply grew by.

It owns the reader of the reply, the handle that cuts the stream, and how many attempts were made. Exactly one
`ReplyEnded` comes of it, also when the stream fails or is cancelled; a cancel waits neither for the network nor for the
next attempt. There is another attempt only while nothing of a reply has come (`attempts`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, assert_never

from msgspec.structs import replace

from actors.base import Actor, Address
from actors.mail import (
    Arm,
    CancelCall,
    ClockMail,
    ModelCallMail,
    ModelRequest,
    ReplyDelta,
    ReplyEnded,
    ReplyStarted,
    SessionMail,
    StreamBytes,
    StreamEnded,
    StreamHead,
    Tick,
)
from actors.model.attempts import NO_HINT, TooLong, may_help, wait_ms
from protocol.codec import encode

if TYPE_CHECKING:
    from actors.model.reply import Events, ReplyReader
    from actors.pump import Ack
    from protocol.messages import AssistantMessage, Usage

ERROR_BODY_BYTES = 64 * 1024
AGAIN = "again"


class Stream(Protocol):
    """An open request. `cut` ends it in every phase and never waits; `release` tells that no more of it is needed, and
    lets the connection live on for the next request."""

    def cut(self) -> None: ...
    def release(self) -> None: ...


OpenStream = Callable[[ModelRequest, Address[ModelCallMail]], Stream]
"""Starts a request; what comes of it is told as `StreamHead`, `StreamBytes` and one `StreamEnded`."""


class ModelCall(Actor[ModelCallMail]):
    """`error_text` words an HTTP error from the api's name, the status and the body; `chance` (0 to 1) makes the waits
    of many clients differ."""

    def __init__(
        self,
        request: ModelRequest,
        session: Address[SessionMail],
        open_stream: OpenStream,
        reader: Callable[[ModelRequest], ReplyReader],
        error_text: Callable[[str, int, bytes], str],
        clock: Address[ClockMail],
        chance: Callable[[], float],
    ) -> None:
        self._request = request
        self._session = session
        self._open_stream = open_stream
        self._reader_for = reader
        self._error_text = error_text
        self._clock = clock
        self._chance = chance
        self._retries = 0
        self._forget_answer()
        self._started = False
        self._over = False
        self._usage: Usage | None = None
        self._usage_json = b""

    def begin(self) -> None:
        self._stream = self._open_stream(self._request, self.me)
        self._reader: ReplyReader = self._reader_for(self._request)

    def _forget_answer(self) -> None:
        self._status, self._hint, self._error_body = 200, NO_HINT, b""

    def receive(self, mail: ModelCallMail) -> None:
        if isinstance(mail, StreamBytes):
            self._read(mail.data, mail.ack)
        elif isinstance(mail, StreamHead):
            self._status, self._hint = mail.status, mail.hint
        elif isinstance(mail, StreamEnded):
            self._stream_ended(mail)
        elif isinstance(mail, Tick):
            self._try_again()
        elif isinstance(mail, CancelCall):
            self._stream.cut()
            self._tell_end(lambda: self._reader.fail("Request was aborted", aborted=True))
        else:
            assert_never(mail)

    def last_words(self, unread: list[ModelCallMail]) -> None:
        """Lets go of the pump, which would wait for its acks."""
        self._stream.cut()

    def _read(self, data: bytes, ack: Ack | None) -> None:
        if self._over:
            _settle(ack)
        elif self._status >= 400:
            self._error_body += data[: ERROR_BODY_BYTES - len(self._error_body)]
            _settle(ack)
        else:
            self._tell_growth(self._reader.feed(data), ack)
            if self._reader.finished:
                self._stream.release()
                self._end(None)

    def _tell_growth(self, events: Events, ack: Ack | None) -> None:
        message = self._reader.message
        if self._reader.started and not self._started:
            self._started = True
            # without content, though a first chunk may hold whole blocks: clients add the deltas to this
            self._session.tell(ReplyStarted(self._request.call, encode(replace(message, content=[]))))
        if not events:
            _settle(ack)
            return
        if message.usage is not self._usage:
            self._usage = message.usage
            self._usage_json = encode(message.usage)
        self._session.tell(ReplyDelta(self._request.call, self._usage_json, tuple(events), ack))

    def _stream_ended(self, mail: StreamEnded) -> None:
        helps = may_help(self._status, self._hint) if self._status >= 400 else mail.unanswered
        if self._over or not helps or self._retries >= self._request.limits.max_retries:
            self._end(mail.error)
            return
        try:
            delay_ms = wait_ms(self._retries + 1, self._hint, self._request.limits, self._chance())
        except TooLong as refused:
            text = f"{refused} {self._answer_text()}"
            self._tell_end(lambda: self._reader.fail(text))
            return
        self._retries += 1
        self._clock.tell(Arm(AGAIN, delay_ms, self.me))

    def _try_again(self) -> None:
        if not self._over:
            self._forget_answer()
            self._stream = self._open_stream(self._request, self.me)

    def _answer_text(self) -> str:
        return self._error_text(self._request.model.api, self._status, self._error_body)

    def _end(self, error: str | None) -> None:
        if self._over:
            return
        if self._status >= 400:
            text = self._answer_text()
            self._tell_end(lambda: self._reader.fail(text))
        elif error is not None and not self._reader.finished:
            self._tell_end(lambda: self._reader.fail(error))
        else:
            self._tell_growth(self._reader.drain(), None)
            self._tell_end(self._reader.end)

    def _tell_end(self, finish: Callable[[], AssistantMessage]) -> None:
        if not self._over:
            self._over = True
            self._session.tell(ReplyEnded(self._request.call, finish()))
            self.me.stop()


def _settle(ack: Ack | None) -> None:
    if ack is not None:
        ack.settle()
