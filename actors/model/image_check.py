"""Whether data is an image that model providers take.

Pure. A provider refuses a request with a broken or too large image, and with it every later request of the session that
holds the image; so it is refused where it comes in. Knows the four kinds that providers take, by their content and
never by a name: PNG, JPEG, GIF and WebP. Nothing is decompressed: an image is whole when its outer structure reaches
its end. Source: `tasks.md` 1.2, and the providers' documented limits.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.tool.images import MAX_BYTES, mime_type

MAX_PIXELS = 8000  # of either side
MIME_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_CUT = "the image is cut off or damaged"


def image_fault(data: str, declared: str) -> str | None:
    """Why the image of a command cannot be one (`data` is base64, `declared` its MIME type), in words that may follow
    its name; None if it may be sent. Never raises. What the bytes show is left to the model: a client may know
    kinds of images that we do not."""
    if declared not in MIME_TYPES:
        return f"mimeType must be one of {', '.join(MIME_TYPES)}, not {_shown(declared)}"
    if not data:
        return "data must not be empty"
    if data[:5].lower() == "data:":
        return f"data must be the base64 alone, not a data: URL, got {_shown(data[:40])}"
    if len(data) > -(-MAX_BYTES // 3) * 4 + 4096:  # with room for line breaks, which have their own text
        return f"the image is larger than {MAX_BYTES} bytes, the most that models take"
    raw = _decoded(data)
    return _base64_fault(data) if raw is None else _size_fault(raw)


def content_fault(data: bytes, declared: str, *, any_size: bool = False) -> str | None:
    """Why a model would refuse an image that was read from a file; None if it would not. With `any_size` its size is
    no reason: it is going to be made smaller."""
    kind = mime_type(data)
    if kind is None:
        return f"the data is no image of the types {', '.join(MIME_TYPES)}"
    if kind != declared:
        return f"the image is of type {kind}, not {declared}"
    if not any_size and (fault := _size_fault(data)) is not None:
        return fault
    try:
        width, height = _READERS[kind](data)
    except (IndexError, ValueError):
        return _CUT
    most = 2**32 if any_size else MAX_PIXELS
    if not (0 < width <= most and 0 < height <= most):
        return f"the image is {width} x {height} pixels, and models take 1 to {MAX_PIXELS} in either direction"
    return None


def pixel_size(head: bytes) -> tuple[int, int] | None:
    """Width and height of the image that begins with `head`; None if that does not tell them."""
    kind = mime_type(head)
    try:
        return _SIZES[kind](head) if kind else None
    except (IndexError, ValueError):
        return None


def _size_fault(data: bytes) -> str | None:
    return f"the image has {len(data)} bytes, and models take at most {MAX_BYTES}" if len(data) > MAX_BYTES else None


def _decoded(data: str) -> bytes | None:
    from binascii import a2b_base64

    try:
        return a2b_base64(data, strict_mode=True)
    except ValueError:
        return None


def _base64_fault(data: str) -> str:
    import re

    if any(character.isspace() for character in data[:4096]) or len(data.split(None, 1)) > 1:
        return "data must be base64 without line breaks or spaces"
    wrong = re.search(r"[^A-Za-z0-9+/=]", data)
    if wrong is None:
        return f"data must be base64: its length or padding is wrong ({len(data)} characters)"
    return f"data must be base64: character {wrong.start() + 1} is {_shown(wrong[0])}"


def _shown(value: str) -> str:
    return repr(value[:80]) if len(value) <= 80 else f"{value[:80]!r}..."


# ---- width and height; ValueError or IndexError where the data ends too early


def _png_size(data: bytes) -> tuple[int, int]:
    if _field(data, 8, 8) != b"\0\0\0\x0dIHDR":
        raise ValueError
    return _big(data, 16, 4), _big(data, 20, 4)


def _png(data: bytes) -> tuple[int, int]:
    at, size = 8, _png_size(data)
    while True:
        length, kind = _big(data, at, 4), data[at + 4 : at + 8]
        at += 12 + length
        if at > len(data):
            raise ValueError
        if kind == b"IEND":
            return size


def _jpeg_scan(data: bytes) -> tuple[int, tuple[int, int]]:
    """Where the first scan begins, and the size that stands before it."""
    at, size = 2, (0, 0)
    while True:
        if data[at] != 0xFF:
            raise ValueError
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker == 0xDA:
            return at, size
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            size = _big(data, at + 7, 2), _big(data, at + 5, 2)
        at += 2 + _big(data, at + 2, 2)


def _jpeg(data: bytes) -> tuple[int, int]:
    at, size = _jpeg_scan(data)
    data.index(b"\xff\xd9", at)  # a preview in front of the scan has an end of its own
    return size


def _gif_size(data: bytes) -> tuple[int, int]:
    return _little(data, 6, 2), _little(data, 8, 2)


def _gif(data: bytes) -> tuple[int, int]:
    at, images = 13 + _colours(data[10]), 0
    while at < len(data) and data[at] != 0x3B:  # some programs leave the end mark out
        if data[at] == 0x21:
            at += 2
        elif data[at] == 0x2C:
            at += 11 + _colours(data[at + 9])
            images += 1
        else:
            raise ValueError
        while data[at]:
            at += 1 + data[at]
        at += 1
    if not images:
        raise ValueError
    return _gif_size(data)


def _colours(flags: int) -> int:
    """Bytes of the colour table that `flags` announce."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _webp(data: bytes) -> tuple[int, int]:
    if 8 + _little(data, 4, 4) > len(data):
        raise ValueError
    return _webp_size(data)


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if kind == b"VP8L":
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
    raise ValueError


def _big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(_field(data, at, size), "big")


def _little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(_field(data, at, size), "little")


def _field(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise ValueError
    return data[at : at + size]


_READERS: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
_SIZES: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "image/png": _png_size,
    "image/jpeg": lambda data: _jpeg_scan(data)[1],
    "image/gif": _gif_size,
    "image/webp": _webp_size,
}
