"""Compares two conversations side by side, whatever the ids, times, paths and the borders of chunks.

Pure. Records that belong together are compared in lanes of their own, since only the order inside a lane is anybody's
promise: each response, the deltas of each shell request, and the events of the session.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from conformance.json_values import ABSENT, join, same, shorten

Record = dict[str, Any]
_IDS = frozenset({"id", "entryId", "parentId", "sessionId", "toolCallId", "leafId", "firstKeptEntryId", "responseId"})
_TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d[-:]\d\d[-:]\d\d[-.\d]*Z?")
_PATHS = re.compile(r"(?<![\w.:/>])(?:/[\w.@+~<>-]+){2,}/?")
_UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HOSTS = re.compile(r"127\.0\.0\.1:\d+")
_NUMBERS = frozenset({"usage", "cost", "tokens", "contextUsage", "timestamp", "wallTimeMs", "delayMs"})
_CHANGING = frozenset({"tool_execution_update"})  # how many there are is a matter of timing


class Different(NamedTuple):
    """One difference: in which lane, which record, where in it, and both sides as text."""

    lane: str
    record: str
    path: str
    left: str
    right: str


def compare(left: Sequence[Record], right: Sequence[Record], ignore: Collection[str] = ()) -> list[Different]:
    """All differences. `ignore` are types of records that are left out on both sides."""
    lanes, others = _lanes(left, ignore), _lanes(right, ignore)
    names = [*lanes, *(name for name in others if name not in lanes)]
    return [one for name in names for one in _compare_lane(name, lanes.get(name, []), others.get(name, []))]


def _lanes(records: Sequence[Record], ignore: Collection[str]) -> dict[str, list[Record]]:
    lanes: dict[str, list[Record]] = {}
    for record in records:
        type_ = record.get("type")
        if type_ in ignore or type_ in _CHANGING:
            continue
        id_ = shorten(record.get("id", ABSENT))
        if type_ == "response":
            lane = f"response to {id_}" if "id" in record else "responses without an id"
        else:
            lane = f"shell request {id_}" if type_ == "bash_execution_update" else "events"
        _append(lanes.setdefault(lane, []), record)
    return lanes


def _append(lane: list[Record], record: Record) -> None:
    """Add a record, or join it to the last when both are pieces of the same text."""
    last = lane[-1] if lane else {}
    key, last_key = _piece(record), _piece(last)
    if key is not None and key == last_key:
        lane[-1] = _joined(last, record)
    else:
        lane.append(record)


def _piece(record: Record) -> tuple[Any, ...] | None:
    """What a delta is a piece of; None for what is none."""
    event = record.get("assistantMessageEvent")
    if isinstance(event, dict) and str(event.get("type")).endswith("_delta"):
        return event.get("type"), event.get("contentIndex")
    if record.get("type") == "bash_execution_update":
        return record.get("channel"), shorten(record.get("id", ABSENT))
    return None


def _joined(one: Record, other: Record) -> Record:
    if "assistantMessageEvent" not in one:
        return {**one, "delta": f"{one.get('delta')}{other.get('delta')}"}
    event, more = one["assistantMessageEvent"], other["assistantMessageEvent"]
    return {**one, "assistantMessageEvent": {**event, "delta": f"{event.get('delta')}{more.get('delta')}"}}


def _name(record: Record) -> str:
    """What kind of record it is: only those of one kind are set against each other."""
    message, event = record.get("message"), record.get("assistantMessageEvent")
    more = [record.get("command"), record.get("toolName"), record.get("channel")]
    more += [message.get("role")] if isinstance(message, dict) else []
    more += [event.get("type")] if isinstance(event, dict) else []
    return " ".join(str(word) for word in (record.get("type"), *more) if word is not None)


def _compare_lane(lane: str, left: Sequence[Record], right: Sequence[Record]) -> Iterator[Different]:
    names, others = [_name(record) for record in left], [_name(record) for record in right]
    for kind, a, b, c, d in SequenceMatcher(None, names, others, autojunk=False).get_opcodes():
        if kind == "equal":
            for one, other in zip(left[a:b], right[c:d], strict=True):
                for path, mine, theirs in differences(normal(one), normal(other)):
                    yield Different(lane, _name(one), path, mine, theirs)
            continue
        yield from (Different(lane, _name(one), "", shorten(one, 200), "nothing") for one in left[a:b])
        yield from (Different(lane, _name(one), "", "nothing", shorten(one, 200)) for one in right[c:d])


def normal(value: Any, key: str = "") -> Any:
    """A value without what differs from run to run."""
    if key in _NUMBERS:
        return f"<{key}>"
    if isinstance(value, dict):
        keep = value.get("type") == "response"  # its id is the client's own
        return {k: v if keep and k == "id" else normal(v, k) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [normal(one) for one in value]
    if not isinstance(value, str):
        return value
    if key in _IDS:
        return "<id>"
    return _HOSTS.sub("<host>", _PATHS.sub("<path>", _TIMES.sub("<time>", _UUIDS.sub("<id>", value))))


def differences(left: Any, right: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Every place where two values differ; a key that only one has is told as such."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            yield from differences(left.get(key, ABSENT), right.get(key, ABSENT), join(path, key))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differences(one, other, join(path, str(index)))
    elif left is ABSENT or right is ABSENT or not same(left, right):
        yield path, shorten(left, 200), shorten(right, 200)


def as_text(found: Sequence[Different], left: str, right: str) -> str:
    """Both sides under each other, by lane."""
    if not found:
        return "no difference\n"
    lines, lane = [f"<  {left}", f">  {right}"], ""
    for one in found:
        if one.lane != lane:
            lane = one.lane
            lines += ["", lane]
        lines += [f"  {one.record}" + (f": {one.path}" if one.path else ""), f"    < {one.left}", f"    > {one.right}"]
    return "\n".join([*lines, "", f"{len(found)} differences", ""])
