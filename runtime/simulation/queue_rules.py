"""Prompts and queued messages: what was accepted is said, or its end is told."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from actors.mail import Reload, Retire
from runtime.simulation.seen import Seen

_TOKEN = re.compile(r"\b[pq]\d+\b")


def queue(seen: Seen) -> Iterator[str]:
    """Each message that was queued is said once, or reported once as cleared, or it goes with its session: then the
    lists are empty, and there are no more such moments than hand-overs. A message that the disk refused is lost with
    its run, which tells so. No message comes twice, in any mode."""
    excused = seen.crashed or seen.house.disk.refused > 0
    said = Counter(text for entry in seen.log for text in _user_texts(entry))
    cleared: Counter[str] = Counter()
    waiting: set[str] = set()
    gone = 0
    records = seen.records
    for place, (record, _) in enumerate(records):
        if record["type"] == "response" and record.get("command") == "clear_queue" and record["success"]:
            cleared.update(record["data"]["steering"] + record["data"]["followUp"])
        if record["type"] != "queue_update":
            continue
        now = record["steering"] + record["followUp"]
        for text in (text for text, count in Counter(now).items() if count > 1):
            yield f"{text} is twice in the queue"
        missing = waiting - set(now)
        waiting = set(now)
        if missing and not _is_told(missing, records, place):
            gone += 1
            if now and not excused:
                yield f"{sorted(missing)} left the queue without a word"
    yield from (f"{text} was said {count} times" for text, count in said.items() if count > 1)
    yield from (f"{text} was cleared and said" for text in cleared if cleared[text] + said[text] > 1)
    if not excused and gone > _handovers(seen):
        yield f"the queue was emptied {gone} times for {_handovers(seen)} hand-overs"
    if waiting and seen.house.is_heard_out and not seen.crashed:
        yield f"{sorted(waiting)} were left in the queue without a word"


def _user_texts(entry: dict[str, Any]) -> list[str]:
    if entry["type"] != "message" or entry["message"]["role"] != "user":
        return []
    return [block["text"] for block in entry["message"]["content"]]


def _is_told(missing: set[str], records: list[tuple[dict[str, Any], int]], place: int) -> bool:
    """Whether the next record says them, or hands them back."""
    record: dict[str, Any] = records[place + 1][0] if place + 1 < len(records) else {"type": ""}
    if record["type"] == "message_start" and record["message"]["role"] == "user":
        return missing == {block["text"] for block in record["message"]["content"]}
    if record["type"] == "response" and record.get("command") == "clear_queue" and record["success"]:
        return missing <= set(record["data"]["steering"] + record["data"]["followUp"])
    return False


def _handovers(seen: Seen) -> int:
    return sum(isinstance(mail, Retire | Reload) for _, _, mail in seen.house.scheduler.trace)


def prompts(seen: Seen) -> Iterator[str]:
    """A message that was accepted is said, or it was in the queue, whose fate is another rule; one that was refused is
    neither. A crash may lose what was accepted, and a disk that refuses it ends its run with an error."""
    excused = seen.crashed or seen.house.disk.refused > 0
    said = {token for entry in seen.log for text in _user_texts(entry) for token in _TOKEN.findall(text)}
    queued: set[str] = set()
    for record, _ in seen.records:
        if record["type"] == "queue_update":
            queued |= {token for text in record["steering"] + record["followUp"] for token in _TOKEN.findall(text)}
    often = Counter(seen.commands())
    answers = {seen.key(response): response for response in seen.responses}
    for command in seen.sent_commands():
        if command["type"] not in ("prompt", "steer", "follow_up") or "id" not in command:
            continue
        token, answer = _TOKEN.findall(command["message"])[0], answers.get(seen.key_of(command))
        if answer is None or excused or often[seen.key_of(command)] > 1:
            continue
        if answer["success"] and token not in said | queued:
            yield f"{token} was accepted, but never said or queued"
        elif not answer["success"] and token in said | queued:
            yield f"{token} was refused, but said or queued"
