"""Text for a terminal: harmless, of a known width in cells, cut or wrapped to fit.

Pure. What comes from models, commands and files is not trusted: nothing in it moves the cursor, changes colours, joins
cells or turns the direction of writing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from actors.shell.output import Sanitizer

Span = tuple[str, str]
"""A text and the name of its style: one of `STYLES`."""
Line = tuple[Span, ...]
STYLES = ("", "bold", "dim", "busy", "good", "bad", "warn", "mark")

_WORDS = re.compile(r"\s*\S+")


def harmless(text: str) -> str:
    """`text` without escape sequences, with line feeds as the only control characters. A carriage return begins a
    line; a character that only steers others (joiners, directions) is dropped, one that has no shape is U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    sanitizer = Sanitizer()
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = sanitizer.feed(lines.encode("utf-8", "replace")) + sanitizer.end()
    return "".join(map(_shape, clean.expandtabs()))


def one_line(text: str) -> str:
    """`text`, harmless, with white space as single spaces."""
    return " ".join(harmless(text).split())


def _shape(letter: str) -> str:
    if letter.isprintable() or letter == "\n":
        return letter
    kind = unicodedata.category(letter)
    if kind in ("Zs", "Zl", "Zp"):
        return " " * cells(letter) if kind == "Zs" else "\n"
    return "" if kind in ("Cf", "Cc") else "\ufffd"


def cells(text: str) -> int:
    """How many cells of a terminal harmless text takes."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(letter: str) -> int:
    if letter < "\u0300":
        return 1
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def clip(text: str, width: int) -> str:
    """The beginning of `text`; `…` tells that there is more."""
    if cells(text) <= width:
        return text
    return _head(text, width - 1)[0] + "…" if width > 0 else ""


def clip_start(text: str, width: int) -> str:
    """The end of `text`, for paths."""
    if cells(text) <= width:
        return text
    return "…" + _head(text[::-1], width - 1)[0][::-1] if width > 0 else ""


def pad(text: str, width: int) -> str:
    """Exactly `width` cells."""
    shown = clip(text, width)
    return shown + " " * (width - cells(shown))


def _head(text: str, width: int) -> tuple[str, str]:
    """What fits in `width` cells, and the rest."""
    if text.isascii():
        return text[: max(width, 0)], text[max(width, 0) :]
    used = 0
    for place, letter in enumerate(text):
        used += _cell(letter)
        if used > width:
            return text[:place], text[place:]
    return text, ""


def fold(text: str, width: int) -> Iterator[str]:
    """The lines of `text`, cut wherever they reach the edge: output keeps its columns."""
    for line in text.split("\n"):
        yield from _folded(line, max(width, 2))


def _folded(line: str, width: int) -> Iterator[str]:
    head, rest = _head(line, width)
    yield head
    while rest:
        head, rest = _head(rest, width)
        yield head


def wrap(text: str, width: int) -> Iterator[str]:
    """The lines of `text`, broken between words; a word that is wider than the line is cut."""
    width = max(width, 2)
    for line in text.split("\n"):
        yield from (line,) if cells(line) <= width else _wrapped(line, width)


def _wrapped(line: str, width: int) -> Iterator[str]:
    shown = ""
    for word in _WORDS.findall(line):
        if cells(shown) + cells(word) <= width:
            shown += word
            continue
        if shown:
            yield shown
            word = word.lstrip()
        *full, shown = _folded(word, width)
        yield from full
    yield shown


def duration(ms: int) -> str:
    """`8s`, `2m 05s`, `1h 02m`."""
    seconds = max(ms, 0) // 1000
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02}m"
    return f"{minutes}m {seconds:02}s" if minutes else f"{seconds}s"


def count(number: int) -> str:
    """`950`, `12.3k`, `1.2M`, `2.1G`."""
    for unit, name in ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")):
        if number >= unit * 0.99995:  # what would be rounded to 1000 has the next unit
            return f"{number / unit:.1f}".removesuffix(".0") + name
    return str(number)


def plain_text(line: Line) -> str:
    return "".join(text for text, _ in line)


def indented(lines: Iterable[str], style: str = "", by: int = 2) -> list[Line]:
    return [((" " * by + line, style),) for line in lines]


def two_ends(left: Line, right: Line, width: int) -> Line:
    """`right` at the right edge, `left` cut to what is left; without room for both, `left` alone."""
    room = width - cells(plain_text(right)) - 1
    if room < 8:
        return clipped(left, width)
    left = clipped(left, room)
    return (*left, (" " * (width - cells(plain_text(left)) - cells(plain_text(right))), ""), *right)


def clipped(line: Line, width: int) -> Line:
    """The beginning of a line of spans."""
    shown: list[Span] = []
    for text, style in line:
        if cells(text) > width:
            return (*shown, (clip(text, width), style))
        shown.append((text, style))
        width -= cells(text)
    return tuple(shown)
