"""Small facts about JSON values: equality, a short text for readers, and what stands for a key that is not there.

Pure.
"""

from __future__ import annotations

import json
from typing import Any

ABSENT = type("Absent", (), {"__repr__": lambda self: "nothing"})()


def shorten(value: Any, limit: int = 80) -> str:
    """A value as one line of JSON, cut in its middle when it is longer than `limit`."""
    text = "nothing" if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 21]}…{text[-20:]}"


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 0 and 0.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def is_hex(value: Any) -> bool:
    """Whether it is a text of bytes as hexadecimal digits."""
    try:
        bytes.fromhex(value)
    except (TypeError, ValueError):
        return False
    return True


def join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
