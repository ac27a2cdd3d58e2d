"""Checks of a case that need no waiting: what holds of all its records, of stderr, of the requests, and of files.

Pure but for reading files below the stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conformance.driver import Record
from conformance.fault import Fault, compared
from conformance.json_values import shorten
from conformance.model_server import Request
from conformance.names import fill
from conformance.shapes import match
from conformance.stage import Stage
from conformance.transcript import Step


class Scene(NamedTuple):
    """All that a case left behind when its last process had ended."""

    records: Sequence[Record]
    labels: Mapping[str, int]
    names: Mapping[str, Any]
    stderr: str
    requests: Sequence[Request]


def check(step: Step, scene: Scene) -> Fault | None:
    """What is wrong by a step of the whole; None as well for every other step."""
    return _CHECKS[step.verb](step, scene) if step.verb in _CHECKS else None


def _range(step: Step, scene: Scene) -> list[tuple[int, Record]]:
    first = scene.labels[step.options["after"]] + 1 if "after" in step.options else 0
    last = scene.labels[step.options["before"]] if "before" in step.options else len(scene.records)
    return [(index, scene.records[index]) for index in range(first, last)]


def _matching(step: Step, scene: Scene) -> list[tuple[int, Record]]:
    return [
        (index, one) for index, one in _range(step, scene) if match(step.value, one, scene.names).difference is None
    ]


def _order(step: Step, scene: Scene) -> Fault | None:
    places = [(label, scene.labels[label]) for label in step.value]
    if places == sorted(places, key=lambda place: place[1]):
        return None
    came = ", ".join(label for label, _ in sorted(places, key=lambda place: place[1]))
    return Fault("records in another order", step.line, ", ".join(step.value), came)


def _none(step: Step, scene: Scene) -> Fault | None:
    found = _matching(step, scene)
    if not found:
        return None
    return Fault(
        f"a record that must not be there, {shorten(step.value, 120)}", step.line, "none", shorten(found[0][1], 300)
    )


def _count(step: Step, scene: Scene) -> Fault | None:
    difference = match(step.options["is"], len(_matching(step, scene)), scene.names).difference
    return compared(f"how many records {shorten(step.value, 120)}", step.line, difference) if difference else None


def _deltas(step: Step, scene: Scene) -> Fault | None:
    """The deltas of one direct shell request, joined."""
    shape = {"type": "bash_execution_update", "id": step.value}
    if "channel" in step.options:
        shape["channel"] = step.options["channel"]
    chosen = [one for _, one in _range(step, scene) if match(shape, one, scene.names).difference is None]
    joined = "".join(str(one.get("delta", "")) for one in chosen)
    difference = match(step.options["is"], joined, scene.names).difference
    return compared(f"the deltas of {shorten(step.value)}", step.line, difference) if difference else None


def _requests(step: Step, scene: Scene) -> Fault | None:
    difference = match(step.value, len(scene.requests), scene.names).difference
    return compared("how many requests reached the model", step.line, difference) if difference else None


def _stderr(step: Step, scene: Scene) -> Fault | None:
    difference = match(step.value, scene.stderr, scene.names).difference
    return compared("stderr", step.line, difference) if difference else None


_CHECKS: dict[str, Callable[[Step, Scene], Fault | None]] = {
    "order": _order, "none": _none, "count": _count, "deltas": _deltas, "requests": _requests, "stderr": _stderr,
}  # fmt: skip


# ---- files ---------------------------------------------------------------------------------------------------------


def file_problem(step: Step, stage: Stage, names: Mapping[str, Any]) -> Fault | None:
    file = stage.path(fill(step.value, names))
    wanted = step.options.get("exists", True)
    if file.exists() != wanted:
        return Fault(f"the file {step.value}", step.line, "it exists" if wanted else "no such file", _there(file))
    if "is" not in step.options:
        return None
    text = file.read_bytes().decode("utf-8", "replace")
    difference = match(step.options["is"], text, names).difference
    return compared(f"the file {step.value}", step.line, difference) if difference else None


def _there(file: Path) -> str:
    if file.exists():
        return "it exists"
    beside = sorted(one.name for one in file.parent.iterdir()) if file.parent.is_dir() else []
    return f"no such file; beside it are {shorten(beside)}"


def entries_problem(step: Step, stage: Stage, names: Mapping[str, Any]) -> Fault | None:
    """The entries of a session file (the header apart) against a shape of their list."""
    if "of" in step.options:
        file = stage.path(fill(step.options["of"], names))
    else:
        files = sorted(Path(stage.names["sessions"]).rglob("*.jsonl"))
        if len(files) != 1:
            return Fault("which session file is meant", step.line, "exactly one", f"{len(files)} below sessions/")
        file = files[0]
    if not file.is_file():
        return Fault("the session file", step.line, str(file.name), "no such file")
    lines = [_line(line) for line in file.read_bytes().split(b"\n") if line.strip()]
    header, entries = (lines[0] if lines else None), lines[1:]
    for what, shape, value in (("header", step.options.get("header"), header), ("entries", step.value, entries)):
        difference = match(shape, value, names).difference if shape is not None else None
        if difference:
            return compared(f"the {what} of {file.name}", step.line, difference)
    return None


def _line(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return {"type": "(no JSON)", "text": line[:200].decode("utf-8", "replace")}
