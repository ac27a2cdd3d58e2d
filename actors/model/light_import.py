"""Imports httpcore2 without what it does not need here.

It would load importlib.metadata, only to know its own version, and anyio or trio, if they are installed, for its
asynchronous half. That is 40 ms of 75, paid between the first prompt and its first delta.
"""

from __future__ import annotations

import sys
from types import ModuleType

_OPTIONAL = ("anyio", "trio")


def import_httpcore2() -> None:
    """After this `import httpcore2` costs nothing. Modules that were there before stay as they were."""
    if "httpcore2" in sys.modules:
        return
    added = [name for name in ("importlib.metadata", *_OPTIONAL) if name not in sys.modules]
    for name in added:
        sys.modules[name] = None if name in _OPTIONAL else _metadata()  # type: ignore[assignment]  # None: no import
    try:
        import httpcore2  # noqa: F401
    finally:
        for name in added:
            del sys.modules[name]


def _metadata() -> ModuleType:
    module = ModuleType("importlib.metadata")
    module.version = lambda name: ""  # type: ignore[attr-defined]
    return module
