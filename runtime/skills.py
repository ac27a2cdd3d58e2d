"""Skills: which folders may hold them, which files in those are skills, and what each one says of itself.

Owns the search (links, ignore files, which of two wins by its place) and the rules for names. Promises that every fault
costs one warning, that a real file is one skill however many links lead to it, and that nothing heavy is imported while
there are no skills. Source: sessions 7.3.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from msgspec import Struct

from actors.session.expansion import Skill, advertised
from actors.session.tokens import utf16_length
from runtime.config_values import shown
from runtime.front_matter import read_document, read_flag
from runtime.templates import flag_places, project_dirs, setting_places, standard_places, user_dirs, user_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pathspec import GitIgnoreSpec

    from actors.session.expansion import Origin
    from runtime.front_matter import Document
    from runtime.templates import Place, SettingPath

SKILL_FILE = "SKILL.md"
IGNORE_FILES = (".gitignore", ".ignore", ".fdignore")  # in one folder the later file's rules win
MAX_NAME, MAX_DESCRIPTION = 64, 1024


def load_skills(
    agent_dir: str,
    cwd: str,
    env: Mapping[str, str],
    *,
    trusted: bool,
    settings_paths: Sequence[SettingPath] = (),
    flag_paths: Sequence[str] = (),
    discover: bool = True,
) -> tuple[list[Skill], list[str]]:
    """All skills, strongest first, and warnings. `agent_dir` and `cwd` are absolute. An untrusted project brings none;
    `discover=False` is `--no-skills`, which leaves those that flags name."""
    warnings: list[str] = []
    places = flag_places(flag_paths, cwd, env, warnings)
    if discover and trusted:
        places += setting_places(settings_paths, "project", warnings)
        places += _project_places(cwd, env)
    if discover:
        places += setting_places(settings_paths, "user", warnings)
        places += _user_places(agent_dir, env)
    skills = list(_skills(places, warnings))
    warnings += _collisions(skills)
    return skills, warnings


def _skills(places: Iterable[Place], warnings: list[str]) -> Iterator[Skill]:
    seen: set[str] = set()
    for place in places:
        for path in _skill_files(place.path, warnings):
            real = os.path.realpath(path)
            if real in seen:
                continue
            seen.add(real)
            document = read_document(path, warnings)
            if document is not None and _claims_to_be_skill(path, place, document):
                skill = _skill(path, real, document, place.origin, warnings)
                if skill is not None:
                    yield skill


def _claims_to_be_skill(path: str, place: Place, document: Document) -> bool:
    """A README beside skills is none, and needs no warning."""
    return document.fields is not None or path == place.path or os.path.basename(path) == SKILL_FILE


def _skill(path: str, real: str, document: Document, origin: Origin, warnings: list[str]) -> Skill | None:
    description = document.text("description")
    if description is None:
        warnings.append(f"{path} is skipped: a skill needs a description, a text in its front matter")
        return None
    base_dir = os.path.dirname(path)
    stem = os.path.basename(base_dir if os.path.basename(path) == SKILL_FILE else path.removesuffix(".md"))
    name = document.text("name") or stem
    hidden = read_flag((document.fields or {}).get("disable-model-invocation"))
    warnings += [f"{path}: {fault}" for fault in _faults(name, description, hidden)]
    return Skill(name, description, path, real, base_dir, document.body.strip(), origin, hidden is True)


def _faults(name: str, description: str, hidden: bool | None) -> Iterator[str]:
    """What is against the rules, though the skill is loaded."""
    if (length := utf16_length(name)) > MAX_NAME:
        yield f"the name {shown(name)} has {length} characters; at most {MAX_NAME} are allowed"
    if not re.fullmatch("[a-z0-9-]+", name):
        yield f"the name {shown(name)} may hold a-z, 0-9 and - only"
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield f"the name {shown(name)} must not begin or end with a hyphen, or hold two in a row"
    if (length := utf16_length(description)) > MAX_DESCRIPTION:
        yield f"the description has {length} characters; at most {MAX_DESCRIPTION} are allowed"
    if hidden is None:
        yield "disable-model-invocation may be true or false; it is taken as false"


def _collisions(skills: list[Skill]) -> Iterator[str]:
    winners: dict[str, Skill] = {}
    selectors = {skill.path: selector for selector, skill in advertised(skills)}
    for skill in skills:
        winner = winners.setdefault(skill.name, skill)
        if winner is not skill:
            yield (
                f"{skill.path} has the name {shown(skill.name)} of {winner.path}, which comes first; "
                f"use it as /skill:{selectors[skill.path]}"
            )


# ---- where -------------------------------------------------------------------------------------------------------


def _project_places(cwd: str, env: Mapping[str, str]) -> list[Place]:
    """The project's own folders, then `.agents/skills` from `cwd` up to the root of its repository, else of the file
    system. That of the home directory is the user's."""
    home = user_home(env)
    shared = [os.path.join(folder, ".agents") for folder in _up_to_repository(cwd) if folder != home]
    return standard_places("project", [*project_dirs(cwd), *shared], "skills")


