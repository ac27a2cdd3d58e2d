"""Responses: exactly one a command, in the order of the lane, after what they tell of has been written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from protocol.commands import ORDERED
from runtime.root import UNANSWERED
from runtime.simulation.seen import Key, Seen


def responses(seen: Seen) -> Iterator[str]:
    """Exactly one a command. Of what the client wrote after its signal, or after the crash that ends the program, or
    when nobody read stdout any more, or when the Writer died: at most one. A signal during the end after a crash ends
    the program at once. A crash during the end may lose some: a known gap, see docs/simulation.md."""
    client = seen.house.client
    heard = len(client.sent) if client.heard is None else client.heard
    if seen.house.heard_before_crash is not None and seen.is_fatal:
        heard = 0 if client.heard is not None else min(heard, seen.house.heard_before_crash)
    if seen.house.crashed_while_ending or seen.house.is_cut_off:
        heard = 0
    certain = Counter(seen.commands(heard))
    possible = Counter(seen.commands())
    got = Counter(seen.key(response) for response in seen.responses)
    if not (seen.house.sink.broken or seen.house.sink.stopped or seen.struck == "writer"):
        yield from (f"no response to {_shown(key)}" for key in (certain - got))
    if not seen.crashed:
        late = [response for response in seen.responses if response.get("error") == UNANSWERED]
        yield from (f"no response to {_shown(seen.key(response))} before the end" for response in late)
    yield from (f"a response too many to {_shown(key)}" for key in (got - possible))


def _shown(key: Key) -> str:
    return f"{key[1]} (id {key[0].decode() or 'none'})"


def lanes(seen: Seen) -> Iterator[str]:
    """The responses of the ordered lane leave in the order of the wire, but for a prompt that waits for a compaction.
    After a crash the lost ones come late."""
    if seen.crashed:
        return
    waits = any(record["type"] == "compaction_start" for record, _ in seen.records)
    sent = seen.commands()
    often = Counter(sent)
    ordered = (ORDERED | {None, "parse"}) - ({"prompt"} if waits else set())
    lane = [key for key in sent if often[key] == 1 and key[1] in ordered]
    places = {seen.key(record): place for place, (record, _) in enumerate(seen.records) if record["type"] == "response"}
    last = -1
    before: Key = (b"", None)
    for key in lane:
        place = places.get(key, last)
        if place < last:
            yield f"{_shown(key)} was answered before {_shown(before)}"
            return
        last, before = place, key


_ENTRY_OF = {"set_session_name": ("session_info", "name"), "set_label": ("label", "label")}


def told_after_written(seen: Seen) -> Iterator[str]:
    """What a success promises to keep is in the journal before the response leaves."""
    often = Counter(seen.commands())
    asked = {seen.key_of(command): command for command in seen.sent_commands() if "id" in command}
    kept: dict[tuple[str, str], int] = {}
    for place, entry in enumerate(seen.log):
        kept.setdefault((entry["type"], _told(entry)), place)
    for record, journaled in seen.records:
        if record["type"] != "response" or not record["success"]:
            continue
        command = asked.get(seen.key(record))
        promised = None if command is None or often[seen.key(record)] > 1 else _promised(record, command)
        if promised is not None and kept.get(promised, journaled) >= journaled:
            yield f"{_shown(seen.key(record))} was answered before {promised[1]} was written"


def _promised(record: dict[str, Any], command: dict[str, Any]) -> tuple[str, str] | None:
    name = record["command"]
    if name in _ENTRY_OF:
        kind, field = _ENTRY_OF[name]
        return kind, command[field]
    if name in ("bash", "user_bash"):
        return "message", command["command"]
    return None


def _told(entry: dict[str, Any]) -> str:
    """What an entry can be known by."""
    if entry["type"] == "message":
        return str(entry["message"].get("command", ""))
    return str(entry.get("name") or entry.get("label") or "")
