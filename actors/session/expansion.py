"""What a prompt that begins with `/` stands for: skills, prompt templates, and the list of both as commands.

Pure. Owns the selectors of skills, the arguments of templates and the block that a skill becomes. Promises that text
which names nothing known comes back unchanged, and that what an argument or a default brings in is never expanded
again. Bodies are those of the last load, so that nothing is read here. Source: sessions 7.3 to 7.5, rpc 2.1 and 2.6.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.responses import SlashCommand

Location = Literal["user", "project", "path"]
SKILL_PREFIX = "/skill:"
SKILLS_INTRODUCTION = """\
# Skills

Each skill is a file with instructions for one kind of task. When a task fits a description, read the whole file at its
location before you begin, and work as it says. Relative paths in it start from the folder that holds the file."""

# Compiled on first use, not at start. Digits are those of ASCII, and a default of more than 1024 characters is text.
_PLACEHOLDER = (
    r"\$\{(?P<subject>[0-9]+|@|ARGUMENTS):-(?P<default>[^}]{0,1024})\}"
    r"|\$\{@:(?P<first>[0-9]+)(?::(?P<count>[0-9]+))?\}"
    r"|\$(?P<plain>[0-9]+|@|ARGUMENTS)"
)
_WORD_PIECE = r"""'([^']*)'?|"([^"]*)"?|([^ \t'"]+)|([ \t]+)"""  # an open quote reaches to the end
_BEYOND = 10**9


class Origin(Struct, frozen=True):
    """Where a file was found. `location` is the contract's word; the others become `sourceInfo`. `source` is `auto` for
    the standard folders, `local` for a path in settings, `cli` for a flag."""

    location: Location
    scope: Literal["user", "project", "temporary"]
    source: str
    base_dir: str
    origin: Literal["package", "top-level"] = "top-level"


class Skill(Struct, frozen=True):
    """A skill as loaded. `path` is where it was found and `real_path` where its links end; `base_dir` is the folder of
    `path`; `body` is trimmed."""

    name: str
    description: str
    path: str
    real_path: str
    base_dir: str
    body: str
    origin: Origin
    disable_model_invocation: bool = False


class Template(Struct, frozen=True):
    """A prompt template as loaded; `description` may be empty."""

    name: str
    description: str
    path: str
    body: str
    origin: Origin
    argument_hint: str | None = None


class ExtensionErrorFacts(Struct, frozen=True):
    """What an `extension_error` event says."""

    extension_path: str
    event: str
    error: str


class Expanded(Struct, frozen=True):
    """`text` is what goes to the model: the given text itself when nothing was known by its name."""

    text: str
    error: ExtensionErrorFacts | None = None


class Expander:
    """Knows the skills and templates of one load, strongest first: of two with one name the first has it."""

    def __init__(self, skills: Sequence[Skill] = (), templates: Sequence[Template] = ()) -> None:
        self._advertised = advertised(skills)
        self._skills = _selectors(skills, self._advertised)
        self._templates: dict[str, Template] = {}
        for template in templates:
            self._templates.setdefault(template.name, template)

    def expand(self, text: str) -> Expanded:
        """Skill first, then template; what a template gives is not looked at again."""
        if not text.startswith("/"):
            return Expanded(text)
        error = None
        if text.startswith(SKILL_PREFIX):
            selector, arguments = _split_skill(text)
            if (skill := self._skills.get(selector)) is not None:
                return Expanded(skill_block(skill, arguments))
            error = self._selector_error(selector) if "@" in selector else None
        name, _, arguments = text[1:].partition(" ")
        template = self._templates.get(name)
        return Expanded(text if template is None else substitute(template.body, split_arguments(arguments)), error)

    def commands(self) -> list[SlashCommand]:
        """Templates, then skills, each in the order of precedence."""
        listed = [
            _command(template.name, "prompt", template.description, template.path, template.origin)
            for template in self._templates.values()
        ]
        listed += [
            _command(f"skill:{selector}", "skill", skill.description, skill.path, skill.origin)
            for selector, skill in self._advertised
        ]
        return listed

    def _selector_error(self, selector: str) -> ExtensionErrorFacts:
        name, _, _ = selector.rpartition("@")
        choices = [known for known, skill in self._advertised if skill.name == name]
        known = f"use one of: {', '.join(choices)}" if choices else "no skill has that name"
        selector = selector if len(selector) <= 80 else selector[:79] + "…"
        error = f'Skill selector "{selector}" matches no single skill; {known}'
        return ExtensionErrorFacts(f"skill:{selector}", "skill_expansion", error)


# ---- skills ------------------------------------------------------------------------------------------------------


def advertised(skills: Sequence[Skill]) -> list[tuple[str, Skill]]:
    """The selectors that lists show, in order: the bare name of the first skill that has it, and `name@qualifier` of
    each one whose name is shared."""
    sharing: dict[str, list[Skill]] = {}
    for skill in skills:
        sharing.setdefault(skill.name, []).append(skill)
    listed = []
    for skill in skills:
        same = sharing[skill.name]
        if skill is same[0]:
            listed.append((skill.name, skill))
        if len(same) > 1:
            listed.append((f"{skill.name}@{_qualifier(skill, same)}", skill))
    return listed


