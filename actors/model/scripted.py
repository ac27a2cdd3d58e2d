"""A model that is a script: replies without a key, a network or a bill, for demos, tests and CI.

The api is `scripted`. A reply comes from the n-th record of a JSON Lines file (base URL `scripted:<path>`), or, with
no file, from the newest user text. Either way it is rendered as the bytes that an Anthropic server would send, with
pauses, so that everything behind it is the real thing. The format is described in docs/scripted-model.md.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from actors.model.anthropic import AnthropicReply
from actors.model.output_limit import prompt_tokens
from actors.model.prompt import Credential, HttpRequest, ModelPrompt, RequestOptions, encode_body
from actors.model.scripted_source import ScriptedSource as ScriptedSource
from protocol.messages import AssistantMessage, TextContent, UserMessage
from protocol.model import Model

_VERBS = ("SAY", "THINK", "TOOL", "WAIT", "PACE", "FAIL", "LENGTH")
_WORDS = re.compile(r"\s*\S+\s*?(?=\s|\Z)|\s+\Z")
_ECHO_CHARS = 80
_PAST_END = "The script of the scripted model is over"


class Cue(Struct, frozen=True):
    """What a reply depends on: the newest user text, the replies since it, and a rough size of the prompt."""

    text: str
    replies: int
    tokens: int


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of a script."""

    name: str
    arguments: dict[str, Any] = {}


