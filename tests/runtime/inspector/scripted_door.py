"""A door as a running program has it, with tasks that a test writes: a real socket that speaks the inspector's wire.

For states that are rare or hard to bring about, and for a program that goes away or answers with nonsense.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

Record = dict[str, Any]
DEADLINE_S = 20


def task(task_id: str, /, **fields: Any) -> Record:
    """A task's record on the wire; a command that runs in the background, unless `fields` say otherwise."""
    ref = {"ownerId": "owner", "taskId": task_id, "attemptId": "a", "generation": "1"}
    plain = {
        "ref": ref,
        "launchOrdinal": int("".join(filter(str.isdigit, task_id)) or 0),
        "kind": "command",
        "title": f"job {task_id}",
        "state": "running",
        "execution": {"kind": "running"},
        "observation": {"kind": "background", "reason": "default-background"},
        "cleanup": {"kind": "active"},
        "attention": {"kind": "none"},
        "wasBackground": True,
    }
    return {**plain, **fields}


def agent(task_id: str, /, **fields: Any) -> Record:
    """The same for an agent."""
    told = {"agentName": "scout", "model": "fa/m", "thinking": "medium", "metrics": {"elapsedMs": 5000, "toolCount": 0}}
    return task(task_id, **{"kind": "agent", **told, **fields})


def settled(kind: str, **result: Any) -> Record:
    """Fields of a task that is over."""
    state = {"completed": "completed", "failed": "failed", "cancelled": "stopped"}[kind]
    execution = {"kind": "settled", "result": {"kind": kind, **result}}
    over = {"kind": "none", "reason": "task-settled"}
    return {"state": state, "execution": execution, "observation": over, "cleanup": {"kind": "reaped"}}


class ScriptedDoor:
    """`tasks` are the records that it tells, `details` what `get_task` adds, `entries` the transcripts, by task.
    `asked` holds every request; `answer` may answer one in its own way: a response without its id, or None."""

    def __init__(self, folder: Path, pid: int | None = None, **session: Any) -> None:
        self.pid = os.getpid() if pid is None else pid
        self.path = folder / f"t{self.pid}.sock"
        facts = {"sessionId": "0199-session", "cwd": str(folder), "model": "fa/m", "thinkingLevel": "medium"}
        self.session: Record = {**facts, **session}
        self.tasks: dict[str, Record] = {}
        self.details: dict[str, Record] = {}
        self.entries: dict[str, list[Record]] = {}
        self.missing = 0
        self.asked: list[Record] = []
        self.answer: Callable[[Record], Record | None] = lambda _: None
        self.greeting: bytes | None = None
        self.visits = self.left = 0
        self._changed = threading.Condition()
        self._peers: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> ScriptedDoor:
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        self._listener.bind(str(self.path))
        self._listener.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """As a program that ends: nobody listens any more."""
        self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Drops the connections; new ones are welcome."""
        with self._changed:
            peers, self._peers = self._peers, []
        for peer in peers:
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def put(self, *records: Record) -> None:
        """Tasks begin, or change; whoever is connected hears of it."""
        for record in records:
            self.tasks[record["ref"]["taskId"]] = record
            self.say({"type": "task_update", "task": record})

    def say(self, record: Record | bytes) -> None:
        line = record if isinstance(record, bytes) else json.dumps(record).encode() + b"\n"
        with self._changed:
            for peer in self._peers:
                try:
                    peer.sendall(line)
                except OSError:
                    continue

    def wait_for(self, kind: str, times: int = 1) -> list[Record]:
        """The requests of a kind, once there are so many."""

        def found() -> list[Record]:
            return [record for record in self.asked if record["type"] == kind]

        deadline = time.monotonic() + DEADLINE_S
        with self._changed:
            while len(found()) < times:
                assert self._changed.wait(deadline - time.monotonic()), f"{len(found())} of {times} {kind}"
            return found()

    def wait_until_left(self, times: int) -> None:
        """Until so many connections have ended."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.left >= times, DEADLINE_S), f"{self.left} of {times} have left"

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            hello = {"type": "inspector_hello", "version": 1, "pid": self.pid, **self.session}
            with contextlib.suppress(OSError):  # it only wanted to know whether somebody listens
                peer.sendall(self.greeting if self.greeting is not None else json.dumps(hello).encode() + b"\n")
            with self._changed:
                self.visits += 1
                self._peers.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, peer.makefile("rb") as lines:
            try:
                for line in lines:
                    self._take(peer, json.loads(line))
            except OSError:
                pass
        with self._changed:
            self.left += 1
            self._changed.notify_all()

    def _take(self, peer: socket.socket, request: Record) -> None:
        response = self.answer(request)
        if response is None:
            response = self._usual(request)
        told = {"id": request["id"], "type": "response", "command": request["type"], **response}
        with self._changed:
            self.asked.append(request)
            self._changed.notify_all()
            peer.sendall(json.dumps(told).encode() + b"\n")

    def _usual(self, request: Record) -> Record:
        task_id = request.get("taskId", "")
        if request["type"] == "get_tasks":
            return {"success": True, "data": {"tasks": list(self.tasks.values())}}
        if request["type"] == "set_task_subscription":
            return {"success": True}
        if task_id not in self.tasks:
            return {"success": False, "error": "UnknownTask: UnknownTask"}
        if request["type"] == "get_task":
            detail = {"task": self.tasks[task_id], **self.details.get(task_id, {})}
            if "transcript" in request:
                detail["transcript"] = self._page(task_id, **request["transcript"])
            return {"success": True, "data": detail}
        if request["type"] == "cancel_task":
            record = self.tasks[task_id]
            receipt = {"taskId": task_id, "decision": "cancellation-requested"}
            return {
                "success": True,
                "data": {**receipt, "execution": record["execution"], "cleanup": record["cleanup"]},
            }
        return {"success": True, "data": {"accepted": len(request.get("input", ""))}}

    def _page(self, task_id: str, before: int | None = None, limit: int = 50) -> Record:
        entries = self.entries.get(task_id, [])
        end = len(entries) if before is None else before
        start = max(end - limit, self.missing)
        return {"entries": entries[start:end], "first": start, "total": len(entries), "missing": self.missing}


def entry(index: int, role: str, text: str, **fields: Any) -> Record:
    return {"index": index, "role": role, "text": text, **fields}
