"""UUID version 7: time first, so that session ids sort by age. Python has it from 3.14 on."""

from __future__ import annotations

import os
import time
import uuid


def uuid7() -> uuid.UUID:
    """48 bits of milliseconds, then random bits (RFC 9562)."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10))
    value = (milliseconds & (2**48 - 1)) << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64
    return uuid.UUID(int=value | 0b10 << 62 | random & (2**62 - 1))
