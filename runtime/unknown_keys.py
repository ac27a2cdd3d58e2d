"""Keys of a configuration file that nobody reads, each with the known one that was probably meant.

Pure. Promises one line at most for an object, and that no value of it is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.config_values import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

SHOWN_KEYS = 5


def told_unknown(label: str, keys: Iterable[str], known: Collection[str]) -> str | None:
    """The warning for `keys`, with `label` (the file, and the place in it) before it; None when all are known."""
    strange = [f"{shown(key)}{suggestion(key, known)}" for key in keys if key not in known]
    if not strange:
        return None
    more = f" and {len(strange) - SHOWN_KEYS} more" if len(strange) > SHOWN_KEYS else ""
    noun = "unknown key" if len(strange) == 1 else "unknown keys"
    return f"{label}: {noun} {', '.join(strange[:SHOWN_KEYS])}{more}"


def suggestion(key: str, known: Collection[str]) -> str:
    """` (did you mean "…"?)`, or nothing when no known key is near. A part that is dotted is compared as a whole."""
    near = nearest(key, known)
    return f' (did you mean "{near}"?)' if near else ""


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word that was meant, most likely: of those near it, one with the same letters if there is one."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=3)
    return min(near, key=lambda one: sorted(one) != sorted(word), default=None)


def paths_of(document: Mapping[str, Any], sections: Collection[str], prefix: str = "") -> Iterable[str]:
    """The dotted paths of a document's keys. Only the objects at `sections` are entered; `$schema` is nobody's key."""
    for key, value in document.items():
        path = prefix + key
        if path in sections and isinstance(value, dict):
            yield from paths_of(value, sections, path + ".")
        elif path != "$schema":
            yield path
