"""Paths and globs as the model writes them, made absolute.

Accepts `~`, `file://` and a leading `@`; refuses by name what no file system takes. Reads no environment of its own
except through `os.path.expanduser`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from actors.tool.schema import shorten

_GLOB = re.compile(r"[*?\[{]")


class PathRefused(ValueError):
    """The path cannot be used; `str()` of it says why."""


class Scope(Struct, frozen=True):
    """Where to look: a file, or all files below a directory, or those of them whose path from `root` fits `glob`."""

    root: str
    glob: re.Pattern[str] | None = None


def resolve(path: str, cwd: str) -> str:
    """`path` as an absolute, normalised path; symlinks are left alone. Raises `PathRefused`."""
    text = _plain(path)
    if not text:
        raise PathRefused(f"path must not be empty, got {shorten(path)}")
    if "\0" in text:
        raise PathRefused(f"path must not contain a NUL character, got {shorten(path)}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise PathRefused(f"path must not contain a lone surrogate, got {shorten(path)}")
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(text)))


def mutated(arguments: dict[str, Any], cwd: str) -> str | None:
    """Real path of the file that `arguments["path"]` names; `None` if it names none. Never raises."""
    try:
        return os.path.realpath(resolve(arguments["path"], cwd))
    except (KeyError, TypeError, AttributeError, ValueError, OSError):
        return None


def relative(path: str, cwd: str) -> str:
    """`path` as seen from `cwd`, with forward slashes; absolute if it lies outside."""
    try:
        inside = os.path.relpath(path, cwd)
    except ValueError:
        return path
    outside = inside == os.pardir or inside.startswith(os.pardir + os.sep)
    return path if outside else inside.replace(os.sep, "/")


def inside(path: str, root: str) -> str:
    """`path` as seen from `root`, which it lies below, with forward slashes. Ten times faster than `relpath`."""
    return path[len(root) :].replace(os.sep, "/").lstrip("/")


def printable(path: str) -> str:
    """`path` as valid Unicode: bytes of a file name that are no UTF-8 become U+FFFD."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def scopes_of(wanted: list[str], resolve: Callable[[str], str]) -> tuple[list[Scope], list[str]]:
    """A scope for each of `wanted`, and those that are missing, verbatim. A name that exists is no glob."""
    scopes: list[Scope] = []
    missing: list[str] = []
    for text in wanted:
        scope = _scope(text, resolve)
        if scope is None:
            missing.append(text)
        else:
            scopes.append(scope)
    return scopes, missing


def _scope(text: str, resolve: Callable[[str], str]) -> Scope | None:
    path = resolve(text)
    if os.path.lexists(path):
        return Scope(path)
    magic = _GLOB.search(path)
    if magic is None:
        return None
    cut = path.rfind("/", 0, magic.start())
    root, pattern = path[:cut] or "/", path[cut + 1 :]
    if "/" not in text.removeprefix("./"):
        pattern = f"**/{pattern}"
    return Scope(root, glob_regex(pattern)) if os.path.isdir(root) else None


def glob_regex(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stop at a slash, `**` crosses them, `[a-z]`, `[!a]` and `{a,b}` as in a shell. Never raises."""
    try:
        return re.compile(_translated(pattern), re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern))


def _translated(pattern: str) -> str:
    out: list[str] = []
    depth = at = 0
    tokens = re.compile(r"\*\*/|\*+|\?|\[[!^]?\]?[^]]*\]|\\.|.", re.DOTALL)
    closing = pattern.count("}")
    while at < len(pattern):
        token = tokens.match(pattern, at)
        assert token is not None
        text = token.group()
        at = token.end()
        if text == "{" and closing:
            depth += 1
            out.append("(?:")
        elif text == "}" and depth:
            depth -= 1
            out.append(")")
        elif text == "," and depth:
            out.append("|")
        else:
            out.append(_translated_token(text))
    return "".join(out) + ")" * depth + r"\Z"


def _translated_token(text: str) -> str:
    if text == "**/":
        return "(?:[^/]+/)*"
    if text.startswith("*"):
        return ".*" if len(text) > 1 else "[^/]*"
    if text == "?":
        return "[^/]"
    if len(text) > 1 and text[0] == "[":
        inside = text[1:-1].replace("\\", r"\\").replace("[", r"\[")
        inside = f"^{inside[1:]}" if inside[:1] in ("!", "^") else inside
        return f"(?!/)[{inside}]"
    return re.escape(text[-1])


def _plain(path: str) -> str:
    text = path.removeprefix("@")
    if text.startswith("file://"):
        from urllib.parse import unquote

        rest = text.removeprefix("file://")
        return unquote(rest.removeprefix("localhost"))
    return text
