"""Recordings: what a client and an agent really said, one JSON object a line, in the order in which it was seen.

Owns the format of a recording and its version: `record` writes it, `replay` and `compare` read it, `convert` makes it
from older ones. The first line is the head, every other has one of `KINDS` as key, and may have `t`, the seconds since
the start. `docs/conformance/recordings.md` describes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from conformance.json_values import is_hex, shorten
from conformance.transcript import TOO_DEEP, check_start
from conformance.verbs import Checker, is_object, is_signal, is_text, is_texts

RECORDING = 1
# in: a command; in_raw: bytes of the client that are no whole command, as text or {"hex"}; out: a record of the agent;
# out_raw: a line of its stdout that is no JSON object; err: text of stderr; end: "stdin" or "stdout" was closed;
# signal: one that was sent; exit: the exit code; note: for readers
KINDS = ("in", "in_raw", "out", "out_raw", "err", "end", "signal", "exit", "note")
_HEAD: Mapping[str, Checker] = {
    "recording": lambda value: None,
    "command": is_texts,
    "start": check_start,
    "replies": lambda value: None if isinstance(value, list) else "a list of replies",
    "note": is_text,
}


class RecordingError(ValueError):
    """A recording that cannot be read: the file, the line, and what is wrong there."""

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")


class Line(NamedTuple):
    kind: str
    value: Any
    t: float | None = None

    def encode(self) -> bytes:
        time = {} if self.t is None else {"t": round(self.t, 3)}
        return _encode({**time, self.kind: self.value})


class Recording(NamedTuple):
    """`command` is what was started; `start` is as in a case; `replies` are what the model answered, when that is
    known, else they are read from the messages of the recording."""

    command: tuple[str, ...] = ()
    start: Mapping[str, Any] = {}
    replies: tuple[Any, ...] | None = None
    note: str = ""
    lines: tuple[Line, ...] = ()

    @property
    def records(self) -> list[dict[str, Any]]:
        """What the agent said."""
        return [line.value for line in self.lines if line.kind == "out"]

    def head(self) -> bytes:
        """The first line."""
        fields = {"recording": RECORDING, "command": list(self.command), "start": dict(self.start)}
        fields |= {} if self.replies is None else {"replies": list(self.replies)}
        return _encode({**fields, "note": self.note} if self.note else fields)


def _encode(fields: Mapping[str, Any]) -> bytes:
    text = json.dumps(fields, ensure_ascii=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate travels only as an escape
        return json.dumps(fields).encode() + b"\n"


def raw_value(data: bytes) -> Any:
    """Bytes as the value of `in_raw` or `out_raw`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def raw_bytes(value: Any) -> bytes:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else str(value).encode("utf-8", "surrogatepass")


def write_recording(out: IO[bytes], recording: Recording) -> None:
    out.write(recording.head())
    out.writelines(line.encode() for line in recording.lines)


def read_recording(file: Path) -> Recording:
    """A recording from its file. RecordingError for the first line that is wrong."""
    rows = list(_rows(file.read_bytes().decode("utf-8", "replace"), str(file)))
    if not rows or rows[0][1].get("recording") != RECORDING:
        found = shorten(rows[0][1].get("recording")) if rows else "nothing"
        raise RecordingError(
            str(file), 1, f'the head has "recording": {RECORDING}, not {found}; `convert` reads others'
        )
    head = rows[0][1]
    number = rows[0][0]
    if unknown := sorted(head.keys() - set(_HEAD)):
        raise RecordingError(str(file), number, f"the head has no field {unknown[0]!r}; allowed are {', '.join(_HEAD)}")
    for key, value in head.items():
        if (problem := _HEAD[key](value)) is not None:
            raise RecordingError(str(file), number, f"the head: {key} is {shorten(value)}; allowed is {problem}")
    lines = tuple(_line(fields, str(file), number) for number, fields in rows[1:])
    replies = tuple(head["replies"]) if "replies" in head else None
    return Recording(tuple(head.get("command", ())), head.get("start", {}), replies, head.get("note", ""), lines)


