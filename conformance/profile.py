"""Profiles: how a program is told where the model is, and which of its flags open a session. One JSON file a program.

Owns the format of a profile and which one a command gets. `docs/conformance/agents.md` shows how to write one.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from conformance.folders import FOLDERS, check_files
from conformance.names import used_names, value_problem

_NAMES = (*FOLDERS, "url", "project")


class ProfileError(ValueError):
    """A profile that is not there or cannot be read."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Texts may hold `{{home}}`, `{{agent}}`, `{{cwd}}`, `{{sessions}}`, `{{url}}`, `{{provider}}`, `{{model}}` and
    `{{session}}`; `{"$ref": "models"}` and `{"$ref": "settings"}` stand for the whole objects. `unset` are prefixes of
    variables that a run must not inherit; `project` is the folder of settings inside of a project; `lacks` are features
    that the program does not claim to have, with why."""

    name: str
    detect: tuple[str, ...] = ()
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    files: dict[str, Any] = {}
    args: tuple[str, ...] = ()
    model_args: tuple[str, ...] = ()
    session_args: tuple[str, ...] = ()
    in_memory_args: tuple[str, ...] = ()
    project: str = ".atomic"
    lacks: dict[str, str] = {}


def read_profile(name_or_path: str) -> Profile:
    """A shipped profile by its name, or any by the path of its file."""
    shipped = _shipped()
    if name_or_path in shipped:
        return shipped[name_or_path]
    file = Path(name_or_path)
    if not file.is_file():
        raise ProfileError(f"no profile {name_or_path!r}: neither a file nor one of {', '.join(sorted(shipped))}")
    return _parse(file.read_bytes(), name_or_path)


def detect_profile(command: Sequence[str]) -> Profile:
    """By the names in the command line; `atomic` when none is known."""
    shipped = _shipped()
    for word in command:
        for part in (Path(word).name, *Path(word).parts):
            for profile in shipped.values():
                if part in profile.detect:
                    return profile
    return shipped["atomic"]


def _shipped() -> dict[str, Profile]:
    folder = resources.files("conformance") / "profiles"
    read = [_parse(file.read_text(encoding="utf-8"), file.name) for file in folder.iterdir()]
    return {profile.name: profile for profile in sorted(read, key=lambda profile: profile.name)}


def _parse(text: str | bytes, where: str) -> Profile:
    """How deep is too deep depends on the Python: 3.13 reads what its own recursion then cannot look through."""
    try:
        return _checked(text, where)
    except (msgspec.DecodeError, UnicodeError) as problem:
        allowed = ", ".join(Profile.__struct_fields__)
        raise ProfileError(f"{where}: {problem}; the fields are {allowed}") from problem
    except RecursionError:
        raise ProfileError(f"{where}: it is nested too deep to be read") from None


def _checked(text: str | bytes, where: str) -> Profile:
    profile = msgspec.json.decode(text, type=Profile)
    if wanted := check_files(profile.files):
        raise ProfileError(f"{where}: files is not {wanted}")
    _check_names(profile, where)
    return profile


def _check_names(profile: Profile, where: str) -> None:
    model, session = (*_NAMES, "provider", "model"), (*_NAMES, "provider", "model", "session")
    known = {
        "env": _NAMES,
        "files": (*_NAMES, "models", "settings"),
        "args": model,
        "in_memory_args": model,
        "model_args": model,
        "session_args": session,
    }
    for field, names in known.items():
        value: Any = getattr(profile, field)
        inside = list(value) if isinstance(value, tuple) else list(value.values())
        if wrong := [name for name in used_names(inside) if name not in names]:
            raise ProfileError(f"{where}: {field} has the name {wrong[0]!r}; known are {', '.join(names)}")
        if problem := value_problem(inside):
            raise ProfileError(f"{where}: {field}: {problem}")
