"""Values that configuration files hold, and the indirections that they may use instead of a secret.

Owns the little language of sessions 4.3 (`$NAME`, `${NAME}`, `$$`, `$!`, `!command`), the reading of JSON documents
and how a value is shown in an error. Promises to be pure: the environment and the way to run a command come in as
parameters, and no error text holds what a variable or a command yielded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SHOWN_CHARACTERS = 80

_REFERENCE = r"(?a)\$(?:([$!])|\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))"  # compiled on first use, not at start


class UnresolvedValue(Exception):
    """A config value that yields nothing; the text names the command or the variable."""


def is_command(value: str) -> bool:
    return value.startswith("!")


def variable_names(value: str) -> tuple[str, ...]:
    """The environment variables that `value` refers to, in order, each once; none for a command."""
    if is_command(value):
        return ()
    if "$" not in value:
        return ()
    names = (match[2] or match[3] for match in re.finditer(_REFERENCE, value))
    return tuple(dict.fromkeys(name for name in names if name))


def missing_variables(value: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Those that are unset or empty: one is enough to leave the whole value unresolved."""
    return tuple(name for name in variable_names(value) if not env.get(name))


def resolve_value(value: str, what: str, env: Mapping[str, str], run_command: Callable[[str], str | None]) -> str:
    """The text that `value` stands for. `run_command` gets the shell command and answers its standard output, or None
    when it failed.

    Raises UnresolvedValue, whose text begins `Failed to resolve <what> from`. Source: sessions 4.3.
    """
    if is_command(value):
        output = (run_command(value[1:]) or "").strip() if value[1:].strip() else ""
        if not output:
            raise UnresolvedValue(f"Failed to resolve {what} from shell command: {shorten(value[1:].strip())}")
        return output
    if missing := missing_variables(value, env):
        kind = "environment variable" if len(missing) == 1 else "environment variables"
        raise UnresolvedValue(f"Failed to resolve {what} from {kind}: {', '.join(missing)}")
    if "$" not in value:
        return value
    return re.sub(_REFERENCE, lambda match: match[1] or env[match[2] or match[3]], value)


def decode_document(data: bytes) -> Any:
    """The value of a JSON file, a byte order mark allowed. Raises ValueError with the line and column of the fault."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(data)


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: JSON files may hold lone surrogates, which nothing that we write to takes."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def is_writable(value: object) -> bool:
    """Whether it can be written as JSON in UTF-8."""
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def shorten(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def shown(value: object) -> str:
    """`value` as JSON on one line, at most 80 characters."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):  # a lone surrogate, nesting beyond the codec's depth
        text = ascii(value) if isinstance(value, str) else f"a nested {type(value).__name__}"
    return shorten(text)


def kind_of(value: object) -> str:
    """The JSON name of a value's type, for fields whose value may be a secret."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")


def _decode_slowly(data: bytes) -> Any:
    """The standard library reads lone surrogates, and says where the fault is."""
    import json

    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
