"""Changes fields of a Markdown file's front matter and leaves all else as it stands: other fields, comments, the body.

Pure. Promises that what comes out reads as what was meant: a change that does not is made by writing all fields anew.
Source: `tasks.md` 3.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runtime.front_matter import FrontMatterError, split_front_matter

if TYPE_CHECKING:
    from yaml import Node

_PARTS = r"(?P<head>\A\ufeff?---[ \t]*\n)(?P<yaml>(?:.*\n)*?)(?P<foot>---[ \t]*(?:\n|\Z))"


def edited(text: str, changes: Mapping[str, Any], body: str | None = None) -> str:
    """`changes` maps names of fields to text, lists of text, `true` or `false`; None takes a field away. `body`, if
    there is one, takes the place of the whole body. Raises FrontMatterError, also for a text without front matter that
    is not empty."""
    ends = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    parts = re.match(_PARTS, text)
    before = split_front_matter(text.removeprefix("\ufeff"))
    head, yaml, foot = parts.group("head", "yaml", "foot") if parts else ("---\n", "", "---\n")
    rest = f"\n{body.strip()}\n" if body is not None else text[parts.end() :] if parts else ""
    if body is not None and not foot.endswith("\n"):
        foot += "\n"
    wanted = _wanted(before.fields or {}, changes)
    for lines in (_patched(yaml, changes), _dumped(wanted)):
        made = head + lines + foot + rest
        if _reads_as(made, wanted, before.body if body is None else body.strip()):
            return made.replace("\n", ends)
    raise FrontMatterError("cannot be written so that it reads as it is meant")


def _wanted(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    both = {**fields, **changes}
    return {name: value for name, value in both.items() if value is not None}


def _reads_as(text: str, fields: Mapping[str, Any], body: str) -> bool:
    """As the reader sees it, who takes every scalar as text."""
    try:
        found = split_front_matter(text.removeprefix("\ufeff"))
    except FrontMatterError:
        return False
    return found.body == body and found.fields == {
        name: str(value).lower() if isinstance(value, bool) else value for name, value in fields.items()
    }


def _dumped(fields: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(dict(fields), sort_keys=False, allow_unicode=True, width=2**31) if fields else ""


def _patched(text: str, changes: Mapping[str, Any]) -> str:
    """Each field that changes is written where it stood, a new one at the end."""
    left = dict(changes)
    parts: list[str] = []
    done = 0
    for name, start, end in _places(text):
        if name in changes:
            value = left.pop(name, None)  # of a field that stands there twice the first place is kept
            new = "" if value is None else _dumped({name: value})
            parts += [text[done:start], new if end == len(text) or text[end - 1] == "\n" else new.removesuffix("\n")]
            done = end if new or text[end - 1] == "\n" else end + len(text[end:].partition("\n")[0]) + 1
    parts.append(text[done:])
    return "".join(parts) + _dumped(_wanted({}, left))


def _places(text: str) -> Iterator[tuple[str, int, int]]:
    """Every field with where its name begins and its value ends; what follows of a line is a comment."""
    import yaml

    top = yaml.compose(text, yaml.BaseLoader)
    if not isinstance(top, yaml.MappingNode) or top.flow_style:
        return
    for key, value in top.value:
        if isinstance(key, yaml.ScalarNode):
            yield key.value, key.start_mark.index, _end(text, key.start_mark.index, value)


def _end(text: str, start: int, value: Node) -> int:
    """The mark of a block's end stands before what comes next: comments and blank lines there are not the value's."""
    end: int = value.end_mark.index
    lines = text[start:end].splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].startswith("#")):
        end -= len(lines.pop())
    return end