def _rows(text: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        try:
            fields = json.loads(row)
        except ValueError as problem:
            raise RecordingError(path, number, f"not JSON: {problem}") from problem
        except RecursionError:
            raise RecordingError(path, number, TOO_DEEP) from None
        if not isinstance(fields, dict):
            raise RecordingError(path, number, f"a line is a JSON object, not {shorten(fields)}")
        yield number, fields


def _line(fields: dict[str, Any], path: str, number: int) -> Line:
    kinds = [key for key in fields if key != "t"]
    if len(kinds) != 1 or kinds[0] not in KINDS:
        raise RecordingError(path, number, f"a line has one of {', '.join(KINDS)}, not {', '.join(kinds) or 'nothing'}")
    return _checked(Line(kinds[0], fields[kinds[0]], fields.get("t")), path, number, kinds[0])


def _checked(line: Line, path: str, number: int, name: str) -> Line:
    """The line, if what it holds is of its kind; `name` is what its key is called in the file."""
    if problem := _VALUES[line.kind](line.value):
        raise RecordingError(path, number, f"{name} is {shorten(line.value)}; allowed is {problem}")
    if line.t is not None and type(line.t) not in (int, float):
        raise RecordingError(path, number, f"t is {shorten(line.t)}; allowed is a number of seconds")
    return line


def _is_raw(value: Any) -> str | None:
    good = isinstance(value, str) or (isinstance(value, dict) and value.keys() == {"hex"} and is_hex(value["hex"]))
    return None if good else 'a string or {"hex": "…"}'


_VALUES: Mapping[str, Checker] = {
    "in": is_object,
    "in_raw": _is_raw,
    "out": is_object,
    "out_raw": _is_raw,
    "err": is_text,
    "end": lambda value: None if value in ("stdin", "stdout") else '"stdin" or "stdout"',
    "signal": is_signal,
    "exit": lambda value: None if value is None or type(value) is int else "an exit code, or null for none",
    "note": lambda value: None,
}


# ---- the older format ------------------------------------------------------------------------------------------------

_OLD_KINDS = {"in": "in", "in-raw": "in_raw", "out": "out", "err": "err", "note": "note"}


def convert(file: Path) -> Recording:
    """From the format with `t`, `dir` and `line`: a `meta` line becomes the head, `out-eof` and `exit` the end. The end
    of stdin was not recorded there, only noted: it stands where a note tells of it, else behind the last record."""
    meta: dict[str, Any] = {}
    lines: list[Line] = []
    for number, fields in _rows(file.read_bytes().decode("utf-8", "replace"), str(file)):
        kind, t = str(fields.get("dir")), fields.get("t")
        value: Any = fields.get("line")
        if kind == "meta" and isinstance(value, dict):
            meta = value
        elif kind == "out-eof":
            lines.append(Line("end", "stdout", t))
        elif kind == "exit" and isinstance(value, dict) and "rc" in value:
            lines.append(_checked(Line("exit", value["rc"], t), str(file), number, "rc"))
        elif kind in ("meta", "exit"):
            wanted = "an object" if kind == "meta" else 'an object with the exit code under "rc"'
            raise RecordingError(str(file), number, f"line is {shorten(value)}; allowed under {kind} is {wanted}")
        elif kind == "note" and value == "closing stdin":
            lines.append(Line("end", "stdin", t))
        elif kind in _OLD_KINDS:
            lines.append(_checked(Line(_OLD_KINDS[kind], value, t), str(file), number, "line"))
        else:
            known = ", ".join([*_OLD_KINDS, "meta", "out-eof", "exit"])
            raise RecordingError(str(file), number, f"dir is {shorten(kind)}; allowed are {known}")
    return Recording(tuple(meta.get("argv", ())), _old_start(meta), None, "", tuple(_with_end(lines)))


def _with_end(lines: list[Line]) -> list[Line]:
    if Line("end", "stdin") in [line._replace(t=None) for line in lines]:
        return lines
    at = max((index for index, line in enumerate(lines) if line.kind in ("in", "in_raw", "out")), default=-1) + 1
    return [*lines[:at], Line("end", "stdin"), *lines[at:]]


def _old_start(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The models by which it was recorded, pointed at the kit's own server."""
    providers = (meta.get("models") or {}).get("providers") or {}
    start: dict[str, Any] = {"in_memory": True} if "--no-session" in meta.get("argv", ()) else {}
    for name, provider in providers.items():
        path = "" if provider.get("api") == "anthropic-messages" else "/v1"
        start.setdefault("models", {})[name] = {**provider, "baseUrl": "{{url}}" + path}
        start.setdefault("provider", name)
        start.setdefault("model", provider["models"][0]["id"])
    return start | ({"settings": meta["settings"]} if "settings" in meta else {})


def text_of(lines: Iterable[Line]) -> str:
    """For a reader: one line each, cut to the width of a terminal."""
    marks = {"in": ">", "in_raw": ">", "out": "<", "out_raw": "<"}
    return "".join(f"{marks.get(line.kind, line.kind)} {shorten(line.value, 200)}\n" for line in lines)