def _user_places(agent_dir: str, env: Mapping[str, str]) -> list[Place]:
    folders = [*user_dirs(agent_dir, env), os.path.join(user_home(env), ".agents")]
    return standard_places("user", folders, "skills")


def _up_to_repository(cwd: str) -> Iterator[str]:
    folder = os.path.normpath(cwd)
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder or os.path.lexists(os.path.join(folder, ".git")):
            return
        folder = parent


# ---- the search --------------------------------------------------------------------------------------------------


class _Rules(Struct, frozen=True):
    """The ignore files of one folder."""

    folder: str
    spec: GitIgnoreSpec


def _skill_files(top: str, warnings: list[str]) -> Iterator[str]:
    """A folder with a SKILL.md is one skill and is not searched further. In any other the sub-folders are searched, and
    in `top` itself each `.md` file is a skill too. Depth first, by name."""
    if os.path.isfile(top):
        yield top
        return
    seen: set[tuple[int, int]] = set()
    waiting: list[tuple[str, tuple[_Rules, ...]]] = [(top, ())]
    while waiting:
        folder, rules = waiting.pop()
        names = _names(folder, seen, warnings)
        rules = (*_ignore_rules(folder, names, warnings), *rules)
        paths = [os.path.join(folder, name) for name in names if name[0] != "." and name != "node_modules"]
        files = [path for path in paths if os.path.isfile(path) and not _is_ignored(path, rules)]
        if (skill := os.path.join(folder, SKILL_FILE)) in files:
            yield skill
            continue
        if folder == top:
            yield from (path for path in files if path.endswith(".md"))
        folders = [path for path in paths if os.path.isdir(path) and not _is_ignored(path + os.sep, rules)]
        waiting += [(path, rules) for path in reversed(folders)]


def _names(folder: str, seen: set[tuple[int, int]], warnings: list[str]) -> list[str]:
    """What is in a folder, sorted; nothing at the second visit, so that a circle of links ends."""
    try:
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            return []
        seen.add((status.st_dev, status.st_ino))
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        warnings.append(f"{folder} cannot be searched for skills: {error.strerror or error}")
        return []


def _ignore_rules(folder: str, names: list[str], warnings: list[str]) -> Iterator[_Rules]:
    lines: list[str] = []
    for path in (os.path.join(folder, name) for name in IGNORE_FILES if name in names):
        if os.path.isfile(path):
            lines += _lines(path, warnings)
    if not lines:
        return
    from pathspec import GitIgnoreSpec

    try:
        yield _Rules(folder, GitIgnoreSpec.from_lines(lines))
    except ValueError as error:
        warnings.append(f"The ignore files in {folder} are not used: {error}")


def _lines(path: str, warnings: list[str]) -> list[str]:
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            return file.read().split("\n")
    except OSError as error:
        warnings.append(f"{path} cannot be read: {error.strerror or error}")
        return []


def _is_ignored(path: str, rules: Iterable[_Rules]) -> bool:
    """`path` of a folder ends with a separator. The nearest folder with a rule for it decides."""
    for each in rules:
        verdict = each.spec.check_file(path[len(each.folder) :].lstrip(os.sep).replace(os.sep, "/")).include
        if verdict is not None:
            return verdict
    return False
