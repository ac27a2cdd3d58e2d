"""Values made from a schema of ours, for hypothesis: those that it allows, and those that are nearly so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 2.0, -0.0, 1e300]) | st.text(max_size=3)
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "integer": st.integers() | st.just(2.0),
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(max_size=8),
    "array": st.lists(ANYTHING, max_size=2),
    "object": st.dictionaries(st.text(max_size=3), ANYTHING, max_size=2),
}


class Instances:
    """Strategies for the definitions of one document. `faulty`: one part in ten is something else or missing."""

    def __init__(self, document: dict[str, Any], faulty: bool) -> None:
        self._definitions, self._faulty = document["$defs"], faulty
        self._made: dict[str, st.SearchStrategy[Any]] = {}

    def of(self, name: str) -> st.SearchStrategy[Any]:
        """Values of the definition `name`."""
        if name not in self._made:
            self._made[name] = st.deferred(lambda: self._values(self._definitions[name]))
        return self._made[name]

    def _values(self, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        right = st.one_of(*self._options(schema))
        if not self._faulty:
            return right
        return st.integers(0, 9).flatmap(lambda number: ANYTHING if number == 9 else right)

    def _options(self, schema: dict[str, Any]) -> Iterator[st.SearchStrategy[Any]]:
        if "$ref" in schema:
            yield self.of(schema["$ref"].removeprefix("#/$defs/"))
        elif "anyOf" in schema:
            yield from (self._values(part) for part in schema["anyOf"])
        elif "const" in schema or "enum" in schema:
            yield st.sampled_from(schema.get("enum", [schema.get("const")]))
        else:
            types = schema.get("type", list(BY_TYPE))
            yield from (self._typed(word, schema) for word in ([types] if isinstance(types, str) else types))

    def _typed(self, word: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        if word == "array" and "items" in schema:
            return st.lists(self._values(schema["items"]), max_size=2)
        if word == "object" and "additionalProperties" in schema:
            return st.dictionaries(st.text(max_size=3), self._values(schema["additionalProperties"]), max_size=2)
        if word == "object" and "properties" in schema:
            return self._object(schema)
        if "not" in schema:
            return BY_TYPE[word].filter(lambda value: value not in schema["not"]["enum"])
        return BY_TYPE[word]

    def _object(self, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        values = {name: self._values(part) for name, part in schema["properties"].items()}
        needed = set(schema.get("required", ()))
        missing = st.sets(st.sampled_from(sorted(needed)), max_size=1) if self._faulty and needed else st.just(set())
        more = {f"{name}X": ANYTHING for name in ("other",)}  # every object is open
        whole = st.fixed_dictionaries(
            {name: value for name, value in values.items() if name in needed},
            optional={**{name: value for name, value in values.items() if name not in needed}, **more},
        )
        drop = st.integers(0, 9).flatmap(lambda number: missing if number == 9 else st.just(set()))
        return st.tuples(whole, drop).map(lambda both: {k: v for k, v in both[0].items() if k not in both[1]})
