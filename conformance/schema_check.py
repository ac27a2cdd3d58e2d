"""The schema check: whether what an agent says is what `protocol.schema` allows, and where it is not.

Every schema is compiled once (`schema_compiler`) and walked without recursion (`schema_walk`). A text delta takes five
microseconds.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from conformance.schema_compiler import Check, compile_schema
from protocol.json_text import BadJson, decode_any
from protocol.schema.documents import WHOLE, document
from protocol.tree_json import read_deep


@cache
def check_of(name: str) -> Check:
    """The check of the definition `name` (`Command`, `Entry`, `Message`, ...). It tells the faults of a value, at most
    20, each as `pointer: what is wrong`; none for a value that fits. Raises KeyError for a name that there is not."""
    return compile_schema(document(WHOLE), f"#/$defs/{name}")


def check_record(record: Any) -> list[str]:
    """The faults of a record of stdout: a response by its command, an event by its type, a request of an extension by
    its method. A type that nobody knows is a fault too, with `is unknown` in its text."""
    return check_of("AgentRecord")(record)


def check_line(line: bytes) -> list[str]:
    """The same for a line of stdout (without its line feed), however deep it nests. What is no JSON is a fault."""
    try:
        return check_record(decode_any(line))
    except BadJson:
        pass
    try:
        return check_record(read_deep(line))
    except BadJson as error:
        return [f"the line: {error}"]
