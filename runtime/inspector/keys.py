"""The keys of the inspector: which one asks for what, and what the setting `tasks.keys` may change.

Pure. Up, Down, Enter, Escape, Home and End are fixed, so that nobody can lock himself in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Ask = Literal["up", "down", "enter", "leave", "home", "end", "back", "stop", "pageUp", "pageDown", "again"]
DEFAULTS: dict[Ask, tuple[str, ...]] = {
    "back": ("left",),
    "stop": ("x",),
    "pageUp": ("pageup",),
    "pageDown": ("pagedown",),
}
"""What `tasks.keys` may change."""
FIXED: dict[str, Ask] = {
    "up": "up",
    "down": "down",
    "enter": "enter",
    "escape": "leave",
    "home": "home",
    "end": "end",
    "r": "again",
}
NAMES = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "enter": "Enter",
    "escape": "Esc",
    "home": "Home",
    "end": "End",
}


RESERVED = frozenset({*FIXED, "y", "n", "ctrl+c"})
_SPECIAL = (
    "left",
    "right",
    "pageup",
    "pagedown",
    "tab",
    "space",
    "insert",
    "delete",
    "backspace",
    "f1",
    "f2",
    "f3",
    "f4",
)
_KEY = re.compile(rf"(?:(?:ctrl|alt|shift)\+)*(?:[!-~]|{'|'.join(_SPECIAL)}|f[5-9]|f1[0-2])")


def read_keys(ask: str, value: object) -> tuple[str, ...]:
    """The keys that a setting gives an action. Raises `ValueError` with what is allowed."""
    if ask not in DEFAULTS:
        raise ValueError(f"keys for {', '.join(DEFAULTS)}")
    keys = value if isinstance(value, list) else [value]
    for key in keys:
        if not isinstance(key, str) or not _KEY.fullmatch(key) or key in RESERVED:
            taken = ", ".join(sorted(RESERVED))
            raise ValueError(f'a key or a list of keys, like "k", "ctrl+k", "f5", "pageup"; none of {taken}')
    if not keys:
        raise ValueError("at least one key")
    return tuple(keys)


class Keys:
    """`configured` holds the keys of each action that the user chose; they take the place of the default ones."""

    def __init__(self, configured: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self._chosen: dict[str, tuple[str, ...]] = dict(DEFAULTS) | dict(configured or {})
        self._asks: dict[str, Ask] = {}
        for ask in sorted(DEFAULTS, key=lambda ask: ask in (configured or {})):
            self._asks.update(dict.fromkeys(self._chosen[ask], ask))
        self._asks.update(FIXED)

    def ask(self, key: str, character: str | None) -> Ask | None:
        """What a key means; `character` is what it would type."""
        return self._asks.get(key) or (self._asks.get(character) if character else None)

    def name(self, ask: str) -> str:
        """How the first key of an action is called on the screen."""
        key = (self._chosen.get(ask) or ("",))[0]
        return NAMES.get(key) or (key.upper() if re.fullmatch(r"f\d+", key) else key)
