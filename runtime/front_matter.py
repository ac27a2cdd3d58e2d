"""Markdown files that may begin with front matter: a few YAML fields between two lines of `---`.

Owns how such a file is read and split. Every scalar is taken as the text that stands there, so that a name like `on`
or `007` stays what it is. Promises that a file which cannot be used costs one warning, and that YAML is loaded only
for front matter that is more than plain `key: value` lines. Source: sessions 7.3 and 7.4.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Any

from msgspec import Struct

from runtime.config_values import shorten

MAX_FRONT_MATTER = 65536  # the YAML reader takes about a second for 100 KB
_NOTHING = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE", "yes", "on")
_FALSE = ("false", "False", "FALSE", "no", "off", *_NOTHING)

_FRONT_MATTER = r"---[ \t]*\n(?P<yaml>(?:.*\n)*?)---[ \t]*(?:\n|\Z)"
# Importing YAML takes 15 to 25 ms, a quarter of a start. These lines mean the same to it: a plain value that begins
# with a letter or digit and holds neither ": " nor " #", or a quoted one without escapes.
_PLAIN_LINE = r"""([A-Za-z][\w-]{0,63}): +(?:([A-Za-z0-9](?:[^:#]|:(?=[^ ])|(?<! )#)*)|"([^"\\]*)"|'([^']*)') *"""


class FrontMatterError(ValueError):
    """Front matter that cannot be read; the text says why, without the file's name."""


class Document(Struct, frozen=True):
    """`fields` is None when there is no front matter, and then `body` is the whole text. Else `body` is trimmed. Line
    ends are `\\n` either way."""

    fields: dict[str, Any] | None
    body: str

    def text(self, name: str) -> str | None:
        """The field's text, trimmed; None when it is absent, blank, null, or a list or mapping."""
        value = (self.fields or {}).get(name)
        return value.strip() if isinstance(value, str) and value.strip() not in _NOTHING else None


def split_front_matter(text: str) -> Document:
    """Raises FrontMatterError."""
    text = text.replace("\r\n", "\n")
    match = re.match(_FRONT_MATTER, text)
    if match is None:
        return Document(None, text)
    return Document(_fields(match["yaml"]), text[match.end() :].strip())


def read_document(path: str, warnings: list[str]) -> Document | None:
    """The document in a regular file; None, and one warning, when it cannot be read. A byte order mark is dropped and
    bytes that are no UTF-8 become U+FFFD; in the file's name they are refused, since no client could be told of it."""
    try:
        path.encode()
        if not stat.S_ISREG(os.stat(path).st_mode):
            warnings.append(f"{path} is not a regular file; it is skipped")
            return None
        with open(path, "rb") as file:
            return split_front_matter(file.read().decode("utf-8-sig", "replace"))
    except UnicodeEncodeError:
        warnings.append(f"{path!a} is skipped: its name is not UTF-8")
    except OSError as error:
        warnings.append(f"{path} cannot be read: {error.strerror or error}")
    except FrontMatterError as error:
        warnings.append(f"{path} is skipped: its front matter {error}")
    return None


def read_flag(value: object) -> bool | None:
    """What a field that may be true or false says; None when it says neither."""
    word = value.strip() if isinstance(value, str) else value
    return True if word in _TRUE else False if word is None or word in _FALSE else None


def _fields(yaml: str) -> dict[str, Any]:
    if len(yaml) > MAX_FRONT_MATTER:
        raise FrontMatterError(f"has more than {MAX_FRONT_MATTER} characters")
    lines = yaml.split("\n")[:-1]
    plain = [re.fullmatch(_PLAIN_LINE, line, re.ASCII) if line.isprintable() else None for line in lines]
    found = {match[1]: match[2].rstrip() if match[2] else match[3] or match[4] or "" for match in plain if match}
    return found if None not in plain else _read_yaml(yaml)


def _read_yaml(text: str) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.load(text, yaml.BaseLoader)  # makes nothing but text, lists and mappings
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 2}: " if error.problem_mark else ""
        raise FrontMatterError(f"is not valid YAML: {line}{shorten(error.problem or 'unreadable')}") from None
    except yaml.YAMLError as error:
        raise FrontMatterError(f"is not valid YAML: {shorten(' '.join(str(error).split()))}") from None
    except RecursionError:
        raise FrontMatterError("is nested too deeply") from None
    if document in (None, ""):
        return {}
    if not isinstance(document, dict):
        raise FrontMatterError("must hold fields with names")
    return document
