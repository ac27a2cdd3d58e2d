"""Which image a file is, by its first bytes, never by its name.

Pure. Knows the four kinds that model providers take. Source: `tasks.md` 1.2.
"""

from __future__ import annotations

HEAD_BYTES = 16
# Providers refuse a request with a larger image, and with it every later request of the session that holds it:
# 5 MB of base64 is the tightest limit among them, 3.75 MiB of file.
MAX_BYTES = 3_932_160


def mime_type(head: bytes) -> str | None:
    """MIME type told by `head` (at least `HEAD_BYTES` of the file, or all of it), or `None`."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None
