"""The walk over a value beside its schema, with a stack of its own: the answer to `get_tree` nests as deep as the
conversation is long.

A compiled schema is one table for each place in a value: the Python types that may stand there, and what else is to be
looked at, `None` for nothing. A fault is told as `pointer: what is wrong`, with what is there and what is allowed.
"""

from __future__ import annotations

from typing import Any, Protocol

from protocol.validation import shorten, shown

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_MOST_FAULTS = 20
_SHOWN_STEPS = 6

Path = tuple[Any, str | int] | None  # the way to a value, last step first: a pointer is made only of a bad one's


class Look(Protocol):
    """What is to be seen at a value whose type is right, or what to say when it is not."""

    __slots__ = ()

    def at(self, value: Any, path: Path, stack: list[tuple[Look, Any, Path]]) -> str | None:
        """What is wrong with `value` itself. Its parts go on the stack."""


Kinds = dict[type, Look | None]
Stack = list[tuple[Look, Any, Path]]


def faults_of(kinds: Kinds, value: Any) -> list[str]:
    faults: list[str] = []
    stack: Stack = []
    push(kinds, value, None, stack)
    while stack:
        look, item, path = stack.pop()
        fault = look.at(item, path, stack)
        if fault is not None:
            faults.append(f"{_pointer(path)}: {fault}")
            if len(faults) == _MOST_FAULTS:
                break
    return faults


def push(kinds: Kinds, value: Any, path: Path, stack: Stack) -> None:
    look = kinds.get(type(value), _MISFIT)
    if look is not None:
        stack.append((Misfit(_allowed(kinds)) if look is _MISFIT else look, value, path))


def _pointer(path: Path) -> str:
    """A JSON pointer; of one that is very long, both ends."""
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(str(step).replace("~", "~0").replace("/", "~1"))
    steps.reverse()
    if len(steps) > 2 * _SHOWN_STEPS:
        steps[_SHOWN_STEPS:-_SHOWN_STEPS] = ["..."]
    return shorten("".join(f"/{step}" for step in steps)) if steps else "the record"


class Misfit(Look):
    """Nothing of this type may be there."""

    __slots__ = ("allowed",)

    def __init__(self, allowed: str) -> None:
        self.allowed = allowed

    def at(self, value: Any, path: Path, stack: Stack) -> str:
        return f"must be {self.allowed}, got {shown(value)}"


_MISFIT = Misfit("")


class Unknown(Misfit):
    """A word that tells kinds apart, and names none."""

    __slots__ = ()

    def at(self, value: Any, path: Path, stack: Stack) -> str:
        return f"{shown(value)} is unknown; known are {self.allowed}"


class Words(Look):
    """Only these values, or all but these."""

    __slots__ = ("excluded", "words")

    def __init__(self, words: frozenset[Any], excluded: bool = False) -> None:
        self.words, self.excluded = words, excluded

    @property
    def allowed(self) -> str:
        return "another string than the known ones" if self.excluded else _listed(self.words)

    def at(self, value: Any, path: Path, stack: Stack) -> str | None:
        return None if (value in self.words) is not self.excluded else f"must be {self.allowed}, got {shown(value)}"


class Whole(Look):
    """A float that is an integer: JSON knows no difference."""

    __slots__ = ()

    def at(self, value: Any, path: Path, stack: Stack) -> str | None:
        return None if value.is_integer() else f"must be an integer, got {shown(value)}"


class Items(Look):
    """A list of one kind."""

    __slots__ = ("kinds",)

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds

    def at(self, value: Any, path: Path, stack: Stack) -> None:
        for place, item in enumerate(value):
            push(self.kinds, item, (path, place), stack)


class Fields(Look):
    """An object. Fields that are in none of the tables may be anything; `rest` is what they must be."""

    __slots__ = ("properties", "required", "rest")

    def __init__(self, properties: dict[str, Kinds], required: tuple[str, ...], rest: Kinds | None) -> None:
        self.properties, self.required, self.rest = properties, required, rest

    def at(self, value: Any, path: Path, stack: Stack) -> str | None:
        known, rest = self.properties, self.rest
        for name, item in value.items():
            kinds = known.get(name, rest)
            if kinds is not None and kinds.get(type(item), _MISFIT) is not None:
                push(kinds, item, (path, name), stack)
        for name in self.required:
            if name not in value:
                return f'"{name}" is required ({_allowed(known[name])})' if name in known else f'"{name}" is required'
        return None


class Tagged(Look):
    """One of several objects, told apart by the value of one field; `other` is the one for any other value."""

    __slots__ = ("field", "looks", "other")

    def __init__(self, field: str, looks: dict[tuple[type, Any], Look], other: Look | None) -> None:
        self.field, self.looks, self.other = field, looks, other

    def at(self, value: Any, path: Path, stack: Stack) -> str | None:
        tag = value.get(self.field)
        found = self.looks.get((type(tag), tag)) if isinstance(tag, str | bool | int) else None
        look = found or self.other
        if look is not None:
            return look.at(value, path, stack)
        allowed = _listed({tag for _, tag in self.looks})
        if self.field not in value:
            return f'"{self.field}" is required ({allowed})'
        stack.append(((Unknown if isinstance(tag, str) else Misfit)(allowed), tag, (path, self.field)))
        return None


# ---- what may be there, in words ---------------------------------------------------------------------------------


def _allowed(kinds: Kinds) -> str:
    parts = []
    for word, types in TYPES.items():
        if word == "number" and any(isinstance(kinds.get(kind), Whole) for kind in types):
            continue
        if word == "integer" and not any(isinstance(kinds.get(kind), Whole) for kind in types):
            continue
        if any(kind in kinds for kind in types):
            look = kinds[next(kind for kind in types if kind in kinds)]
            parts.append(look.allowed if isinstance(look, Words) else _article(word))
    return " or ".join(parts)


def _article(word: str) -> str:
    return word if word == "null" else f"an {word}" if word[0] in "aio" else f"a {word}"


def _listed(words: Any) -> str:
    return ", ".join(sorted(shown(word) for word in words))
