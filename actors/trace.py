"""Mail as JSON lines, for bug reports and for the seeds of the simulation.

A line tells who told whom what: `{"from", "to", "mail", "fields"}`. It shows no secret and little text: mappings
(environments) and bytes are told by their size, long strings are cut, nested values by their type.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from actors.base import Address
from protocol.codec import encode

SHOWN_CHARS = 80
SHOWN_ITEMS = 5


def trace_line(sender: str, receiver: str, mail: Any) -> bytes:
    """One record with its line feed."""
    record = {"from": sender, "to": receiver, "mail": type(mail).__name__, "fields": _fields(mail)}
    return encode(record) + b"\n"


def _fields(mail: Any) -> dict[str, Any]:
    if not isinstance(mail, Struct):
        return {}
    return {field: _shown(getattr(mail, field), 2) for field in mail.__struct_fields__}


def _shown(value: Any, depth: int) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return value if len(value) <= SHOWN_CHARS else value[:SHOWN_CHARS] + "…"
        case bytes() | msgspec.Raw():
            return f"<{len(bytes(value))} bytes>"
        case tuple() | list() | frozenset() if depth:
            items = list(value)
            shown = [_shown(item, depth - 1) for item in items[:SHOWN_ITEMS]]
            return [*shown, f"<{len(items) - SHOWN_ITEMS} more>"] if len(items) > SHOWN_ITEMS else shown
    if type(value).__name__ in ("Ticket", "Record", "QueueView") and depth:
        return {field: _shown(getattr(value, field), depth - 1) for field in value.__struct_fields__}
    return f"<{_name(value)}>"


def _name(value: Any) -> str:
    """An address tells whose it is."""
    return getattr(value, "name", None) or type(value).__name__ if _is_address(value) else type(value).__name__


def _is_address(value: Address[Any] | Any) -> bool:
    return hasattr(value, "tell")
