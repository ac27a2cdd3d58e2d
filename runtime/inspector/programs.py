"""The programs that an inspector can reach on this system, and the stream of bytes to one: a socket, or a named pipe.

A program is known by its pid and an address, which the system's own module makes and nobody else reads.
"""

from __future__ import annotations

import asyncio
import sys

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

if sys.platform == "win32":
    from asyncio import windows_events, windows_utils

    from runtime.inspector_pipes import is_live, known_pipes
    from runtime.named_pipe import current_user, open_client

    AGAIN_S = 0.01

    known_programs = known_pipes

    async def open_stream(address: str) -> Stream:
        """Waits while all instances of the pipe are taken. Raises `OSError`: `FileNotFoundError` if nobody listens."""
        user = current_user()
        while (handle := open_client(address, user)) is None:
            await asyncio.sleep(AGAIN_S)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, windows_events.ProactorEventLoop)
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        # `create_pipe_connection` opens the pipe by itself, and would let whoever made it act in our name.
        transport = loop._make_duplex_pipe_transport(windows_utils.PipeHandle(handle), protocol)  # type: ignore[attr-defined]
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

else:
    from runtime.inspector_sockets import is_live, known_sockets

    known_programs = known_sockets

    async def open_stream(address: str) -> Stream:
        """Raises `OSError`: `ConnectionRefusedError` or `FileNotFoundError` if nobody listens."""
        return await asyncio.open_unix_connection(address)


__all__ = ["Stream", "is_live", "known_programs", "open_stream"]