def _qualifier(skill: Skill, same: list[Skill]) -> str:
    """The location; where that holds several of the name, with their numbers in the order of precedence."""
    location = skill.origin.location
    family = [other.path for other in same if other.origin.location == location]
    return location if len(family) == 1 else f"{location}-{family.index(skill.path) + 1}"


def _selectors(skills: Sequence[Skill], listed: list[tuple[str, Skill]]) -> dict[str, Skill]:
    """What `/skill:` takes: all that is listed, bare names before qualified ones; and `name@location` also of a name
    that nobody shares, so that a script which qualifies goes on working when the other skill is gone."""
    found: dict[str, Skill] = {}
    for skill in skills:
        found.setdefault(skill.name, skill)
    shared = {skill.name for selector, skill in listed if selector != skill.name}
    for selector, skill in listed:
        found.setdefault(selector, skill)
        if skill.name not in shared:
            found.setdefault(f"{skill.name}@{skill.origin.location}", skill)
    return found


def _split_skill(text: str) -> tuple[str, str]:
    """The selector, which ends at the first white space of any kind, and the rest."""
    words = text.removeprefix(SKILL_PREFIX).split(maxsplit=1)
    if not words or text[len(SKILL_PREFIX)].isspace():
        return "", ""
    return words[0], words[1].strip() if len(words) > 1 else ""


def skill_block(skill: Skill, arguments: str) -> str:
    """What the model is sent for `/skill:name arguments`. It begins with `<`, so that it is never a template."""
    attributes = f'name="{_escaped(skill.name)}" location="{_escaped(skill.path)}" candidate="{candidate_id(skill)}"'
    place = f"Relative paths below start from {skill.base_dir}"
    block = f"<skill {attributes}>\n{place}\n\n{skill.body}\n</skill>"
    return f"{block}\n\n{arguments}" if arguments else block


def candidate_id(skill: Skill) -> str:
    """`skill_` and 20 hexadecimal digits that stay the same for the same real file."""
    from hashlib import sha256

    return f"skill_{sha256(skill.real_path.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


def skills_section(skills: Sequence[Skill]) -> str:
    """The part of the system prompt that tells of skills; empty if there is none that the model may choose itself."""
    named: dict[str, tuple[str, Skill]] = {}
    for selector, skill in advertised(skills):
        named.setdefault(skill.path, (selector, skill))
    entries = [
        f"<skill>\n<name>{_escaped(selector)}</name>\n<description>{_escaped(skill.description)}</description>\n"
        f"<location>{_escaped(skill.path)}</location>\n</skill>"
        for selector, skill in named.values()
        if not skill.disable_model_invocation
    ]
    if not entries:
        return ""
    return "\n".join([SKILLS_INTRODUCTION, "", "<available_skills>", *entries, "</available_skills>"])


# ---- templates ---------------------------------------------------------------------------------------------------


def split_arguments(text: str) -> list[str]:
    """Words between spaces and tabs. Quotes of either kind hold a word together and are dropped; there is no escape; a
    newline is part of its word; an empty word vanishes."""
    words: list[list[str]] = [[]]
    for single, double, plain, gap in re.findall(_WORD_PIECE, text):
        if gap:
            words.append([])
        else:
            words[-1].append(single or double or plain)
    return [word for word in map("".join, words) if word]


def substitute(body: str, arguments: Sequence[str]) -> str:
    """`body` with its placeholders replaced in one pass."""

    def value(match: re.Match[str]) -> str:
        if match["first"] is not None:
            start = max(_number(match["first"]), 1) - 1
            stop = None if match["count"] is None else start + _number(match["count"])
            return " ".join(arguments[start:stop])
        return _argument(match["plain"] or match["subject"], arguments) or match["default"] or ""

    return re.sub(_PLACEHOLDER, value, body)


def _argument(subject: str, arguments: Sequence[str]) -> str:
    if subject in ("@", "ARGUMENTS"):
        return " ".join(arguments)
    position = _number(subject)
    return arguments[position - 1] if 1 <= position <= len(arguments) else ""


def _number(digits: str) -> int:
    """Python refuses to read thousands of digits, and no list is that long."""
    digits = digits.lstrip("0")
    return _BEYOND if len(digits) > 9 else int(digits or "0")


# ---- both --------------------------------------------------------------------------------------------------------


def _command(
    name: str, source: Literal["prompt", "skill"], description: str, path: str, origin: Origin
) -> SlashCommand:
    from protocol.responses import SlashCommand, SourceInfo

    return SlashCommand(
        name=name,
        source=source,
        description=description or UNSET,
        location=origin.location,
        path=path,
        source_info=SourceInfo(
            path=path, source=origin.source, scope=origin.scope, origin=origin.origin, base_dir=origin.base_dir
        ),
    )


def _escaped(text: str) -> str:
    for character, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "apos")):
        text = text.replace(character, f"&{name};")
    return text
