"""TypeScript: the definitions of the schema as one declaration file.

Objects become interfaces, unions stay unions that a constant tells apart, titles and descriptions become comments.
What TypeScript cannot say is left out: `OtherEntry` is no part of `Entry`, since a `type` that is any other string
would keep a compiler from telling the known ones apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from protocol.schema.definitions import Schema
from protocol.schema.documents import WHOLE, document

_HEAD = """// What atomic and its clients say to each other, and what stands in session files.
// Made from the types of the wire by `make schema`; `atomic schema typescript` prints it. docs/schema.md tells more.
// Objects may have more fields than are named here: ignore those that you do not know, and events as well.
"""
_TYPES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
_LEFT_OUT = "#/$defs/OtherEntry"
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
_WIDTH = 120


def declarations() -> str:
    """The file."""
    definitions: dict[str, Schema] = document(WHOLE)["$defs"]
    parts = [_HEAD, *(_declaration(name, schema) for name, schema in definitions.items())]
    of_command = "A command by its `type`, and what answers it: `Responses[T]` is the response to `Commands[T]`."
    parts.append(_table("Commands", definitions, "type", "Command", of_command))
    parts.append(_table("Responses", definitions, "command", "Response", "A response by its `command`."))
    parts.append(_table("Events", definitions, "type", "Event", "An event by its `type`."))
    return "\n".join(parts)


def _declaration(name: str, schema: Schema) -> str:
    title = schema.get("title", name)
    said = _comment("" if title == name else title, schema.get("description", ""))
    if "properties" in schema:
        return "\n".join([*said, f"export interface {name} {{", *_members(schema, "  "), "}", ""])
    return "\n".join([*said, *_alias(name, schema), ""])


def _comment(title: str, text: str) -> Iterator[str]:
    """Title and description as JSDoc."""
    words = [title[:1].upper() + title[1:] + "." if title else "", text]
    lines = [line for part in words if part for line in wrap(part.replace("*/", "* /"), _WIDTH - 3)]
    if len(lines) == 1 and len(lines[0]) < _WIDTH - 7:
        yield f"/** {lines[0]} */"
    elif lines:
        yield from ("/**", *(f" * {line}" for line in lines), " */")


def _members(schema: Schema, indent: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, part in schema["properties"].items():
        key = name if _IDENTIFIER.fullmatch(name) else json.dumps(name)
        yield f"{indent}{key}{'' if name in required else '?'}: {_type(part)};"


def _alias(name: str, schema: Schema) -> list[str]:
    whole = f"export type {name} = {_type(schema)};"
    if len(whole) <= _WIDTH:
        return [whole]
    options = _options(schema)
    return [f"export type {name} =", *(f"  | {option}" for option in options[:-1]), f"  | {options[-1]};"]


def _type(schema: Schema) -> str:
    return " | ".join(_options(schema))


def _options(schema: Schema) -> list[str]:
    if "$ref" in schema:
        return [schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return [option for part in schema["anyOf"] if part.get("$ref") != _LEFT_OUT for option in _options(part)]
    if "const" in schema or "enum" in schema:
        return [json.dumps(word) for word in schema.get("enum", [schema.get("const")])]
    if "type" not in schema:
        return ["unknown"]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return [_typed(word, schema) for word in types]


def _typed(word: str, schema: Schema) -> str:
    if word == "array":
        items = _options(schema["items"]) if "items" in schema else ["unknown"]
        return f"{items[0]}[]" if len(items) == 1 else f"({' | '.join(items)})[]"
    if word == "object":
        return f"Record<string, {_type(schema.get('additionalProperties', {}))}>"
    return _TYPES[word]


def _table(title: str, definitions: dict[str, Any], tag: str, union: str, text: str) -> str:
    """An interface from the value of `tag` to the member of `union` that has it."""
    names = [part["$ref"].rpartition("/")[2] for part in definitions[union]["anyOf"]]
    rows = [(_tag(definitions, name, tag), name) for name in names]
    members = [f"  {word}: {name};" for word, name in rows if word]
    return "\n".join([*_comment("", text), f"export interface {title} {{", *members, "}", ""])


def _tag(definitions: dict[str, Any], name: str, tag: str) -> str:
    """The constant `tag` of a definition, or of each part of it."""
    schema = definitions[name]
    while "anyOf" in schema:
        schema = definitions[schema["anyOf"][0]["$ref"].rpartition("/")[2]]
    return str(schema["properties"][tag].get("const", ""))
