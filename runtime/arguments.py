"""argv, sorted into flags, messages and `@` files. Pure.

Owns which word belongs to which flag, so that a value may begin with a dash and a message may stand anywhere. Source:
sessions 8.1 and its cases 101 and 102.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.flags import Arity

PRINT = ("-p", "--print")


class Arguments(Struct, frozen=True):
    """`flags` has each value joined to its flag with `=`; `unknown` is the first flag that nobody knows."""

    flags: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    unknown: str | None = None


def sort_arguments(argv: Sequence[str], known: Mapping[str, Arity]) -> Arguments:
    """`known` maps every spelling of every flag to the values that it takes."""
    flags: list[str] = []
    messages: list[str] = []
    files: list[str] = []
    rest = list(argv)
    before = ""
    while rest:
        word = rest.pop(0)
        if word == "--":
            messages += rest
            break
        if not _is_flag(word) or (word.startswith("---") and before in PRINT):
            (files if word[:1] == "@" and len(word) > 1 else messages).append(word)
        else:
            name = word.partition("=")[0]
            if name not in known:
                return Arguments(unknown=name)
            takes = "none" if name != word else known[name]
            flags.append(f"{name}={rest.pop(0)}" if _has_value(takes, rest, known) else word)
        before = word
    return Arguments(tuple(flags), tuple(messages), tuple(file[1:] for file in files), None)


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-"


def _has_value(takes: Arity, rest: list[str], known: Mapping[str, Arity]) -> bool:
    """A word that is itself a flag is no value: the value was forgotten."""
    if takes == "none" or not rest:
        return False
    if takes == "optional":
        return not _is_flag(rest[0])
    return rest[0] != "--" and rest[0].partition("=")[0] not in known
