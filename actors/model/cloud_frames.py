"""Bedrock's event frames, turned into the server-sent events that the Anthropic reader reads.

Sans-io: bytes in, bytes out, in any chunking. Frames are cut here by their length and decoded by the SDK, which checks
their sums.
"""

from __future__ import annotations

import re
from typing import Any

from actors.model.cloud_packages import imported
from actors.model.transport_contract import TransportError

_LEAST, _MOST = 16, 32 * 1024 * 1024


class FrameDecoder:
    def __init__(self) -> None:
        """Raises TransportError when botocore is not installed."""
        imported("botocore.eventstream", "bedrock", "Bedrock")
        from anthropic.lib.bedrock._stream_decoder import AWSEventStreamDecoder

        self._decoder = AWSEventStreamDecoder()
        self._pending = bytearray()

    def feed(self, data: bytes) -> bytes:
        """The events of all frames that `data` completes. Raises TransportError for what is no frame."""
        self._pending += data
        events: list[bytes] = []
        while (length := self._length()) and length <= len(self._pending):
            frame = bytes(self._pending[:length])
            del self._pending[:length]
            events += map(_as_sse, self._decoded(frame))
        return b"".join(events)

    def _length(self) -> int:
        if len(self._pending) < 4:
            return 0
        length = int.from_bytes(self._pending[:4], "big")
        if not _LEAST <= length <= _MOST:
            raise TransportError("Bedrock sent a frame that cannot be read (its length)")
        return length

    def _decoded(self, frame: bytes) -> list[Any]:
        try:
            return list(self._decoder.iter_bytes(iter([frame])))
        except Exception as error:  # a wrong sum, or a shape that botocore does not know
            raise TransportError(f"Bedrock sent a frame that cannot be read ({type(error).__name__})") from None


def _as_sse(event: Any) -> bytes:
    data = re.sub(r"[\r\n]+", " ", event.data)
    return f"event: {event.event}\ndata: {data}\n\n".encode()
