"""The model of the subagent measures, in a process of its own so that it takes no time from the program's interpreter.

    python -m tests.performance.subagent_server LOG

The first line of stdout is its address. A prompt `launch N` makes the parent call `subagent` for N jobs, `await N` the
same and wait for them, `hold N` for N whose first request is never answered. Other children read a file in each of
their first two turns and answer in the third.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from conformance.model_server import ModelServer, Request, hang_before_head, text, tool

ANSWER = "What the notes say of it, in one of sixteen lines that a parent may want to read again.\n" * 16
FILE = "notes.txt"
CALLS = 2


def answer(request: Request) -> Any:
    messages = request.body["messages"]
    results = sum(_has_result(message) for message in messages)
    if "You are a subagent" in json.dumps(request.body.get("system", "")):
        if "held" in _last_text(messages):
            return hang_before_head()
        return tool("read", {"path": FILE}, id=f"r{results}") if results < CALLS else text(ANSWER)
    words = _last_text(messages).split()
    if words[:1] not in (["launch"], ["hold"], ["await"]):
        return text("noted")
    kind = "held" if words[0] == "hold" else "job"
    tasks = [{"agent": "scout", "task": f"{kind} {number}"} for number in range(int(words[1]))]
    wait = {"wait": {"kind": "foreground"}} if words[0] == "await" else {}
    return tool("subagent", {"tasks": tasks, **wait}, id=f"l{len(messages)}")


def _has_result(message: dict[str, Any]) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block["type"] == "tool_result" for block in content)


def _last_text(messages: list[dict[str, Any]]) -> str:
    content = messages[-1]["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if block["type"] == "text")


def main(log: str) -> None:
    with Path(log).open("ab", buffering=0) as file, ModelServer(log=file) as server:
        server.default = answer
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
