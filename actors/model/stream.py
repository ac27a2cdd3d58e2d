"""Sends one model request in a pump, and tells its actor what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from actors.base import Address, StartPump
from actors.mail import ModelCallMail, ModelRequest, StreamBytes, StreamEnded, StreamHead
from actors.model.attempts import NO_HINT, retry_hint
from actors.model.dialects import build_request
from actors.model.prompt import HttpRequest
from actors.pump import Share, Window

if TYPE_CHECKING:
    from actors.model.transport import Abort, Transport


class PumpedStream:
    """A request and the window between the provider and the client."""

    def __init__(self, abort: Abort, share: Share) -> None:
        self.abort = abort
        self.window = Window(share=share)

    def release(self) -> None:
        self.abort.dismiss()

    def cut(self) -> None:
        self.abort.fire()
        self.window.close()


class StreamOpener:
    """Opens streams for the ModelCall actors. `transport` gives the process's one transport, made when it is first
    needed; `now` is in milliseconds since the epoch."""

    def __init__(self, start_pump: StartPump, transport: Callable[[], Transport], now: Callable[[], int]) -> None:
        self._start_pump = start_pump
        self._transport = transport
        self._now = now
        self._share = Share()

    def open(self, request: ModelRequest, call: Address[ModelCallMail]) -> PumpedStream:
        from actors.model.transport import Abort

        stream = PumpedStream(Abort(), self._share)
        self._start_pump("model-pump", lambda: self._run(request, call, stream))
        return stream

    def _run(self, request: ModelRequest, call: Address[ModelCallMail], stream: PumpedStream) -> None:
        def build() -> HttpRequest:
            return build_request(request.model, request.prompt, request.options, request.authorize(request.model))

        def tell_head(status: int, headers: Mapping[str, str]) -> None:
            call.tell(StreamHead(status, retry_hint(headers, self._now()) if status >= 400 else NO_HINT))

        def tell_bytes(data: bytes) -> None:
            ack = stream.window.admit(len(data))
            if ack is not None:
                call.tell(StreamBytes(data, ack))

        from actors.model.transport import TransportError

        try:
            self._transport().stream(build, stream.abort, tell_head, tell_bytes)
            call.tell(StreamEnded())
        except TransportError as error:
            call.tell(StreamEnded(str(error), error.unanswered))
        except Exception as error:
            call.tell(StreamEnded(f"the request failed: {type(error).__name__}"))
