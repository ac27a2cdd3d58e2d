"""Prompt templates, and the places where Markdown files of the user and of the project lie.

Owns the order of those places, which is that of precedence: a flag, what the project's settings name, the project's
folders, what the user's settings name, the user's folders. Promises that every fault costs one warning and that absent
folders cost nothing. Source: sessions 7.3 and 7.4.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from actors.session.expansion import Origin, Template
from actors.session.naming import expand_home, home_dir
from runtime.config_values import kind_of, shown
from runtime.front_matter import read_document
from runtime.resources import PROJECT_DIRS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from runtime.front_matter import Document

Scope = Literal["user", "project"]
DESCRIPTION_UNITS = 60  # of UTF-16, as clients count


class Place(Struct, frozen=True):
    """A file, or a folder to search, and what is told of whatever is found in it."""

    path: str
    origin: Origin


class SettingPath(Struct, frozen=True):
    """An absolute path that a settings file names, and whose file that was."""

    path: str
    scope: Scope


def load_templates(
    agent_dir: str,
    cwd: str,
    env: Mapping[str, str],
    *,
    trusted: bool,
    settings_paths: Sequence[SettingPath] = (),
    flag_paths: Sequence[str] = (),
    discover: bool = True,
) -> tuple[list[Template], list[str]]:
    """All templates, strongest first and each name once, and warnings. `agent_dir` and `cwd` are absolute. An untrusted
    project brings none; `discover=False` is `--no-prompt-templates`, which leaves those that flags name."""
    warnings: list[str] = []
    places = flag_places(flag_paths, cwd, env, warnings)
    if discover and trusted:
        places += setting_places(settings_paths, "project", warnings)
        places += standard_places("project", project_dirs(cwd), "prompts")
    if discover:
        places += setting_places(settings_paths, "user", warnings)
        places += standard_places("user", user_dirs(agent_dir, env), "prompts")
    found: dict[str, Template] = {}
    for template in _templates(places, warnings):
        first = found.setdefault(template.name, template)
        if first is not template:
            warnings.append(f"{template.path} is skipped: /{template.name} is {first.path}, which comes first")
    return list(found.values()), warnings


def _templates(places: Iterable[Place], warnings: list[str]) -> Iterator[Template]:
    seen: set[str] = set()
    for place in places:
        for path in _markdown_files(place.path, warnings):
            real = os.path.realpath(path)
            if real in seen:
                continue
            seen.add(real)
            document = read_document(path, warnings)
            if document is not None:
                template = _template(path, document, place.origin)
                if len(template.name.split()) != 1:
                    warnings.append(f"{path}: a name with white space cannot be called, since a name ends with it")
                yield template


def _markdown_files(path: str, warnings: list[str]) -> list[str]:
    """`path` itself, or the files right in that folder; a name that begins with a dot is hidden."""
    if os.path.isfile(path):
        return [path]
    try:
        names = sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        warnings.append(f"{path} cannot be searched for prompt templates: {error.strerror or error}")
        return []
    files = (os.path.join(path, name) for name in names if name.endswith(".md") and not name.startswith("."))
    return [file for file in files if os.path.isfile(file)]


def _template(path: str, document: Document, origin: Origin) -> Template:
    name = os.path.basename(path).removesuffix(".md")
    description = document.text("description") or _first_line(document.body)
    return Template(name, description, path, document.body, origin, document.text("argument-hint"))


def _first_line(body: str) -> str:
    line = next((line for line in body.split("\n") if line.strip()), "")
    units = line.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * DESCRIPTION_UNITS:
        return line
    return units[: 2 * DESCRIPTION_UNITS].decode("utf-16-le", "ignore") + "..."


# ---- places, for skills too --------------------------------------------------------------------------------------


def project_dirs(cwd: str) -> list[str]:
    return [os.path.join(cwd, name) for name in PROJECT_DIRS]


def user_dirs(agent_dir: str, env: Mapping[str, str]) -> list[str]:
    """The agent directory, and after the default one the older one below it."""
    home = user_home(env)
    if os.path.normpath(agent_dir) == os.path.join(home, ".atomic", "agent"):
        return [agent_dir, os.path.join(home, ".pi", "agent")]
    return [agent_dir]


def user_home(env: Mapping[str, str]) -> str:
    return os.path.normpath(home_dir(env, os.path.expanduser("~")))


def standard_places(scope: Scope, folders: Iterable[str], kind: Literal["skills", "prompts"]) -> list[Place]:
    return [Place(os.path.join(folder, kind), Origin(scope, scope, "auto", folder)) for folder in folders]


def flag_places(paths: Iterable[str], cwd: str, env: Mapping[str, str], warnings: list[str]) -> list[Place]:
    """`paths` as written behind `--skill` or `--prompt-template`: `~` and paths relative to `cwd` are understood."""
    home = user_home(env)
    existing = _existing((_absolute(path, cwd, home) for path in paths), warnings)
    return [Place(path, Origin("path", "temporary", "cli", _base_dir(path))) for path in existing]


def setting_places(paths: Iterable[SettingPath], scope: Scope, warnings: list[str]) -> list[Place]:
    existing = _existing((each.path for each in paths if each.scope == scope), warnings)
    return [Place(path, Origin("path", scope, "local", _base_dir(path))) for path in existing]


def setting_paths(
    documents: Iterable[tuple[str, dict[str, Any] | None]],
    key: Literal["skills", "prompts"],
    cwd: str,
    env: Mapping[str, str],
) -> tuple[list[SettingPath], list[str]]:
    """What settings files name under `key`, and warnings. `documents` are those of `Settings`, strongest first. User
    and project both count; of two files of one scope the stronger does. Relative paths start from the file's folder."""
    found: dict[Scope, list[SettingPath]] = {}
    warnings: list[str] = []
    home, project = user_home(env), project_dirs(cwd)
    for file, document in documents:
        folder = os.path.dirname(file)
        scope: Scope = "project" if folder in project else "user"
        value = (document or {}).get(key)
        if value is not None and scope not in found:
            entries = _entries(value, key, file, warnings)
            found[scope] = [SettingPath(_absolute(entry, folder, home), scope) for entry in entries]
    return [path for paths in found.values() for path in paths], warnings


