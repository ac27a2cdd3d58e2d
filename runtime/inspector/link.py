"""The connection to a running program: JSON lines over its stream, requests matched with their answers.

Owns the open requests. Promises that each of them ends: with its answer, with `Refused`, or with `LinkLost`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from protocol.codec import encode
from protocol.inspector import VERSION
from protocol.lines import LineSplitter
from runtime.inspector.programs import open_stream
from runtime.inspector.records import BadRecord, Hello, Incoming, Refusal, Response, read_record
from runtime.threads import describe

READ_BYTES = 64 * 1024
HELLO_S = 5.0
"""A program whose threads are busy greets within a second."""


class LinkLost(Exception):
    """There is no connection any more; the text says why, for people."""


class NobodyThere(LinkLost):
    """Nobody listens: the program has ended."""


class Refused(Exception):
    """The program refused a request; the text is its own."""


class Link:
    """`hear` is called with everything that is no answer, `over` once, with the reason, when the connection ends
    otherwise than by `close`. `patience_s` is how long the greeting may take."""

    def __init__(self, address: str, patience_s: float = HELLO_S) -> None:
        self._address = address
        self._patience_s = patience_s
        self._open: dict[str, tuple[asyncio.Future[Response], Callable[[Response], None] | None]] = {}
        self._serial = 0
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self.hello: Hello | None = None

    async def connect(self, hear: Callable[[Incoming], None], over: Callable[[str], None]) -> Hello:
        """Returns the greeting. Raises `LinkLost`."""
        try:
            async with asyncio.timeout(self._patience_s):
                reader, self._writer = await open_stream(self._address)
                self.hello, rest, splitter = await _greeting(reader)
        except TimeoutError:
            self.close()
            raise LinkLost(f"it did not answer within {self._patience_s:g} seconds") from None
        except (ConnectionRefusedError, FileNotFoundError) as error:
            self.close()
            raise NobodyThere(error.strerror) from None
        except (OSError, BadRecord) as error:
            self.close()
            raise LinkLost(getattr(error, "strerror", None) or str(error)) from None
        self._reading = asyncio.create_task(self._read(reader, splitter, rest, hear, over))
        return self.hello

    async def ask(self, kind: str, then: Callable[[Response], None] | None = None, **fields: Any) -> Response:
        """Sends a command and waits for its answer. `then` gets the answer of a success before any record behind it is
        heard, so that a snapshot never overtakes what changed after it. Raises `Refused`, `LinkLost` or `BadRecord`."""
        if self._writer is None or self._reading is None or self._reading.done():
            raise LinkLost("there is no connection")
        self._serial += 1
        name = f"inspector-{self._serial}"
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._open[name] = (answer, then)
        try:
            self._writer.write(encode({"id": name, "type": kind, **fields}) + b"\n")
            await self._writer.drain()
            response = await answer
        except OSError as error:
            raise LinkLost(error.strerror or str(error)) from None
        finally:
            self._open.pop(name, None)
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # else asyncio would complain that nobody asked for it
        if not response.success:
            raise Refused(response.error or "it was refused without a word")
        return response

    def close(self) -> None:
        """Ends the connection without a word."""
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            with contextlib.suppress(OSError, RuntimeError):  # the loop may be over already
                self._writer.close()
        self._fail("the inspector left")

    async def _read(
        self,
        reader: asyncio.StreamReader,
        splitter: LineSplitter,
        lines: list[bytes],
        hear: Callable[[Incoming], None],
        over: Callable[[str], None],
    ) -> None:
        reason = "it closed the connection"
        try:
            while True:
                for line in lines:
                    self._take(read_record(line), hear)
                data = await reader.read(READ_BYTES)
                if not data:
                    break
                lines = splitter.feed(data)
        except (OSError, BadRecord) as error:
            reason = getattr(error, "strerror", None) or str(error)
        except Exception as error:  # a fault of ours must not leave a view that only looks live
            reason = f"the inspector failed: {describe(error)}"
        if self._writer is not None:
            self._writer.close()
        self._fail(reason)
        over(reason)

    def _take(self, record: Incoming | None, hear: Callable[[Incoming], None]) -> None:
        if isinstance(record, Response):
            self._answer(record)
        elif record is not None:
            hear(record)

    def _answer(self, response: Response) -> None:
        waiting, then = self._open.get(response.id or "", (None, None))
        if waiting is None or waiting.done():
            return
        try:
            if then is not None and response.success:
                then(response)
        except BadRecord as error:
            waiting.set_exception(error)
        else:
            waiting.set_result(response)

    def _fail(self, reason: str) -> None:
        for waiting, _ in self._open.values():
            if not waiting.done():
                waiting.set_exception(LinkLost(reason))


async def _greeting(reader: asyncio.StreamReader) -> tuple[Hello, list[bytes], LineSplitter]:
    """The greeting, and what came along behind it."""
    splitter = LineSplitter()
    while data := await reader.read(READ_BYTES):
        lines = splitter.feed(data)
        if not lines:
            continue
        hello = read_record(lines[0])
        if isinstance(hello, Refusal):
            raise BadRecord(hello.error)
        if not isinstance(hello, Hello):
            raise BadRecord("it did not greet as an inspector's door does")
        if hello.version != VERSION:
            raise BadRecord(f"it speaks version {hello.version} of the inspector's wire, this program {VERSION}")
        return hello, lines[1:], splitter
    raise BadRecord("it closed the connection before it greeted")
