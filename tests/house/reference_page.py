"""docs/reference.md: every command with its fields, data and errors, and every event, from the types of the wire.

`make reference` (or `python -m tests.house.reference_page`) writes it anew; a test compares it with the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from msgspec import Raw, Struct, UnsetType, to_builtins
from msgspec.json import decode, encode
from msgspec.structs import fields

from protocol.commands import (
    COMMANDS,
    HOLDS_LANE,
    INTERRUPTS,
    LONG_WORK,
    NO_ID,
    REPLIES,
    NavigateOptions,
    TranscriptPage,
)
from protocol.messages import ImageContent
from protocol.validation import allowed
from tests.house import reference_examples as examples
from tests.house import reference_texts as texts
from tests.house.contract_facts import ANY, BEYOND, CONTRACT, LATER, when

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"
WIDTH = 110
FACTS = {**CONTRACT, **BEYOND}


def page() -> str:
    return "\n".join([texts.OPENING, *_contents(), *_commands(), *_events(), *_types()]) + "\n"


def _contents() -> Iterator[str]:
    for group, names in texts.COMMANDS.items():
        yield _links(f"- {group}: ", names)
    yield "- [Errors of any command](#errors-of-any-command), [images](#images)"
    yield _links("- Events: ", texts.EVENTS)
    yield "- [What a reply grows by](#what-a-reply-grows-by), [messages](#messages)\n"


# ---- commands ----------------------------------------------------------------------------------------------------


def _commands() -> Iterator[str]:
    for group, names in texts.COMMANDS.items():
        yield f"## {group}\n"
        for name, text in names.items():
            yield from _command(name, text)
    yield "## Errors of any command\n"
    yield from (f"- `{_line(error)}`" for error in ANY)
    yield "\nWhen each of them comes is told in [protocol.md](protocol.md#one-response-for-each-command).\n"
    yield f"## Images\n\n{texts.IMAGES}"
    yield _example(examples.IMAGE)


def _command(name: str, text: str) -> Iterator[str]:
    yield f"### {name}\n\n{_wrapped(text + _lane(name))}\n"
    rows = list(_fields(COMMANDS[name]))
    if rows:
        yield "| Field | | What |\n|---|---|---|"
        yield "\n".join(rows) + "\n"
    if name in LATER and name not in examples.DATA:
        yield f"Not yet ({LATER[name]}): it is refused.\n"
    elif name in LATER:
        yield f"Not yet ({LATER[name]}): it is refused. Later its `data` is\n\n{_example(examples.DATA[name])}"
    elif name in examples.DATA:
        yield f"`data`, for example:\n\n{_example(examples.DATA[name])}"
        yield from _about(type(examples.DATA[name]))
    if (facts := FACTS.get(name)) and facts.errors:
        yield "Errors of its own:\n\n" + "\n".join(f"- `{_line(error)}`" for error in facts.errors) + "\n"
    if facts and facts.events:
        yield _links("Events: ", facts.events) + "\n"


def _lane(name: str) -> str:
    """When it takes effect, where that is not in its turn."""
    if name in INTERRUPTS:
        return " It passes what waits."
    if name in LONG_WORK:
        return " It holds nothing back."
    return " What is sent after it waits for its response." if name in HOLDS_LANE and name not in LATER else ""


def _fields(kind: type[Struct], prefix: str = "") -> Iterator[str]:
    for each in fields(kind):
        if each.name == "id":
            if tag(kind) in REPLIES:
                yield "| `id` | required | the dialog's, a string |"
            continue
        need = "required" if each.required else f"default {_default(each.default)}"
        yield f"| `{prefix}{each.encode_name}` | {need} | {_what(each)} |"
        for part in (NavigateOptions, TranscriptPage):
            if part in (each.type, *get_args(each.type)):
                yield from _fields(part, f"{each.encode_name}.")


def _default(value: Any) -> str:
    if value in (None, (), NO_ID) or isinstance(value, Struct):
        return "none"
    return f"`{json.dumps(value)}`"


def _what(each: Any) -> str:
    if each.type is Raw:
        return "an `id`"
    if get_args(each.type)[:1] == (ImageContent,):
        return "a list of [images](#images)"
    return "any value" if each.type is Any else allowed(each.type)


# ---- events and types --------------------------------------------------------------------------------------------


def _events() -> Iterator[str]:
    kinds = {tag(type(event)): event for event in examples.EVENTS}
    yield "\n## Events\n"
    for name, text in texts.EVENTS.items():
        yield f"### {name}\n"
        yield _wrapped(text or f"Not sent ({when(name)}).") + "\n"
        yield _example(kinds[name])
        yield from _about(type(kinds[name]))


def _about(kind: type) -> Iterator[str]:
    """What the example cannot show: which words a field may have, and which fields may be absent."""
    if not issubclass(kind, Struct):
        return
    found = [f"`{each.encode_name}`: {said}" for each in fields(kind) if (said := _beyond(each))]
    if found:
        yield _wrapped("; ".join(found)) + ".\n"


def _beyond(each: Any) -> str:
    options = get_args(each.type) if get_origin(each.type) is not Literal else (each.type,)
    words = [word for option in options if get_origin(option) is Literal for word in get_args(option)]
    parts = [" or ".join(f"`{word}`" for word in words)] if words else []
    parts += ["may be absent"] if UnsetType in options else []
    parts += ["may be `null`"] if NoneType in options else []
    return ", ".join(parts)


def _types() -> Iterator[str]:
    yield f"## What a reply grows by\n\n{texts.GROWTH}"
    yield _block(_compact(change) for change in examples.GROWTH)
    yield f"## Messages\n\n{texts.MESSAGES}"
    yield from (_example(message) for message in examples.MESSAGES.values())


def tag(kind: type[Struct]) -> str:
    return str(kind.__struct_config__.tag)


# ---- JSON --------------------------------------------------------------------------------------------------------


def _example(value: Any) -> str:
    return _block(folded(decode(encode(value))))


def _block(lines: Iterable[str]) -> str:
    return "```json\n" + "\n".join(lines) + "\n```\n"


def _compact(value: Any) -> str:
    return json.dumps(to_builtins(value), ensure_ascii=False)


def folded(value: Any, before: str = "", indent: str = "", after: str = "") -> Iterator[str]:
    """JSON on lines of at most `WIDTH` columns where that is possible: what fits on one line is not broken up."""
    line = f"{indent}{before}{json.dumps(value, ensure_ascii=False)}{after}"
    if len(line) <= WIDTH or not isinstance(value, dict | list) or not value:
        yield line
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    items = [(f"{json.dumps(key)}: ", item) for key, item in value.items()] if isinstance(value, dict) else []
    items = items or [("", item) for item in value]
    yield f"{indent}{before}{opening}"
    for place, (key, item) in enumerate(items, 1):
        yield from folded(item, key, indent + "  ", "," if place < len(items) else "")
    yield f"{indent}{closing}{after}"


def _links(before: str, names: Iterable[str]) -> str:
    return _wrapped(before + ", ".join(f"[{name}](#{name})" for name in names))


def _wrapped(text: str) -> str:
    indent = "  " if text.startswith("- ") else ""
    return fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _line(text: str) -> str:
    return text.replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
