"""Responses as definitions: for each command its success, with its data, and its failure; and the lines that are none.

Source: contract `rpc-protocol.md`, "Commands" and "Error Handling".
"""

from __future__ import annotations

from typing import get_args

from msgspec import UnsetType

from protocol.commands import COMMANDS, REPLIES
from protocol.responses import DATA
from protocol.schema.definitions import REQUEST_ID, Definitions, Schema, any_of, ref

_ERROR: Schema = {"type": "string"}
_STRUCTURED: Schema = {
    "errorCode": {"type": "string"},
    "errorDetails": {"type": "object", "additionalProperties": {"type": "string"}},
}


def add_responses(made: Definitions) -> None:
    """`Response`, and what it is one of: `GetStateResponse` is `GetStateSuccess` or `GetStateFailure`."""
    kinds = {name: kind.__name__ for name, kind in COMMANDS.items() if name not in REPLIES}
    for name, kind in kinds.items():
        made.found[f"{kind}Success"] = _success(made, name)
        made.found[f"{kind}Failure"] = _failure(name)
        made.found[f"{kind}Response"] = any_of([f"{kind}Success", f"{kind}Failure"], f"response to {name}")
    made.found["RejectedResponse"] = _rejected(list(kinds))
    names = [*(f"{kind}Response" for kind in kinds.values()), "RejectedResponse"]
    made.found["Response"] = any_of(names, "Response", "Exactly one for each command.")


def _success(made: Definitions, name: str) -> Schema:
    whole = _envelope(f"success of {name}", {"const": name}, True)
    if name in DATA:
        whole["properties"]["data"] = made.shape(DATA[name])
        if UnsetType not in get_args(DATA[name]):
            whole["required"].append("data")
    return whole


def _failure(name: str) -> Schema:
    whole = _envelope(f"failure of {name}", {"const": name}, False)
    whole["properties"] |= {"error": _ERROR, **_STRUCTURED}
    whole["required"].append("error")
    return whole


def _rejected(names: list[str]) -> Schema:
    """What was no command: `parse` for a line that is no JSON, the unknown type, or no `command` at all."""
    whole = _envelope("RejectedResponse", {"type": "string", "not": {"enum": names}}, False)
    whole["description"] = (
        "The response to what is no command: `command` is `parse` when the line is no JSON, the `type` when nobody "
        "knows it, and absent when there is none."
    )
    whole["properties"]["error"] = _ERROR
    whole["required"] = ["type", "success", "error"]
    return whole


def _envelope(title: str, command: Schema, success: bool) -> Schema:
    kind = {"type": {"const": "response"}, "command": command, "success": {"const": success}}
    return {"title": title, "type": "object", "properties": {"id": ref(REQUEST_ID), **kind}, "required": list(kind)}