def package_folders(
    documents: Sequence[tuple[str, dict[str, Any] | None]], cwd: str, env: Mapping[str, str]
) -> tuple[list[SettingPath], list[str]]:
    """The packages that settings files name and that are folders of this machine, weakest first, and warnings. An entry
    is a text or an object with `source`; one that is no path (`npm:`, `git:`) would have to be installed, and is passed
    over. `documents` are those of `Settings`, strongest first."""
    found: list[SettingPath] = []
    warnings: list[str] = []
    home, project = user_home(env), project_dirs(cwd)
    for file, document in reversed(documents):
        folder = os.path.dirname(file)
        named = (document or {}).get("packages")
        for entry in named if isinstance(named, list) else ():
            source = entry.get("source") if isinstance(entry, dict) else entry
            if isinstance(source, str) and source.startswith((".", "/", "~")):
                path = _absolute(source, folder, home)
                found.append(SettingPath(path, "project" if folder in project else "user"))
                if not os.path.isdir(path):
                    warnings.append(f"{path} was named as a package in {file}, but is no folder")
    return found, warnings


def _entries(value: object, key: str, file: str, warnings: list[str]) -> list[str]:
    if isinstance(value, dict):  # the older form, which had switches beside the list
        value = value.get("customDirectories", [])
    if not isinstance(value, list):
        warnings.append(f"Invalid {key} setting in {file}: {kind_of(value)}; allowed: a list of paths; it is ignored")
        return []
    bad = [entry for entry in value if not isinstance(entry, str) or not entry.strip()]
    warnings += [f"Invalid entry of {key} in {file}: {shown(entry)}; allowed: a path" for entry in bad]
    return [entry for entry in value if isinstance(entry, str) and entry.strip()]


def _existing(paths: Iterable[str], warnings: list[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isfile(path) or os.path.isdir(path):
            yield path
        else:
            warnings.append(f"{path} was named as a place of skills or prompt templates, but is no file or folder")


def _absolute(path: str, folder: str, home: str) -> str:
    return os.path.normpath(os.path.join(folder, expand_home(path, home)))


def _base_dir(path: str) -> str:
    return path if os.path.isdir(path) else os.path.dirname(path)
