"""What holds in every case, whatever its steps say: one response for each command, deltas before it, runs that nest.

Pure: looks at a finished conversation. Each rule has a name, by which a case may waive it, and returns what breaks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from conformance.conversation import Conversation, key_of, keys
from conformance.driver import Record
from conformance.fault import Fault
from conformance.json_values import ABSENT, shorten

Built = dict[tuple[Any, str], list[str]]  # deltas by the index and the kind of their block
Check = Callable[[bytes], list[str]]  # what is wrong with a line of stdout by the schema


def broken(talk: Conversation, check: Check | None) -> list[Fault]:
    """Every rule that does not hold, each once, the first place where."""
    found = [_first(name, rule(talk)) for name, rule in RULES.items()]
    if check is not None:
        found.append(_first("schema", _by_schema(talk, check)))
    return [fault for fault in found if fault]


def _first(name: str, problems: Iterator[tuple[str, Any]]) -> Fault | None:
    for what, record in problems:
        return Fault(what, rule=name, came=shorten(record, 300) if record is not None else "")
    return None


def _by_schema(talk: Conversation, check: Check) -> Iterator[tuple[str, Any]]:
    for line in talk.lines:
        for problem in check(line):
            yield f"not as the schema says: {problem}", line.decode("utf-8", "replace")


def _process(talk: Conversation) -> Iterator[tuple[str, Any]]:
    """Lines that are one JSON object each, an end when stdin is closed, exit code 0."""
    yield from ((fault, None) for fault in talk.faults)


def _answered(talk: Conversation) -> Iterator[tuple[str, Any]]:
    for one in talk.unanswered(talk.records):
        yield f"no response to {shorten(one.line.decode('utf-8', 'replace'), 200)}", None


def _answered_once(talk: Conversation) -> Iterator[tuple[str, Any]]:
    """No response for what was not sent, and none twice."""
    sent = Counter(key for one in talk.sent for key in keys(one.id))
    for record in _responses(talk.records):
        key = key_of(record.get("id", ABSENT))
        sent[key] -= 1
        if sent[key] < 0:
            known = any(key_of(one.id) == key for one in talk.sent)
            yield ("a second response" if known else "a response with an id that was not sent"), record


def _envelope(talk: Conversation) -> Iterator[tuple[str, Any]]:
    for record in talk.records:
        if not isinstance(record.get("type"), str):
            yield "a record without a type", record
    for record in _responses(talk.records):
        if not isinstance(record.get("success"), bool):
            yield "a response whose success is no boolean", record
        elif not record["success"] and not isinstance(record.get("error"), str):
            yield "a refusal without an error text", record
        elif record["success"] and "error" in record:
            yield "a success with an error", record


def _responses(records: list[Record]) -> list[Record]:
    return [record for record in records if record.get("type") == "response"]


def _commands(talk: Conversation) -> Iterator[tuple[str, Any]]:
    """A response names the command that it answers."""
    named = {key_of(one.id): one.command for one in talk.sent if one.id is not ABSENT}
    twice = Counter(key_of(one.id) for one in talk.sent)
    for record in _responses(talk.records):
        key = key_of(record.get("id", ABSENT))
        wanted = named.get(key)
        if wanted is not None and twice[key] == 1 and record.get("command") != wanted:
            yield f"a response to {wanted} names another command", record


def _shell_deltas(talk: Conversation) -> Iterator[tuple[str, Any]]:
    """Deltas of a request come before its response, and joined they are its output."""
    twice = Counter(key_of(one.id) for one in talk.sent)
    said: dict[str, list[str]] = {}
    done: set[str] = set()
    for record in talk.records:
        key = key_of(record.get("id", ABSENT))
        if record.get("type") == "bash_execution_update":
            said.setdefault(key, []).append(str(record.get("delta")))
            if record.get("channel", "stdout") not in ("stdout", "stderr"):
                yield "a delta of no known channel", record
            if key in done:
                yield "a delta after the response of its request", record
        elif record.get("type") == "response" and record.get("command") in ("bash", "user_bash") and twice[key] == 1:
            done.add(key)
            data = record.get("data") or {}
            if key in said and data.get("truncated") is False and "".join(said[key]) != data.get("output"):
                yield "the output of a request is not what its deltas said", record


# ---- runs ----------------------------------------------------------------------------------------------------------

_IN_RUN = ("turn_start", "turn_end", "message_update", "tool_execution_start", "tool_execution_end")
_PAIRS = {"agent_start": "agent_end", "turn_start": "turn_end"}


def _by_process(talk: Conversation) -> Iterator[list[Record]]:
    edges = [*talk.starts, len(talk.records)]
    for first, last in pairwise(edges):
        yield talk.records[first:last]


def _runs(talk: Conversation) -> Iterator[tuple[str, Any]]:
    """agent_start and agent_end alternate, turns stand inside of runs, and nothing of a run comes outside of one."""
    for records in _by_process(talk):
        open_: set[str] = set()
        for record in records:
            type_ = record.get("type")
            if type_ in _IN_RUN and "agent_start" not in open_:
                yield f"{type_} outside of a run", record
            for begin, end in _PAIRS.items():
                if type_ == begin and begin in open_:
                    yield f"{begin} inside of what an earlier one began", record
                if type_ == end and begin not in open_:
                    yield f"{end} without {begin}", record
                open_ = open_ | {begin} if type_ == begin else open_ - {begin} if type_ == end else open_


def _settled(talk: Conversation) -> Iterator[tuple[str, Any]]:
    """agent_settled once for what began, and not inside of a run."""
    for records in _by_process(talk):
        began = running = False
        for record in records:
            type_ = record.get("type")
            if type_ == "agent_settled" and (running or not began):
                yield ("agent_settled inside of a run" if running else "a second agent_settled"), record
            began = type_ == "agent_start" or (began and type_ != "agent_settled")
            running = type_ == "agent_start" or (running and type_ != "agent_end")


def _messages(talk: Conversation) -> Iterator[tuple[str, Any]]:
    """message_start and message_end alternate, and the deltas between them build the text of the second."""
    for records in _by_process(talk):
        open_: dict[str, Any] | None = None
        built: Built = {}
        for record in records:
            type_, message = record.get("type"), record.get("message")
            if type_ == "message_start":
                if open_ is not None:
                    yield "message_start inside of another message", record
                open_, built = record, {}
            elif type_ == "message_update":
                if open_ is None or (open_.get("message") or {}).get("role") != "assistant":
                    yield "message_update outside of an assistant message", record
                _build(built, record.get("assistantMessageEvent"))
            elif type_ == "message_end":
                if open_ is None or _role(open_) != _role(record):
                    yield "message_end without its message_start", record
                elif not _agrees(built, message):
                    yield "the text of a message is not what its deltas said", record
                open_ = None


def _role(record: Record) -> Any:
    message = record.get("message")
    return message.get("role") if isinstance(message, dict) else None


_DELTAS = {"text_delta": "text", "thinking_delta": "thinking"}


def _build(built: Built, event: Any) -> None:
    if isinstance(event, dict) and event.get("type") in _DELTAS:
        key = (event.get("contentIndex"), _DELTAS[event["type"]])
        built.setdefault(key, []).append(str(event.get("delta")))


def _agrees(built: Built, message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or message.get("stopReason") in ("error", "aborted"):
        return True
    return all(
        not isinstance(index, int) or index >= len(content) or content[index].get(kind, text) == text
        for (index, kind), text in ((key, "".join(deltas)) for key, deltas in built.items())
    )


def _tools(talk: Conversation) -> Iterator[tuple[str, Any]]:
    """Every tool call that started ends once, and nothing of it comes later."""
    for records in _by_process(talk):
        running: set[Any] = set()
        for record in records:
            type_, call = record.get("type"), record.get("toolCallId")
            if type_ == "tool_execution_start":
                running.add(call)
            elif type_ in ("tool_execution_update", "tool_execution_end") and call not in running:
                yield f"{type_} of a call that does not run", record
            if type_ == "tool_execution_end":
                running.discard(call)


RULES: dict[str, Callable[[Conversation], Iterator[tuple[str, Any]]]] = {
    "process": _process,
    "answered": _answered,
    "answered-once": _answered_once,
    "envelope": _envelope,
    "command-named": _commands,
    "shell-deltas": _shell_deltas,
    "runs": _runs,
    "settled": _settled,
    "messages": _messages,
    "tools": _tools,
}
