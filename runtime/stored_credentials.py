"""The credentials that `auth.json` holds, as they stand there, and how one of them is changed.

Owns that file. Promises that a fault is told by field and type, never by value, and that a write touches one provider
alone: under a lock, on what the file holds then, by temp file and rename, readable by the user only. A file that is not
valid JSON is never written. Source: sessions 4.1 and 4.4.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from runtime.config_values import decode_document, is_unicode, kind_of, shown
from runtime.regular_file import read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCK_TIMEOUT_S = 2.0
LOCK_PAUSE_S = 0.02
PRIVATE = 0o600


class StoredCredential(Struct, frozen=True):
    """An entry of auth.json. `env` holds variables that only this provider sees."""

    type: str
    key: str | None = None
    env: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"StoredCredential(type={self.type!r})"


class StoredCredentialsError(ValueError):
    """auth.json could not be read or written; the text holds no value of it."""


def load_stored(agent_dir: str) -> tuple[dict[str, StoredCredential], list[str]]:
    """The entries of `<agent_dir>/auth.json` and one warning for each fault, with the path and no value."""
    try:
        stored, warnings = read_stored(agent_dir)
    except StoredCredentialsError as error:
        stored, warnings = {}, [str(error)]
    path = _path(agent_dir)
    return stored, [text if path in text else text.replace("auth.json", path, 1) for text in warnings]


def read_stored(agent_dir: str) -> tuple[dict[str, StoredCredential], list[str]]:
    """The same, but raises StoredCredentialsError for a file that cannot be read as a whole."""
    path = _path(agent_dir)
    document = _read(path)
    if document is None:
        return {}, []
    mode = os.stat(path).st_mode if os.path.exists(path) else 0
    warnings = [] if os.name == "nt" or not mode & 0o077 else [f"{path} can be read by others; run: chmod 600 {path}"]
    stored = {provider: _stored_entry(provider, entry, warnings) for provider, entry in document.items()}
    return stored, warnings


def write_stored(agent_dir: str, provider: str, credential: Mapping[str, Any] | None) -> None:
    """Put the provider's credential into auth.json, or take it out (None). All else that stands there is kept, also
    what other processes put there meanwhile. Raises StoredCredentialsError; then the file is as it was."""
    from filelock import FileLock, Timeout

    target = os.path.realpath(_path(agent_dir))
    try:
        if credential is None and not os.path.lexists(target):
            return
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with FileLock(target + ".lock", timeout=LOCK_TIMEOUT_S, poll_interval=LOCK_PAUSE_S):
            _change(target, provider, credential)
    except Timeout:
        raise StoredCredentialsError(f"{target} is locked by another process; the credential was not changed") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoredCredentialsError(f"{target} could not be written: {reason}") from None


def _path(agent_dir: str) -> str:
    return os.path.join(agent_dir, "auth.json")


def _read(path: str) -> dict[str, Any] | None:
    try:
        document = decode_document(read_regular(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoredCredentialsError(f"Failed to load auth.json: {error.strerror or type(error).__name__}") from None
    except ValueError as error:
        raise StoredCredentialsError(f"Failed to parse auth.json: {error}") from None
    if not isinstance(document, dict):
        raise StoredCredentialsError(f"auth.json must hold an object, not {kind_of(document)}")
    return document


def _change(target: str, provider: str, credential: Mapping[str, Any] | None) -> None:
    document = _read(target) or {}
    if credential is None and provider not in document:
        return
    if credential is None:
        del document[provider]
    else:
        document[provider] = credential
    _replace(target, _encoded(document))


def _encoded(document: dict[str, Any]) -> bytes:
    """In ASCII, for any string that JSON allows. Not msgspec, which refuses lone surrogates."""
    import json

    try:
        return json.dumps(document, indent=2, allow_nan=False).encode("ascii") + b"\n"
    except (ValueError, RecursionError):
        raise StoredCredentialsError("the credential cannot be written as JSON") from None


def _replace(target: str, data: bytes) -> None:
    """A crash leaves the old file or the new one, and at no time could others read it."""
    draft = f"{target}.{os.getpid()}.tmp"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        with open(descriptor, "wb") as file:
            os.chmod(draft, PRIVATE)  # a draft that was left behind may have another mode
            file.write(data)
        os.replace(draft, target)
    except OSError:
        if os.path.lexists(draft):
            os.unlink(draft)
        raise


def _stored_entry(provider: str, entry: Any, warnings: list[str]) -> StoredCredential:
    """A broken entry still owns its provider: falling through to another key would hide the fault."""
    label = f"auth.json: provider {shown(provider)}"
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
    if isinstance(key, str) and not is_unicode(key):
        warnings.append(f"{label}: key is no Unicode text")
        return StoredCredential("broken")
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        warnings.append(f"{label}: env is not an object of strings; it is ignored")
        env = {}
    return StoredCredential(kind, key if isinstance(key, str) else None, env)