class Record(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One line of a script: thinking, then text, then calls, then the error. `status` makes the error an HTTP one.
    `after_end` is a setting of the whole script and answers nothing."""

    text: str = ""
    thinking: str = ""
    tool: Call | None = None
    tools: tuple[Call, ...] = ()
    delay_ms: int = 0
    error: str = ""
    status: int = 200
    stop: Literal["stop", "length"] = "stop"
    after_end: Literal["repeat", "error", ""] = ""


class Step(NamedTuple):
    """Wait `pause_ms`, then send `data`."""

    pause_ms: int
    data: bytes


class Plan(NamedTuple):
    """A whole answer: the HTTP status and the body in timed pieces."""

    status: int
    steps: list[Step]


class Part(NamedTuple):
    """A piece of a reply before rendering. `pause_ms` comes before each of its deltas."""

    kind: Literal["text", "thinking", "tool", "wait", "error", "length"]
    text: str = ""
    arguments: dict[str, Any] = {}  # noqa: RUF012 - never changed
    pause_ms: int = 0


def build_request(model: Model, prompt: ModelPrompt, options: RequestOptions, credential: Credential) -> HttpRequest:
    """Needs no credential."""
    cue = cue_of(prompt)
    url = model.base_url if model.base_url.startswith("scripted:") else "scripted:"
    return HttpRequest(url, (), encode_body({"text": cue.text, "replies": cue.replies, "tokens": cue.tokens}))


def reader(model: Model, now_ms: int) -> AnthropicReply:
    return AnthropicReply(model, now_ms)


def cue_of(prompt: ModelPrompt) -> Cue:
    replies = 0
    for message in reversed(prompt.messages):
        if isinstance(message, UserMessage):
            text = _text_of(message)
            if text.strip():
                return Cue(text, replies, prompt_tokens(prompt))
        elif isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
            replies += 1
    return Cue("", replies, prompt_tokens(prompt))


def read_script(data: bytes) -> tuple[Record, ...]:
    """The records of a script file. Raises ValueError that names the line; blank lines and `//` lines are skipped."""
    records: list[Record] = []
    decode = msgspec.json.Decoder(Record).decode
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip() and not line.lstrip().startswith(b"//"):
            try:
                records.append(decode(line))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {str(error)[:160]}") from None
    if not any(not record.after_end for record in records):
        raise ValueError("it has no record that answers a request")
    return tuple(records)


def plan_reply(script: tuple[Record, ...], cue: Cue, n: int) -> Plan:
    """The answer to the n-th request (from 0) of a process. An empty `script` means that `cue` is the script."""
    if not script:
        return Plan(200, _rendered(_spoken(cue), cue, n))
    records = [record for record in script if not record.after_end]
    is_over = n >= len(records) and any(record.after_end == "error" for record in script)
    record = Record(error=_PAST_END) if is_over else records[min(n, len(records) - 1)]
    if record.status >= 400:
        return Plan(record.status, [Step(record.delay_ms, _error_json(record.error))])
    return Plan(200, _rendered(_recorded(record), cue, n))


def _recorded(record: Record) -> list[Part]:
    pause = record.delay_ms
    parts = [Part("thinking", record.thinking, pause_ms=pause)] if record.thinking else []
    if record.text:
        parts.append(Part("text", record.text, pause_ms=pause))
    for call in (*([record.tool] if record.tool else []), *record.tools):
        parts.append(Part("tool", call.name, call.arguments, pause))
    if record.error:
        parts.append(Part("error", record.error, pause_ms=pause))
    return [*parts, Part("length")] if record.stop == "length" else parts


def _spoken(cue: Cue) -> list[Part]:
    """The parts that the user's own lines ask for in this reply. Tool calls end a reply; what follows them is the
    next one, which the tools' results bring about."""
    lines = [line.strip() for line in cue.text.strip().split("\n") if line.strip()]
    if not lines or lines[0].partition(" ")[0] not in _VERBS:
        shown = " ".join(cue.text.split())[:_ECHO_CHARS]
        return [Part("text", f"echo: {shown}" if cue.replies == 0 else "done")]
    replies: list[list[Part]] = [[]]
    pace = 0
    for line in lines:
        verb, _, rest = line.partition(" ")
        if verb == "PACE":
            pace = _milliseconds(rest)
            continue
        if replies[-1] and replies[-1][-1].kind == "tool" and verb != "TOOL":
            replies.append([])
        replies[-1].append(_part(verb, rest, pace))
    return replies[cue.replies] if cue.replies < len(replies) else [Part("text", "done")]


def _part(verb: str, rest: str, pace: int) -> Part:
    if verb == "TOOL":
        name, _, arguments = rest.partition(" ")
        try:
            return Part("tool", name, msgspec.json.decode(arguments or "{}", type=dict[str, Any]), pace)
        except (ValueError, RecursionError):
            return Part("error", f"TOOL {name}: the arguments are no JSON object: {arguments[:80]}")
    if verb == "WAIT":
        return Part("wait", pause_ms=_milliseconds(rest))
    if verb in ("THINK", "FAIL"):
        return Part("thinking" if verb == "THINK" else "error", rest, pause_ms=pace)
    if verb == "LENGTH":
        return Part("length")
    return Part("text", rest if verb == "SAY" else f"{verb} {rest}".strip(), pause_ms=pace)


def _milliseconds(text: str) -> int:
    return min(int(text), 3_600_000) if text.strip().isdecimal() else 0


def _rendered(parts: list[Part], cue: Cue, n: int) -> list[Step]:
    usage = {"input_tokens": cue.tokens, "output_tokens": 0}
    start = {"id": f"scripted_{n + 1}", "type": "message", "role": "assistant", "content": [], "usage": usage}
    steps = [Step(0, _event("message_start", message=start))]
    index = wait = sent = 0
    for part in parts:
        if part.kind == "wait":
            wait += part.pause_ms
        elif part.kind == "error":
            return [*steps, Step(wait + part.pause_ms, b"event: error\ndata: " + _error_json(part.text) + b"\n\n")]
        elif part.kind != "length":
            block = _block_steps(part, index, f"scripted_{n + 1}_{index}")
            steps.append(Step(block[0].pause_ms + wait, block[0].data))
            steps += block[1:]
            index, wait, sent = index + 1, 0, sent + len(block) - 2
    reason = _stop_reason(parts)
    end = _event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": sent})
    return [*steps, Step(wait, end + _event("message_stop"))]


def _stop_reason(parts: list[Part]) -> str:
    kinds = {part.kind for part in parts}
    if "length" in kinds:
        return "max_tokens"
    return "tool_use" if "tool" in kinds else "end_turn"


def _block_steps(part: Part, index: int, call_id: str) -> list[Step]:
    block: dict[str, Any] = {"type": part.kind, part.kind: ""}
    delta_type, key, pieces = f"{part.kind}_delta", str(part.kind), _words(part.text)
    if part.kind == "tool":
        block = {"type": "tool_use", "id": call_id, "name": part.text, "input": {}}
        delta_type, key = "input_json_delta", "partial_json"
        pieces = [msgspec.json.encode(part.arguments).decode()]
    steps = [Step(0, _event("content_block_start", index=index, content_block=block))]
    for piece in pieces:
        delta = {"type": delta_type, key: piece}
        steps.append(Step(part.pause_ms, _event("content_block_delta", index=index, delta=delta)))
    return [*steps, Step(0, _event("content_block_stop", index=index))]


def _words(text: str) -> list[str]:
    """`text` in pieces of one word, the white space before it included."""
    return _WORDS.findall(text)


def _event(kind: str, **fields: Any) -> bytes:
    data = msgspec.json.encode({"type": kind, **fields})
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _error_json(text: str) -> bytes:
    return msgspec.json.encode({"type": "error", "error": {"type": "api_error", "message": text}})


def _text_of(message: UserMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(block.text for block in message.content if isinstance(block, TextContent))
