"""The compiler of schemas: from the JSON Schema that `protocol.schema` makes to the tables that `schema_walk` reads.

Knows exactly the keywords that are generated there, and refuses a schema with any other. What a union's parts differ in
(the JSON type, or the constant in one field) is found here, so that the walk never tries one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from conformance.schema_walk import TYPES, Fields, Items, Kinds, Look, Tagged, Whole, Words, faults_of

Check = Callable[[Any], list[str]]

_COMMENTS = {"title", "description", "default", "discriminator", "$schema", "$id", "$defs"}


def compile_schema(whole: dict[str, Any], ref: str = "") -> Check:
    """The check of a document, or of one of its definitions. Raises ValueError for a schema beyond what we generate."""
    compiler = _Compiler(whole["$defs"])
    kinds = compiler.kinds({"$ref": ref} if ref else {"$ref": whole["$ref"]})
    return lambda value: faults_of(kinds, value)


class _Compiler:
    """Makes the tables of a document. Each definition is compiled once, and may contain itself."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._made: dict[str, Kinds] = {}

    def kinds(self, schema: dict[str, Any]) -> Kinds:
        if "$ref" in schema:
            return self._definition(schema["$ref"].removeprefix("#/$defs/"))
        if "anyOf" in schema:
            return self._any_of(schema)
        keywords = schema.keys() - _COMMENTS
        if keywords & {"const", "enum"}:
            return self._words([schema["const"]] if "const" in schema else schema["enum"], keywords)
        given = schema.get("type", list(TYPES))
        kinds: Kinds = {}
        for word in [given] if isinstance(given, str) else given:
            kinds |= self._typed(word, schema)
        unused = keywords - {"type", "not", "items", "properties", "required", "additionalProperties"}
        if unused:
            raise ValueError(f"keywords that the check does not know: {sorted(unused)}")
        return kinds

    def _definition(self, name: str) -> Kinds:
        if name not in self._made:
            self._made[name] = {}
            self._made[name] |= self.kinds(self._definitions[name])
        return self._made[name]

    def _words(self, words: list[Any], keywords: set[str]) -> Kinds:
        if len(keywords) > 1:
            raise ValueError(f"keywords that the check does not know together: {sorted(keywords)}")
        by_type: dict[type, set[Any]] = {}
        for word in words:
            by_type.setdefault(type(word), set()).add(word)
        return {kind: Words(frozenset(found)) for kind, found in by_type.items()}

    def _typed(self, word: str, schema: dict[str, Any]) -> Kinds:
        if word == "integer":
            return {int: None, float: Whole()}
        if word == "string" and "not" in schema:
            return {str: Words(frozenset(schema["not"]["enum"]), excluded=True)}
        if word == "array" and "items" in schema:
            return {list: Items(self.kinds(schema["items"]))}
        if word == "object" and schema.keys() & {"properties", "additionalProperties"}:
            properties = {name: self.kinds(part) for name, part in schema.get("properties", {}).items()}
            rest = self.kinds(schema["additionalProperties"]) if "additionalProperties" in schema else None
            return {dict: Fields(properties, tuple(schema.get("required", ())), rest)}
        return dict.fromkeys(TYPES[word])

    # ---- unions --------------------------------------------------------------------------------------------------

    def _any_of(self, schema: dict[str, Any]) -> Kinds:
        leaves = [(leaf, self.kinds(leaf)) for leaf in self._leaves(schema)]
        return {kind: self._either(kind, leaves) for _, kinds in leaves for kind in kinds}

    def _leaves(self, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The parts of a union within unions, references to unions followed."""
        target = self._target(schema)
        if "anyOf" in target:
            for part in target["anyOf"]:
                yield from self._leaves(part)
        else:
            yield schema

    def _target(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            schema = self._definitions[schema["$ref"].removeprefix("#/$defs/")]
        return schema

    def _either(self, kind: type, leaves: list[tuple[dict[str, Any], Kinds]]) -> Look | None:
        options = [(leaf, kinds[kind]) for leaf, kinds in leaves if kind in kinds]
        looks = [look for _, look in options]
        if len(looks) == 1 or None in looks:
            return looks[0] if len(looks) == 1 else None
        if kind is dict:
            return self._objects([(self._target(leaf), look) for leaf, look in options if look])
        if all(isinstance(look, Words) and not look.excluded for look in looks):
            return Words(frozenset(word for look in looks if isinstance(look, Words) for word in look.words))
        raise ValueError(f"a union that the check cannot tell apart: {[leaf for leaf, _ in options]}")

    def _objects(self, options: list[tuple[dict[str, Any], Look]]) -> Look:
        if len(options) == 1:
            return options[0][1]
        field = _telling_field([schema for schema, _ in options])
        groups: dict[tuple[type, Any], list[tuple[dict[str, Any], Look]]] = {}
        others = []
        for schema, look in options:
            if (tag := _constant(schema, field)) is None:
                others.append(look)
            else:
                groups.setdefault((type(tag), tag), []).append((schema, look))
        looks = {tag: self._objects(group) for tag, group in groups.items()}
        return Tagged(field, looks, others[0] if others else None)


def _telling_field(schemas: list[dict[str, Any]]) -> str:
    """The field whose constants tell the objects apart, all but one at most; of two the one that tells more."""
    names = dict.fromkeys(name for schema in schemas for name in schema.get("properties", {}))
    found = {name: [tag for schema in schemas if (tag := _constant(schema, name)) is not None] for name in names}
    fit = {name: set(tags) for name, tags in found.items() if len(tags) >= len(schemas) - 1 and len(schemas) > 1}
    best: str | None = max(fit, key=lambda name: len(fit[name]), default=None)
    if best is None or (len(fit[best]) == 1 and len(found[best]) == len(schemas)):
        raise ValueError(f"a union of objects that the check cannot tell apart: {[s.get('title') for s in schemas]}")
    return best


def _constant(schema: dict[str, Any], field: str) -> Any:
    """The only value that `field` may have, `None` when there are more or the field may be missing."""
    return schema.get("properties", {}).get(field, {}).get("const") if field in schema.get("required", ()) else None
