"""What reached the model, in one form for all three dialects, so that a case can look at it without knowing them.

Pure. Source of the shapes: the providers' own references of Messages, Chat Completions and Responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.model_server import Request

Json = dict[str, Any]


def asked(request: Request) -> Json:
    """`model`, `system` (as text), `tools` (names), `messages` (`{role, text, calls, results}`, role user, assistant or
    tool), `last` (the newest user text); beside them `number`, `path`, `headers` (secrets masked), the `body` as it
    came and `outcome` (`whole`, `cut`, `left`, or null while it runs)."""
    body = request.body if isinstance(request.body, dict) else {}
    said = [message for item in _items(body) for message in _messages(item)]
    users = [one["text"] for one in said if one["role"] == "user" and one["text"]]
    return {
        "number": request.number, "path": request.path, "headers": dict(request.headers), "body": request.body,
        "outcome": request.outcome, "model": body.get("model"), "system": _system(body, said), "tools": _tools(body),
        "messages": [one for one in said if one["role"] in ("user", "assistant", "tool")],
        "last": users[-1] if users else "",
    }  # fmt: skip


def offered(request: Request) -> list[str]:
    """The names of the tools that the model may call."""
    return _tools(request.body) if isinstance(request.body, dict) else []


def _items(body: Mapping[str, Any]) -> list[Json]:
    items = body.get("messages") or body.get("input") or []
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return [item for item in items if isinstance(item, dict)]


def _tools(body: Mapping[str, Any]) -> list[str]:
    tools = [tool for tool in body.get("tools") or [] if isinstance(tool, dict)]
    return [str(tool.get("name") or (tool.get("function") or {}).get("name")) for tool in tools]


def _system(body: Mapping[str, Any], said: list[Json]) -> str:
    own = _text(body.get("system") or body.get("instructions") or "")
    return own + "".join(one["text"] for one in said if one["role"] in ("system", "developer"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "".join(str(one.get("text", "")) for one in blocks if isinstance(one, dict))


def _messages(item: Json) -> Iterator[Json]:
    """An Anthropic message may hold results of tools beside a text: those come first, as a message of their own."""
    results = list(_results(item))
    if results:
        yield {"role": "tool", "text": "", "calls": [], "results": results}
    calls = list(_calls(item))
    text = "" if item.get("role") == "tool" else _text(item.get("content"))
    if text or calls or (not results and item.get("role")):
        yield {"role": item.get("role") or "assistant", "text": text, "calls": calls, "results": []}


def _results(item: Json) -> Iterator[Json]:
    for block in _blocks(item):
        if block.get("type") == "tool_result":
            yield {"id": block.get("tool_use_id"), "text": _text(block.get("content"))}
    if item.get("role") == "tool":
        yield {"id": item.get("tool_call_id"), "text": _text(item.get("content"))}
    if item.get("type") == "function_call_output":
        yield {"id": item.get("call_id"), "text": _text(item.get("output"))}


def _calls(item: Json) -> Iterator[Json]:
    for block in _blocks(item):
        if block.get("type") == "tool_use":
            yield {"id": block.get("id"), "name": block.get("name"), "args": block.get("input")}
    for call in item.get("tool_calls") or []:
        function = call.get("function") or {}
        yield {"id": call.get("id"), "name": function.get("name"), "args": _parsed(function.get("arguments"))}
    if item.get("type") == "function_call":
        yield {"id": item.get("call_id"), "name": item.get("name"), "args": _parsed(item.get("arguments"))}


def _blocks(item: Json) -> list[Json]:
    content = item.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _parsed(arguments: Any) -> Any:
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments
