"""What the program stamps on what it makes: the time, and ids that nobody else has."""

from __future__ import annotations

import os
import time
import uuid

from actors.session.file import Stamps


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def uuid7() -> uuid.UUID:
    """48 bits of milliseconds, then random bits (RFC 9562), so that session ids sort by age. Python has it from 3.14
    on."""
    random = int.from_bytes(os.urandom(10))
    value = (now_ms() & (2**48 - 1)) << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64
    return uuid.UUID(int=value | 0b10 << 62 | random & (2**62 - 1))


STAMPS = Stamps(now_ms, lambda: str(uuid7()), lambda: str(uuid.uuid4()))
