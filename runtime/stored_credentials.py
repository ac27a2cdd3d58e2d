"""The credentials that `auth.json` holds, as they stand there.

Owns the reading of that file; nothing here writes it. Promises that a fault is told by field and type, never by value.
Source: sessions 4.1 and 4.4.
"""

from __future__ import annotations

import os
from typing import Any

from msgspec import Struct

from runtime.config_values import decode_document, kind_of


class StoredCredential(Struct, frozen=True):
    """An entry of auth.json. `env` holds variables that only this provider sees."""

    type: str
    key: str | None = None
    env: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"StoredCredential(type={self.type!r})"


def load_stored(agent_dir: str) -> tuple[dict[str, StoredCredential], list[str]]:
    """The entries of `<agent_dir>/auth.json` and one warning for each fault, none of which tells a value."""
    path = os.path.join(agent_dir, "auth.json")
    try:
        with open(path, "rb") as file:
            document = decode_document(file.read())
            mode = os.fstat(file.fileno()).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return {}, []
    except OSError as error:
        return {}, [f"Failed to load auth.json: {error.strerror or error}"]
    except ValueError as error:
        return {}, [f"Failed to parse auth.json: {error}"]
    if not isinstance(document, dict):
        return {}, [f"auth.json must hold an object, not {kind_of(document)}"]
    warnings = [] if os.name == "nt" or not mode & 0o077 else [f"{path} can be read by others; run: chmod 600 {path}"]
    stored = {provider: _stored_entry(provider, entry, warnings) for provider, entry in document.items()}
    return stored, warnings


def _stored_entry(provider: str, entry: Any, warnings: list[str]) -> StoredCredential:
    """A broken entry still owns its provider: falling through to another key would hide the fault."""
    label = f'auth.json: provider "{provider}"'
    if not isinstance(entry, dict):
        warnings.append(f"{label} is of type {kind_of(entry)}; allowed: an object")
        return StoredCredential("broken")
    kind, key, env = entry.get("type"), entry.get("key"), entry.get("env") or {}
    if not isinstance(kind, str):
        warnings.append(f"{label}: type is of type {kind_of(kind)}; allowed: api_key")
        return StoredCredential("broken")
    if kind == "api_key" and key is not None and not isinstance(key, str):
        warnings.append(f"{label}: key is of type {kind_of(key)}; allowed: a string")
        return StoredCredential("broken")
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        warnings.append(f"{label}: env is not an object of strings; it is ignored")
        env = {}
    return StoredCredential(kind, key if isinstance(key, str) else None, env)
