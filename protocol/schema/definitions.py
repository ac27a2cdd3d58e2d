"""Definitions: msgspec types as the `$defs` of a JSON Schema.

Owns what a type means in JSON. All objects are open. A field that has a default may be missing; in what is taken (a
command) it may be `null` as well, and parts of a command need no tag, since that is what the parser takes. msgspec's
own generator does not carry that far: it stops at a default that is `Raw`, and knows neither the difference nor what a
`Raw` field holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Raw, Struct, UnsetType
from msgspec.structs import FieldInfo, fields

Schema = dict[str, Any]

REQUEST_ID = "RequestId"
_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def any_of(names: Iterable[str], title: str, text: str = "") -> Schema:
    """One of the definitions `names`."""
    described = {"description": text} if text else {}
    return {"title": title, **described, "anyOf": [ref(name) for name in names]}


def tagged_union(title: str, names: Iterable[str], tag: str, text: str = "") -> Schema:
    """One of the definitions `names`, which the field `tag` tells apart. `discriminator` is OpenAPI's; to others it is
    a comment."""
    return {**any_of(names, title, text), "discriminator": {"propertyName": tag}}


class Definitions:
    """Collects definitions by name. `aliases` are types to be called by a name of their own, `names` the structs whose
    definition is not called after their class, `titles` theirs; `always` are fields that are sent although they have a
    default."""

    def __init__(
        self,
        aliases: Mapping[str, Any],
        names: Mapping[type, str],
        titles: Mapping[type, str],
        always: Mapping[type, frozenset[str]],
    ) -> None:
        self.found: dict[str, Schema] = {}
        self._aliases, self._names, self._titles, self._always = aliases, names, titles, always
        self._owners: dict[str, Any] = {}

    def add(self, kind: Any, *, taken: bool = False) -> str:
        """The name of the definition of `kind`, a struct or one of the aliases. Raises ValueError if another type has
        that name."""
        name = next((name for name, alias in self._aliases.items() if alias == kind), None) or self._names.get(kind)
        name = name or kind.__name__ + ("Input" if taken and kind.__struct_config__.tag_field else "")
        if name not in self.found:
            self.found[name] = {}  # a type may contain itself
            self._owners[name] = kind
            self.found[name] = self._struct(kind, name, taken) if isinstance(kind, type) else self._alias(kind, name)
        if self._owners[name] != kind:
            raise ValueError(f"two types are called {name}: {kind} and {self._owners[name]}")
        return name

    def named(self, name: str) -> str:
        """The same for a name: that of an alias, or of what was put into `found` before."""
        return self.add(self._aliases[name]) if name in self._aliases else name

    def _alias(self, kind: Any, name: str) -> Schema:
        """A literal, or a union of structs that one field tells apart."""
        members = get_args(kind)
        if get_origin(kind) is Literal:
            return {"title": name, **_words(members)}
        return tagged_union(name, [self.add(member) for member in members], members[0].__struct_config__.tag_field)

    def shape(self, kind: Any, *, taken: bool = False) -> Schema:
        """What values of the type `kind` look like: a reference where it has a definition."""
        if get_origin(kind) is Annotated:
            return self._annotated(kind, taken)
        if kind in self._aliases.values() or (isinstance(kind, type) and issubclass(kind, Struct)):
            return ref(self.add(kind, taken=taken))
        return self._plain(kind, taken)

    def _annotated(self, kind: Any, taken: bool) -> Schema:
        inner, meta = get_args(kind)[:2]
        if held := (meta.extra or {}).get("holds"):
            return ref(self.named(held))
        return meta.extra_json_schema or self.shape(inner, taken=taken)

    def _plain(self, kind: Any, taken: bool) -> Schema:
        origin, options = get_origin(kind), get_args(kind)
        if kind is Any:
            return {}
        if kind is Raw:
            return ref(REQUEST_ID)
        if kind in _SCALARS:
            return {"type": _SCALARS[kind]}
        if origin is Literal:
            return _words(options)
        if origin in (Union, UnionType):
            return self._union([option for option in options if option is not UnsetType], taken)
        if origin is dict:
            values = self.shape(options[1], taken=taken)
            return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
        if origin in (list, tuple):
            items = self.shape(options[0], taken=taken)
            return {"type": "array", "items": items} if items else {"type": "array"}
        raise TypeError(f"no JSON Schema for {kind!r}")

    def _union(self, options: list[Any], taken: bool) -> Schema:
        if own := self._own_name(options):
            return joined([ref(self.named(own)), *([{"type": "null"}] if NoneType in options else [])])
        words = tuple(word for option in options if get_origin(option) is Literal for word in get_args(option))
        rest = [self.shape(option, taken=taken) for option in options if get_origin(option) is not Literal]
        return joined([*([_words(words)] if words else []), *rest])

    def _own_name(self, options: list[Any]) -> str | None:
        """The alias that `options`, but for `None`, are: a union within a union is taken apart by Python."""
        given = {option for option in options if option is not NoneType}
        for name, alias in self._aliases.items():
            members = set(get_args(alias)) if get_origin(alias) is not Literal else {alias}
            if members == given:
                return name
        return None

    # ---- structs -------------------------------------------------------------------------------------------------

    def _struct(self, kind: type[Struct], name: str, taken: bool) -> Schema:
        config, properties, required = kind.__struct_config__, {}, []
        if config.tag_field is not None:
            properties[config.tag_field] = {"const": config.tag}
            if not taken or kind in self._names:  # what has a name of its own is no part
                required.append(config.tag_field)
        for each in fields(kind):
            shape = self.shape(each.type, taken=taken)
            properties[each.encode_name] = _taken(each, shape) if taken and not each.required else shape
            if each.required or (not taken and self._is_sent(kind, each, shape)):
                required.append(each.encode_name)
        described = {"description": text} if (text := description(kind)) else {}
        title = self._titles.get(kind, name)
        whole: Schema = {"title": title, **described, "type": "object", "properties": properties}
        return {**whole, "required": required} if required else whole

    def _is_sent(self, kind: type[Struct], each: FieldInfo, shape: Schema) -> bool:
        """Whether a field is there in spite of its default: that is then for whoever builds the struct."""
        return "const" in shape or each.encode_name in self._always.get(kind, ())


def _taken(each: FieldInfo, shape: Schema) -> Schema:
    """`null` stands for the default, which is told where it is a word or a truth value."""
    default = {"default": each.default} if isinstance(each.default, str | bool) else {}
    return {**joined([shape, {"type": "null"}]), **default}


def joined(shapes: list[Schema]) -> Schema:
    """Any of `shapes`, as short as that can be said."""
    flat = [part for shape in shapes for part in (shape["anyOf"] if shape.keys() == {"anyOf"} else [shape])]
    flat = [shape for place, shape in enumerate(flat) if shape not in flat[:place]]
    open_ = [shape for shape in flat if shape in ({}, ref(REQUEST_ID))]
    if len(flat) == 1 or open_:
        return (open_ or flat)[0]
    if all(shape.keys() == {"type"} for shape in flat):
        types = [word for shape in flat for word in _listed(shape["type"])]
        return {"type": list(dict.fromkeys(types))}
    if len(flat) == 2 and flat[1] == {"type": "null"} and "enum" in flat[0]:
        return {"enum": [*flat[0]["enum"], None]}
    return {"anyOf": flat}


def _listed(word: Any) -> list[str]:
    return word if isinstance(word, list) else [word]


def _words(words: tuple[Any, ...]) -> Schema:
    return {"const": words[0]} if len(words) == 1 else {"enum": list(words)}


def description(kind: type[Struct]) -> str:
    """The first paragraph of the docstring, with the wire's names of the fields."""
    paragraph = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    wire = {each.name: each.encode_name for each in fields(kind)} | {"None": "null", "True": "true", "False": "false"}
    return re.sub(r"`(\w+)`", lambda found: f"`{wire.get(found[1], found[1])}`", paragraph)
