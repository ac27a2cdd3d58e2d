"""What a compaction costs beside the model: CPU of its parts, and how soon `get_state` is answered while one runs.

    .venv/bin/python -m tests.performance.compaction_times [runs]

The session has 2,000 messages of 1 MB together. Prints a table for docs/performance.md. Loads two cores for a minute.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from actors.session.compaction.ladder import Ladder, Plan
from actors.session.compaction.outcome import outcome_of
from actors.session.compaction.parameters import Wish
from actors.session.compaction.planner import planner_text
from actors.session.compaction.preparation import prepare
from actors.session.compaction_work import Place, finish
from actors.session.context import build_context
from actors.session.fallback import Place as ModelPlace
from actors.session.file import read_session
from actors.session.tree import Tree
from conformance.driver import Agent
from conformance.model_server import ModelServer, text
from protocol.codec import encode
from protocol.entry_head import read_entry
from protocol.messages import AssistantMessage, TextContent, Usage
from protocol.model import Model, ModelCost
from tests.e2e.conftest import Home, program

MESSAGES = 2000
LINE = "the quick brown fox jumps over the lazy dog 0123456789"
MODEL = Model("small", "small", "anthropic-messages", "fa", "http://x", False, ("text",), ModelCost(), 20_000, 2000)


def session_lines(cwd: str) -> list[bytes]:
    """A header, and 2,000 messages of some 500 bytes: prompts, replies with calls, and results."""
    stamp = "2026-02-01T10:00:00.000Z"
    lines = [encode({"type": "session", "version": 3, "id": "bench", "timestamp": stamp, "cwd": cwd})]
    parent = None
    for number in range(MESSAGES):
        entry_id = f"{number:08x}"
        message = _message(number)
        lines.append(
            encode({"type": "message", "id": entry_id, "parentId": parent, "timestamp": stamp, "message": message})
        )
        parent = entry_id
    return lines


def _message(number: int) -> dict[str, Any]:
    body = [{"type": "text", "text": "\n".join(f"{number} {row} {LINE}" for row in range(4))}]
    if number % 4 == 0:
        return {"role": "user", "content": body, "timestamp": number}
    if number % 4 == 2:
        names = {"toolCallId": f"c{number - 1}", "toolName": "bash", "isError": False}
        return {"role": "toolResult", **names, "content": body, "timestamp": number}
    call = {"type": "toolCall", "id": f"c{number}", "name": "bash", "arguments": {"command": "ls"}}
    calls = number % 4 == 1
    usage = {"input": 19_000, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 19_005, "cost": {}}
    return {
        **{"role": "assistant", "content": [*body, call] if calls else body, "api": "anthropic-messages"},
        **{"provider": "fa", "model": "small", "usage": usage, "stopReason": "toolUse" if calls else "stop"},
        "timestamp": number,
    }


def plan_for(region_lines: int) -> str:
    """Every other stretch of six lines goes."""
    return "\n".join(f"{start},{start + 5}" for start in range(1, region_lines - 6, 12))


def cpu_of_parts(path: str, runs: int) -> dict[str, list[float]]:
    """Milliseconds of each part, by name."""
    stored = read_session(path, lambda: "x")
    tree = Tree(stored.entries)
    branch = tuple(tree.path(tree.leaf_id))
    times: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        begun = time.thread_time()
        result = work()
        times.setdefault(name, []).append(1000 * (time.thread_time() - begun))
        return result

    for _ in range(runs):
        prepared = timed("prepare the region", partial(prepare, branch, Wish()))
        timed("write the request", partial(planner_text, prepared.region, 0.5, "what is next"))
        answer = [TextContent(plan_for(len(prepared.region)))]
        reply = AssistantMessage(answer, "a", "fa", "small", Usage(), "stop", 1)
        ranked = timed("read the plan", partial(outcome_of, reply, prepared.region, 20_000))
        ladder = Ladder(prepared.region, ModelPlace(MODEL, "off"), None, (), (), must_succeed=False)
        ladder.begin()
        plan = ladder.answered(ranked)
        assert isinstance(plan, Plan)
        nowhere: Any = None
        boundary, _ = timed("rebuild and encode", partial(finish, prepared, plan, 20_000, "x", Place(nowhere, None)))
        timed("append and derive the context", partial(_append, stored.entries, boundary))
    return times


def _append(entries: list[Any], boundary: Any) -> None:
    """What runs in the session's own turn, without the write."""
    tree = Tree(entries[-1:])
    stamps = {"type": "compaction", "id": "b", "parentId": tree.leaf_id, "timestamp": "2026-02-01T10:00:00.000Z"}
    line = encode({**stamps, **boundary.entry})
    head = read_entry(line)
    assert head is not None
    tree.add(line, head)
    build_context(tree, tree.leaf_id)


def answers_meanwhile(
    home: Home, server: ModelServer, path: Path, lines: list[bytes]
) -> tuple[list[float], list[float]]:
    """Milliseconds that each `get_state` took while the session was idle, and between the start and the end of a
    compaction before a prompt."""
    path.write_bytes(b"\n".join(lines) + b"\n")
    server.script(text(plan_for(12_000)), text("fine"))
    where = ["--provider", "fa", "--model", "small", "--session", str(path)]
    with Agent([*program(), "--mode", "rpc", *where], cwd=home.cwd, env=home.environment(), check=None) as a:
        a.request("get_state")
        idle = [_asked(a) for _ in range(100)]
        a.send("prompt", message="go on")
        a.wait({"type": "compaction_start"})
        busy = []
        while not any(record["type"] == "compaction_end" for record in a.records[-50:]):
            busy.append(_asked(a))
        a.wait({"type": "agent_settled"})
        (end,) = [record for record in a.records if record["type"] == "compaction_end"]
        assert end["result"], end
    return idle, busy


def _asked(a: Agent) -> float:
    begun = time.perf_counter()
    a.request("get_state")
    return 1000 * (time.perf_counter() - begun)


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ModelServer() as server:
        home = Home(Path(folder), server.url)
        lines = session_lines(str(home.cwd))
        path = home.sessions / "bench.jsonl"
        path.write_bytes(b"\n".join(lines) + b"\n")
        print(f"{MESSAGES} messages, {path.stat().st_size / 1e6:.2f} MB, {runs} runs\n")
        parts = cpu_of_parts(str(path), runs)
        print("| Part | CPU, median (least to most) |\n|---|---|")
        for name, times in parts.items():
            print(f"| {name} | {_shown(times)} |")
        sums = [sum(each) for each in zip(*parts.values(), strict=True)]
        print(f"| all of them | {_shown(sums)} |\n")
        rounds = [answers_meanwhile(home, server, path, lines) for _ in range(runs)]
        for name, place in (("idle", 0), ("while it runs", 1)):
            delays = sorted(delay for each in rounds for delay in each[place])
            p95 = delays[int(0.95 * len(delays))]
            print(f"get_state, {name}: {len(delays)} answers, median {statistics.median(delays):.2f} ms,")
            print(f"  95th percentile {p95:.2f} ms, slowest {delays[-1]:.1f} ms")


def _shown(times: list[float]) -> str:
    return f"{statistics.median(times):.1f} ms ({min(times):.1f} to {max(times):.1f})"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
