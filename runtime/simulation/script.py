"""What the client of a seed says: commands of every kind, in the proportions of one of a few temperaments.

Each line is JSON in which some strings stand for what is there when it is written: `@file:3` for a session file,
`@entry:5` for an entry (`resolved` puts it in). So what is asked for mostly happens, and a line means something in a
shorter script too. Texts for the queue, shell commands, names and labels are unique, so that the invariants can follow
each.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from protocol.codec import encode

FEWEST, MOST = 4, 22
UNTIL_QUIET = -1
SECRET = "sk-simulated-secret"
BIG = 70_000
"""Bytes in a big line: more than one read."""


class Line(Struct, frozen=True, omit_defaults=True):
    """`pause` counts the client's steps after it (`UNTIL_QUIET`: until nothing else can move); `joined`: it leaves with
    the next one; `cut` is the part of what is due that the write takes."""

    text: str
    pause: int = 0
    joined: bool = False
    cut: float = 1.0


_BROKEN = (
    "",
    "{",
    "null",
    "[]",
    '{"id":7}',
    '{"type":"steer","id":8}',
    '{"type":"nonsense","id":9}',
    "@bytes:ff",
    '{"type":"set_steering_mode","mode":"some","id":10}',
)
_PICTURE = "iVBORw0KGgoAAAANSUhEUgAAC7gAAAu4"  # how a PNG of 3000 x 3000 pixels begins
_READS = (
    "get_state",
    "get_messages",
    "get_entries",
    "get_tree",
    "get_fork_messages",
    "get_last_assistant_text",
    "get_session_stats",
    "get_available_models",
    "get_available_thinking_levels",
    "get_commands",
    "get_command_completions",
    "get_shortcuts",
    "invoke_shortcut",
)
_ABOUT_TASKS = (
    "get_tasks",
    "get_task",
    "cancel_task",
    "cancel_task",
    "send_task_input",
    "send_task_input",
    "resize_task",
    "resize_task",
    "wait_task",
    "set_task_subscription",
    "set_task_subscription",
)
_NOT_FOR_VISITORS = ("get_state", "prompt", "abort", "new_session", "bash")
_SPOKEN = (*(("{}",) * 8), "{}" + "\nand a line" * 30, "/skill:here {}", "/skill:nobody@home {}", "/template {}")

# kind: how often, for the temperaments chatty, shell, restless, mixed, settling and delegating
_WEIGHTS: dict[str, tuple[int, int, int, int, int, int]] = {
    "prompt": (8, 3, 4, 5, 8, 10),
    "prompt_steer": (3, 1, 1, 2, 1, 3),
    "prompt_follow_up": (3, 1, 1, 2, 1, 1),
    "steer": (6, 1, 2, 3, 1, 4),
    "follow_up": (6, 1, 2, 3, 1, 1),
    "abort": (4, 1, 2, 2, 1, 4),
    "abort_retry": (2, 0, 1, 2, 1, 1),
    "clear_queue": (2, 0, 1, 1, 0, 0),
    "pause_queued_messages": (2, 0, 1, 1, 0, 1),
    "resume_queued_messages": (2, 0, 1, 1, 0, 1),
    "mode": (2, 0, 1, 1, 1, 0),
    "bash": (2, 10, 4, 4, 1, 1),
    "abort_bash": (1, 4, 1, 2, 0, 0),
    "tasks": (2, 1, 1, 4, 4, 16),
    "new_session": (1, 2, 3, 1, 1, 1),
    "switch_session": (1, 2, 6, 2, 1, 3),
    "fork": (0, 1, 2, 1, 0, 1),
    "clone": (0, 1, 2, 1, 0, 1),
    "import_session": (0, 1, 2, 1, 0, 1),
    "export_html": (0, 0, 1, 1, 1, 0),
    "reload": (1, 0, 1, 1, 1, 1),
    "reads": (2, 2, 2, 3, 3, 2),
    "tree": (1, 1, 2, 3, 8, 1),
    "name": (1, 0, 1, 1, 1, 0),
    "model": (1, 0, 1, 2, 4, 1),
    "thinking": (1, 0, 1, 1, 3, 0),
    "switches": (1, 0, 1, 1, 2, 0),
    "credentials": (1, 1, 1, 2, 4, 1),
    "compaction": (1, 0, 2, 2, 3, 1),
    "broken": (1, 1, 1, 1, 1, 0),
    "big": (0, 0, 0, 1, 0, 0),
    "extension_ui_response": (0, 0, 0, 1, 0, 0),
}
_KINDS = tuple(_WEIGHTS)
_SETTLING, _DELEGATING = 4, 5
_WATCHING = (10, 30, 100, UNTIL_QUIET)
_HASTY = (0, 0, 0, 3, 20, UNTIL_QUIET)
_PATIENT = (0, 3, 20, UNTIL_QUIET, UNTIL_QUIET, UNTIL_QUIET)


def script(rng: random.Random, delegates: bool = False) -> Iterator[Line]:
    """The lines of one client. `delegates`: its agent hands work to others."""
    said = Sayings(rng, delegates)
    for number in range(rng.randrange(FEWEST, MOST // 2 if delegates else MOST)):
        text = said.line()
        joined = rng.random() < 0.4 and not (delegates and number == 0)
        cut = 1.0 if rng.random() < 0.66 else rng.random()
        yield Line(text, 0 if joined else rng.choice(said.pauses), joined, round(cut, 2))


def looks(rng: random.Random, number: int, delegates: bool) -> Iterator[Line]:
    """The lines of the inspector with this number: about tasks, mostly. Most begin with a subscription."""
    said = Sayings(rng, delegates)
    for place in range(rng.randrange(1, 10)):
        text = said.looking(f"v{number}-{place}", place == 0 and rng.random() < 0.7)
        joined = rng.random() < 0.3
        cut = 1.0 if rng.random() < 0.66 else rng.random()
        yield Line(text, 0 if joined else rng.choice(_WATCHING), joined, round(cut, 2))


class Sayings:
    """One client's choice of words."""

    def __init__(self, rng: random.Random, delegates: bool) -> None:
        self._rng = rng
        temperament = _DELEGATING if delegates else rng.randrange(_DELEGATING)
        self.pauses: tuple[int, ...] = _PATIENT if temperament == _SETTLING else _HASTY
        if delegates and rng.random() < 0.7:
            self.pauses = _WATCHING
        self._weights = [weights[temperament] for weights in _WEIGHTS.values()]
        self._delegates = delegates
        self._said = 0
        self._bash_ids: list[str] = []
        self._makers: dict[str, Callable[[], dict[str, Any]]] = {
            "prompt": lambda: self._pictured(
                {"type": "prompt", "message": rng.choice(_SPOKEN).format(f"p{self._said}")}
            ),
            "prompt_steer": lambda: self._queued("prompt", streamingBehavior="steer"),
            "prompt_follow_up": lambda: self._queued("prompt", streamingBehavior="followUp"),
            "steer": lambda: self._queued("steer"),
            "follow_up": lambda: self._queued("follow_up"),
            "mode": self._mode,
            "bash": self._bash,
            "abort_bash": self._abort_bash,
            "tasks": self._task,
            "switch_session": lambda: {"type": "switch_session", "sessionPath": self._file()},
            "import_session": self._import,
            "fork": lambda: {"type": "fork", "entryId": self._entry()},
            "reads": self._read,
            "tree": self._tree,
            "name": lambda: {"type": "set_session_name", "name": f"name-{self._said}"},
            "model": self._model,
            "thinking": self._thinking,
            "switches": self._switch,
            "credentials": self._credentials,
            "compaction": self._compaction,
            "big": lambda: {"type": "get_state", "padding": "@big:"},
            "extension_ui_response": lambda: {"type": "extension_ui_response", "id": "nobody", "value": "asked"},
        }

    def line(self) -> str:
        kind = self._rng.choices(_KINDS, self._weights)[0]
        kind = "prompt" if self._delegates and self._said == 0 else kind
        if kind == "broken":
            return self._rng.choice(_BROKEN)
        self._said += 1
        make = self._makers.get(kind)
        command: dict[str, Any] = {"type": kind} if make is None else make()
        if "id" not in command and self._rng.random() < 0.9:
            command["id"] = self._said
        return encode(command).decode()

    def looking(self, id: str, subscribes: bool) -> str:
        """A line of an inspector; no other line has its id."""
        kind = self._rng.random()
        if kind < 0.05:
            return self._rng.choice(_BROKEN)
        command = self._task()
        if subscribes:
            command = {"type": "set_task_subscription", "enabled": True}
        elif kind < 0.1:
            command = {"type": self._rng.choice(_NOT_FOR_VISITORS), "message": "from a visitor", "command": "run-v"}
        if self._rng.random() < 0.9:
            command["id"] = id
        return encode(command).decode()

    def _queued(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self._pictured({"type": kind, "message": f"q{self._said}", **fields})

    def _pictured(self, command: dict[str, Any]) -> dict[str, Any]:
        if self._rng.random() < 0.1:
            command["images"] = [{"type": "image", "data": _PICTURE, "mimeType": "image/png"}]
        return command

    def _mode(self) -> dict[str, Any]:
        kind = self._rng.choice(("set_steering_mode", "set_follow_up_mode"))
        return {"type": kind, "mode": self._rng.choice(("all", "one-at-a-time"))}

    def _read(self) -> dict[str, Any]:
        kind = self._rng.choice(_READS)
        command: dict[str, Any] = {"type": kind}
        if kind == "get_entries" and self._rng.random() < 0.5:
            command["since"] = self._entry()
        elif kind == "get_command_completions":
            command |= {"commandName": "template", "argumentPrefix": ""}
        elif kind == "invoke_shortcut":
            command["key"] = "ctrl+x"
        return command

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

    def _task(self) -> dict[str, Any]:
        kind = self._rng.choice(_ABOUT_TASKS)
        if kind == "get_tasks":
            return {"type": kind}
        if kind == "set_task_subscription":
            told: dict[str, Any] = {"type": kind, "enabled": self._rng.random() < 0.8}
            if self._delegates and self._rng.random() < 0.5:
                told["transcript"] = f"@task:{self._rng.randrange(100)}"
            return told
        command: dict[str, Any] = {"type": kind, "taskId": f"@task:{self._rng.randrange(100)}"}
        if kind == "send_task_input":
            command["input"] = "typed"
            if self._delegates and self._rng.random() < 0.3:
                command["requestId"] = f"@question:{self._rng.randrange(100)}"
        if kind == "resize_task":
            command |= {"columns": 100, "rows": 30}
        if kind == "get_task" and self._delegates and self._rng.random() < 0.6:
            command["transcript"] = self._rng.choice(({}, {"limit": 1}, {"before": 1}))
        if kind == "wait_task" and self._rng.random() < 0.7:
            command["budgetMs"] = self._rng.choice((0, 50))
        return command

    def _file(self) -> str:
        kind = self._rng.choices(("file", "other", "made"), (8, 1, 1))[0]
        return f"@{kind}:{self._rng.randrange(100)}"

    def _import(self) -> dict[str, Any]:
        command = {"type": "import_session", "inputPath": self._file()}
        if self._rng.random() < 0.3:
            command["cwdOverride"] = "/simulated/elsewhere"
        return command

    def _entry(self) -> str:
        return f"@entry:{self._rng.randrange(100)}"

    def _tree(self) -> dict[str, Any]:
        if self._rng.random() < 0.7:
            command: dict[str, Any] = {"type": "navigate_tree", "targetId": self._entry()}
            options: dict[str, Any] = {}
            if self._rng.random() < 0.6:
                options["summarize"] = True
            if self._rng.random() < 0.3:
                options["label"] = f"mark-{self._said}"
            return command | ({"options": options} if options else {})
        return {"type": "set_label", "entryId": self._entry(), "label": f"mark-{self._said}"}

    def _model(self) -> dict[str, Any]:
        provider, model = self._rng.choice((("scripted", "scripted"), ("scripted", "quick"), ("spare", "spare")))
        persist = self._rng.random() < 0.3
        return self._rng.choice(
            (
                {"type": "set_model", "provider": provider, "modelId": model, "persist": persist},
                {"type": "cycle_model", "persist": persist},
                {"type": "cycle_model", "direction": "backward"},
            )
        )

    def _thinking(self) -> dict[str, Any]:
        level = self._rng.choice(("off", "low", "high"))
        persist = self._rng.random() < 0.3
        kind = self._rng.choice(("set_thinking_level", "cycle_thinking_level"))
        return {"type": kind} | ({"level": level, "persist": persist} if kind == "set_thinking_level" else {})

    def _compaction(self) -> dict[str, Any]:
        kind = self._rng.choice(("compact", "compact", "abort_compaction"))
        wish = self._rng.choice(({}, {"preserve_recent": 0}, {"preserve_recent": 1}, {"compression_ratio": 2}))
        return {"type": kind} | (wish if kind == "compact" else {})

    def _switch(self) -> dict[str, Any]:
        kind = self._rng.choice(("set_auto_compaction", "set_auto_retry"))
        return {"type": kind, "enabled": self._rng.random() < 0.5}

    def _credentials(self) -> dict[str, Any]:
        provider = self._rng.choice(("scripted", "spare", "unknown"))
        credential = {"type": "api_key", "key": SECRET} if self._rng.random() < 0.8 else {"type": "api_key", "key": ""}
        return self._rng.choice(
            (
                {"type": "refresh_models"},
                {"type": "refresh_models", "timeoutMs": 5},
                {"type": "save_provider_credential", "provider": provider, "credential": credential},
                {"type": "logout_provider", "provider": provider},
                {"type": "login_provider", "provider": provider, "authType": "api_key"},
                {"type": "login_provider", "provider": provider},
                {"type": "cancel_login_provider", "provider": provider},
            )
        )


_REFERENCE = re.compile(r'"@([a-z]+):([0-9a-f]*)"')


def resolved(text: str, referents: Mapping[str, Callable[[int], str]]) -> bytes:
    """The bytes of a line, with what its references stand for now. `referents` finds a `file` or an `entry`."""
    if text.startswith("@bytes:"):
        return bytes.fromhex(text.removeprefix("@bytes:"))

    def stands_for(found: re.Match[str]) -> str:
        kind, number = found[1], found[2]
        return encode("x" * BIG if kind == "big" else referents[kind](int(number))).decode()

    return _REFERENCE.sub(stands_for, text).encode()
