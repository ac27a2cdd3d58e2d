"""The one record that answers a command, built by hand around its data: it leaves on every command.

Source: contract `rpc-protocol.md`, "Commands" and "Error Handling".
"""

from __future__ import annotations

from protocol.commands import COMMAND_NAMES
from protocol.json_text import encode

_MIDDLES = {name: b'"type":"response","command":"' + name.encode() + b'","success":' for name in COMMAND_NAMES}


def _opening(id: bytes, command: str | None) -> bytes:
    id = bytes(id)  # a `Raw` has no length
    middle = _MIDDLES.get(command or "")
    if middle is None:
        named = b"" if command is None else b'"command":' + encode(command) + b","
        middle = b'"type":"response",' + named + b'"success":'
    return b'{"id":' + id + b"," + middle if id else b"{" + middle


def ok(id: bytes, command: str, data: bytes | None = None) -> bytes:
    """The record of a success. `id` is the command's raw id (`b""`: none), `data` is encoded JSON (`b"null"` is data).

    The line feed is included.
    """
    if data is None:
        return _opening(id, command) + b"true}\n"
    return b"".join((_opening(id, command), b'true,"data":', data, b"}\n"))  # data may be megabytes: one copy


def failed(
    id: bytes, command: str | None, error: str, code: str | None = None, details: dict[str, str] | None = None
) -> bytes:
    """The record of a failure. `command` is `None` for a command without type; `code` and `details` make the one
    structured error (`credential_synchronization`). The line feed is included."""
    record = _opening(id, command) + b'false,"error":' + encode(error)
    if code is not None:
        record += b',"errorCode":' + encode(code) + b',"errorDetails":' + encode(details or {})
    return record + b"}\n"
