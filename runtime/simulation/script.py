"""What the client of a seed says: commands of every kind, in the proportions of one of a few temperaments.

The client knows more than a real one: it names session files and entries that exist, so that what it asks for mostly
happens. Texts for the queue and shell commands are unique, so that the invariants can follow each.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from protocol.codec import encode
from protocol.entries import read_entry
from runtime.simulation.disk import Disk

FEWEST, MOST = 4, 22

_BROKEN = (b"", b"{", b"null", b"[]", b'{"id":7}', b'{"type":"steer","id":8}', b'{"type":"nonsense","id":9}', b"\xff")
_PICTURE = "iVBORw0KGgoAAAANSUhEUgAAC7gAAAu4"  # how a PNG of 3000 x 3000 pixels begins
_QUIET = ("get_messages", "get_entries", "get_tree", "get_fork_messages", "get_last_assistant_text")

# kind: how often, for the temperaments chatty, shell, restless and mixed
_WEIGHTS: dict[str, tuple[int, int, int, int]] = {
    "prompt": (8, 3, 4, 5),
    "prompt_steer": (3, 1, 1, 2),
    "prompt_follow_up": (3, 1, 1, 2),
    "steer": (6, 1, 2, 3),
    "follow_up": (6, 1, 2, 3),
    "abort": (4, 1, 2, 2),
    "clear_queue": (2, 0, 1, 1),
    "pause_queued_messages": (2, 0, 1, 1),
    "resume_queued_messages": (2, 0, 1, 1),
    "mode": (2, 0, 1, 1),
    "bash": (2, 10, 4, 4),
    "abort_bash": (1, 4, 1, 2),
    "new_session": (1, 2, 3, 1),
    "switch_session": (1, 2, 6, 2),
    "fork": (0, 1, 2, 1),
    "clone": (0, 1, 2, 1),
    "import_session": (0, 1, 2, 1),
    "get_state": (1, 1, 1, 2),
    "quiet": (1, 1, 1, 1),
    "tree": (1, 1, 1, 1),
    "set_model": (1, 0, 0, 1),
    "catalog": (1, 1, 2, 2),
    "broken": (1, 1, 1, 1),
    "later": (0, 0, 0, 1),
}
_KINDS = tuple(_WEIGHTS)


class Script:
    """The lines of one client. `disk` is looked at when a line is made."""

    def __init__(self, rng: random.Random, disk: Disk) -> None:
        self._rng = rng
        self._disk = disk
        temperament = rng.randrange(4)
        self._weights = [weights[temperament] for weights in _WEIGHTS.values()]
        self._said = 0
        self._bash_ids: list[Any] = []
        self._makers: dict[str, Callable[[], dict[str, Any]]] = {
            "prompt": lambda: self._pictured({"type": "prompt", "message": f"p{self._said}"}),
            "prompt_steer": lambda: self._queued("prompt", streamingBehavior="steer"),
            "prompt_follow_up": lambda: self._queued("prompt", streamingBehavior="followUp"),
            "steer": lambda: self._queued("steer"),
            "follow_up": lambda: self._queued("follow_up"),
            "mode": self._mode,
            "bash": self._bash,
            "abort_bash": self._abort_bash,
            "switch_session": lambda: {"type": "switch_session", "sessionPath": self._path()},
            "import_session": lambda: {"type": "import_session", "inputPath": self._path()},
            "fork": lambda: {"type": "fork", "entryId": self._entry()},
            "quiet": lambda: {"type": self._rng.choice(_QUIET)},
            "tree": self._tree,
            "set_model": lambda: {"type": "set_model", "provider": "scripted", "modelId": "scripted"},
            "catalog": self._catalog,
            "later": lambda: {"type": self._rng.choice(("compact", "abort_compaction", "cycle_model"))},
        }

    def lines(self) -> Iterator[bytes]:
        for _ in range(self._rng.randrange(FEWEST, MOST)):
            kind = self._rng.choices(_KINDS, self._weights)[0]
            if kind == "broken":
                yield self._rng.choice(_BROKEN)
                continue
            self._said += 1
            make = self._makers.get(kind)
            command: dict[str, Any] = {"type": kind} if make is None else make()
            if "id" not in command and self._rng.random() < 0.9:
                command["id"] = self._said
            yield encode(command)

    def _queued(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self._pictured({"type": kind, "message": f"q{self._said}", **fields})

    def _pictured(self, command: dict[str, Any]) -> dict[str, Any]:
        if self._rng.random() < 0.1:
            command["images"] = [{"type": "image", "data": _PICTURE, "mimeType": "image/png"}]
        return command

    def _catalog(self) -> dict[str, Any]:
        credential = {"type": "api_key", "key": "k"}
        made: tuple[dict[str, Any], ...] = (
            {"type": "refresh_models"},
            {"type": "refresh_models", "timeoutMs": 5},
            {"type": "save_provider_credential", "provider": "p", "credential": credential},
            {"type": "logout_provider", "provider": "p"},
            {"type": "login_provider", "provider": "p"},
            {"type": "set_thinking_level", "level": self._rng.choice(("low", "high")), "persist": True},
            {"type": "set_auto_compaction", "enabled": False},
        )
        return self._rng.choice(made)

    def _mode(self) -> dict[str, Any]:
        kind = self._rng.choice(("set_steering_mode", "set_follow_up_mode"))
        return {"type": kind, "mode": self._rng.choice(("all", "one-at-a-time"))}

    def _bash(self) -> dict[str, Any]:
        kind = self._rng.choice(("bash", "user_bash"))
        command: dict[str, Any] = {"type": kind, "command": f"run-{self._said}"}
        command["excludeFromContext"] = self._rng.random() < 0.3
        if self._bash_ids and self._rng.random() < 0.15:
            command["id"] = self._rng.choice(self._bash_ids)
        elif self._rng.random() < 0.85:
            command["id"] = f"b{self._said}"
            self._bash_ids.append(command["id"])
        return command

    def _abort_bash(self) -> dict[str, Any]:
        if self._bash_ids and self._rng.random() < 0.6:
            return {"type": "abort_bash", "requestId": self._rng.choice(self._bash_ids)}
        return {"type": "abort_bash"}

    def _path(self) -> str:
        paths = list(self._disk.files)
        if not paths or self._rng.random() < 0.1:
            return f"/simulated/sessions/made-{self._said}.jsonl"
        if self._rng.random() < 0.1:
            return "/simulated/other/" + paths[0].rsplit("/", 1)[1]
        return self._rng.choice(paths)

    def _entry(self) -> str:
        """An entry of some file, mostly one of a user."""
        for path in reversed(list(self._disk.files)):
            heads = [head for line in self._disk.files[path][1:] if (head := read_entry(line)) is not None]
            if heads and self._rng.random() < 0.7:
                return self._rng.choice(heads).id
        return "nowhere"

    def _tree(self) -> dict[str, Any]:
        if self._rng.random() < 0.5:
            options = {"summarize": self._rng.random() < 0.6}
            return {"type": "navigate_tree", "targetId": self._entry(), "options": options}
        if self._rng.random() < 0.5:
            return {"type": "set_label", "entryId": self._entry(), "label": "mark"}
        return {"type": "set_session_name", "name": "a name"}
