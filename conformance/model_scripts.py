"""What a scripted model answers, as data: replies, the small constructors for them, and directives in the user's text.

A reply is the same for all three dialects; `sse_render` turns it into bytes. Pure but for `Gate`, which is the point
where a test and a stream meet.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, Literal, NamedTuple

Dialect = Literal["anthropic", "chat", "responses"]
Stop = Literal["stop", "length", "tool", "refusal"]


class Control(Enum):
    """What a stream does instead of sending a delta."""

    CUT = "close the connection in the middle of the body"
    HANG = "send nothing more until the client leaves"
    GARBAGE = "send an event whose data is not JSON"


class Signal(threading.Event):
    """An event whose wait fails loudly: AssertionError unless it is set within `timeout` seconds."""

    def wait(self, timeout: float | None = 20.0) -> bool:
        assert super().wait(timeout), f"not reached within {timeout} s"
        return True


class Gate:
    """A place in a stream: sets `reached` when the server gets there, and holds it until `open` is called."""

    def __init__(self) -> None:
        self.reached = Signal()
        self.opened = False
        self._guard = threading.Lock()
        self._wakers: list[Callable[[], None]] = []

    def arrive(self, wake: Callable[[], None]) -> None:
        """The server is there; `wake` is called once the gate is open."""
        with self._guard:
            self._wakers.append(wake)
            opened = self.opened
        self.reached.set()
        if opened:
            wake()

    def open(self) -> None:
        with self._guard:
            self.opened = True
            wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()


Step = float | Gate | Control  # a float is a pause in seconds
Delta = str | Step


class Usage(NamedTuple):
    """Tokens that the provider reports: `input` is without the cached ones."""

    input: int = 10
    output: int = 1
    cache_read: int = 0
    cache_write: int = 0


class Text(NamedTuple):
    deltas: tuple[Delta, ...]


class Thinking(NamedTuple):
    deltas: tuple[Delta, ...]
    signature: str


class ToolUse(NamedTuple):
    """`deltas` are pieces of the JSON of its arguments. Without an id the server makes one up."""

    name: str
    deltas: tuple[Delta, ...]
    id: str | None = None


class StreamError(NamedTuple):
    """An error event inside a stream that began well; nothing follows it."""

    message: str


Part = Text | Thinking | ToolUse | StreamError | Step


class Reply(NamedTuple):
    """One answer. `raw` (bytes as they are, and steps) or `status` other than 200 stand instead of `parts`."""

    parts: tuple[Part, ...] = ()
    stop: Stop | None = None  # None: "tool" if there is a call, else "stop"
    usage: Usage | None = None  # None: 10 in, one out for each delta
    status: int = 200
    headers: Mapping[str, str] | None = None
    body: bytes | None = None  # of an error; None: the dialect's own shape around `message`
    message: str = ""
    raw: tuple[bytes | Step, ...] | None = None
    answers: bool = True  # False: not even a status line is sent

    @property
    def gates(self) -> list[Gate]:
        inner: list[Any] = [*self.parts, *(self.raw or ())]
        for part in self.parts:
            inner += part.deltas if isinstance(part, Text | Thinking | ToolUse) else ()
        return [step for step in inner if isinstance(step, Gate)]

    @property
    def reached(self) -> Signal:
        """Set when the stream stands at its first gate."""
        return self.gates[0].reached

    def open(self) -> None:
        """Open all its gates."""
        for gate in self.gates:
            gate.open()

    def then(self, *others: Reply) -> Reply:
        """The parts of all of them in one answer; stop reason and usage are the last that were given."""
        joined = self
        for other in others:
            joined = joined._replace(
                parts=joined.parts + other.parts, stop=other.stop or joined.stop, usage=other.usage or joined.usage
            )
        return joined


def words(content: str) -> tuple[str, ...]:
    """One delta a word, each with the space after it; joined they are `content`."""
    return tuple(re.findall(r"\s*\S+\s?|\s+", content))


def pieces(content: str, count: int) -> tuple[str, ...]:
    """`content` in `count` pieces of nearly the same length (fewer when it is shorter than that)."""
    edges = [len(content) * i // count for i in range(count + 1)]
    return tuple(content[a:b] for a, b in pairwise(edges) if a < b)


def _cut(content: str, chunks: int | Sequence[Delta] | None) -> tuple[Delta, ...]:
    if chunks is None:
        return words(content)
    return pieces(content, chunks) if isinstance(chunks, int) else tuple(chunks)


def text(
    content: str = "",
    *,
    chunks: int | Sequence[Delta] | None = None,
    pause: float = 0,
    stop: Stop | None = None,
    usage: Usage | None = None,
) -> Reply:
    """Text, a delta a word, or in `chunks` pieces, or in just these deltas (`content` is not used then), with `pause`
    seconds after each."""
    deltas = _cut(content, chunks)
    if pause:
        deltas = tuple(step for delta in deltas for step in (delta, pause))
    return Reply((Text(deltas),), stop=stop, usage=usage)


def thinking(
    content: str,
    answer: str = "",
    *,
    signature: str = "c2lnbmF0dXJl",
    chunks: int | Sequence[Delta] | None = None,
    usage: Usage | None = None,
) -> Reply:
    """A thought, and a text after it if `answer` is not empty."""
    blocks: tuple[Part, ...] = (Thinking(_cut(content, chunks), signature),)
    return Reply(blocks + ((Text(words(answer)),) if answer else ()), usage=usage)


def tool(
    name: str,
    args: Mapping[str, Any] | str | None = None,
    *,
    id: str | None = None,
    chunks: int = 2,
    usage: Usage | None = None,
) -> Reply:
    """One tool call. `args` as a string is sent as it is, JSON or not."""
    raw = args if isinstance(args, str) else json.dumps(args or {}, ensure_ascii=False)
    return Reply((ToolUse(name, pieces(raw, chunks), id),), usage=usage)


def tools(calls: Iterable[tuple[str, Mapping[str, Any] | str] | Reply], *, usage: Usage | None = None) -> Reply:
    """Several calls in one answer: `(name, args)` pairs or what `tool` returns."""
    whole = Reply().then(*(call if isinstance(call, Reply) else tool(*call) for call in calls))
    return whole._replace(usage=usage)


def error(
    status: int,
    body: Mapping[str, Any] | str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    message: str = "",
) -> Reply:
    """An HTTP error. Without a body: the dialect's usual one for this status, with `message` if given."""
    if isinstance(body, Mapping):
        body = json.dumps(body)
    raw = body.encode() if isinstance(body, str) else body
    return Reply(status=status, headers=headers, body=raw, message=message)


def overflow() -> Reply:
    """The prompt does not fit into the context window."""
    return error(400, message="prompt is too long: 213462 tokens > 200000 maximum")


def stream_error(before: str = "partial answer", message: str = "Overloaded") -> Reply:
    """Some text, then an error event inside the stream."""
    return Reply((Text(words(before)), StreamError(message)))


def raw(*steps: bytes | Step, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A body of these bytes, each piece a chunk of its own, with pauses (seconds), gates and controls between them."""
    return Reply(raw=steps, status=status, headers=headers)


def hang(before: str = "") -> Reply:
    """The head of the answer, the text `before`, then silence."""
    return Reply((Text((*words(before), Control.HANG)),) if before else (Control.HANG,))


def hang_before_head() -> Reply:
    """No answer at all."""
    return Reply(answers=False)


def drop(after: int = 3) -> Reply:
    """`after` deltas, then the connection is cut."""
    return Reply((Text((*(f"d{i} " for i in range(after)), Control.CUT)),))


def gate(before: str | Reply = "", after: str | Reply = "") -> Reply:
    """An answer that stops between `before` and `after`: wait for `reply.reached`, go on with `reply.open()`. Two
    strings are one text; replies keep their own parts on each side."""
    if isinstance(before, str) and isinstance(after, str):
        return Reply((Text((*words(before), Gate(), *words(after))),))
    return _side(before).then(Reply((Gate(),)), _side(after))


def _side(side: str | Reply) -> Reply:
    if isinstance(side, Reply):
        return side
    return text(side) if side else Reply()


# ---- directives: the newest user text says what to answer ----------------------------------------------------------


class Conversation(NamedTuple):
    """What a request asks: the newest user text, where it stands, and how many model answers came since."""

    text: str
    position: int
    answered: int


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = [block for block in content or [] if isinstance(block, dict)]
    return [str(block.get("text", "")) for block in blocks if block.get("type") in ("text", "input_text")]


def read_conversation(body: Any) -> Conversation:
    """Of a request body of any dialect. Adjacent items of the assistant are one answer."""
    items = (body.get("messages") or body.get("input") or []) if isinstance(body, dict) else []
    if isinstance(items, str):
        return Conversation(items, 0, 0)
    newest, inside = Conversation("", 0, 0), False
    for position, item in enumerate(item for item in items if isinstance(item, dict)):
        said = [one for one in _texts(item.get("content")) if one.strip()] if item.get("role") == "user" else []
        mine = item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning")
        if said:
            newest = Conversation(said[-1], position, 0)
        elif mine and not inside:
            newest = newest._replace(answered=newest.answered + 1)
        inside = mine
    return newest


def _numbers(rest: str, *defaults: float) -> list[float]:
    given = [float(word) for word in rest.split()[: len(defaults)]]
    return given + list(defaults[len(given) :])


def _some_tokens(rest: str) -> Reply:
    return text(chunks=["tok "] * int(_numbers(rest, 1)[0]))


def _slow(rest: str) -> Reply:
    count, ms = _numbers(rest, 10, 50)
    return text(chunks=[f"w{i} " for i in range(int(count))], pause=ms / 1000)


def _call(rest: str) -> Reply:
    name, _, args = rest.partition(" ")
    return tool(name, args.strip() or "{}")


def _calls(rest: str) -> Reply:
    count, _, call = rest.partition(" ")
    return tools(_call(call.replace("$i", str(i))) for i in range(int(count)))


def _error(rest: str) -> Reply:
    code, _, message = rest.partition(" ")
    return error(int(code), message=message)


DIRECTIVES: dict[str, Callable[[str], Reply]] = {
    "SAY": text,
    "TOKENS": _some_tokens,
    "SLOW": _slow,
    "TOOL": _call,
    "TOOLS": _calls,
    "THINK": lambda rest: thinking(rest or "hm", "thought"),
    "ERR": _error,
    "CTXOVERFLOW": lambda rest: overflow(),
    "STREAMERR": lambda rest: stream_error(),
    "HANG": hang,
    "HANGPRE": lambda rest: hang_before_head(),
    "DROP": lambda rest: drop(int(rest or 3)),
    "BADSSE": lambda rest: Reply((Text(("x ", Control.GARBAGE)),)),
    "EMPTY": lambda rest: Reply(usage=Usage(10, 0)),
    "LENGTH": lambda rest: text(rest, stop="length"),
}
_DIRECTIVE = re.compile(rf"({'|'.join(DIRECTIVES)}|USAGE)(\s|$)")
_PASSING = re.compile(r"ERR \d+ x(\d+)\s*")


class Plan(NamedTuple):
    """A user text read as directives: each step answers one model call, after the errors that stand before it."""

    steps: list[tuple[list[str], str]]
    usage: Usage | None


def read_plan(content: str) -> Plan | None:
    """None when the first line is no directive. A line that is none belongs to the one above it."""
    lines: list[str] = []
    for line in content.strip().split("\n"):
        if _DIRECTIVE.match(line):
            lines.append(line.rstrip())
        elif lines:
            lines[-1] += "\n" + line
        else:
            return None
    steps: list[tuple[list[str], str]] = [([], "SAY done")]
    usage = None
    for line in lines:
        verb, _, rest = line.partition(" ")
        if verb == "USAGE":
            usage = Usage(*(int(number) for number in rest.split()))
        elif passing := _PASSING.match(line):
            steps[-1][0].extend([line.replace(f" x{passing[1]}", "", 1)] * int(passing[1]))
        else:
            steps[-1:] = [(steps[-1][0], line), ([], "SAY done")]
    return Plan(steps, usage)


class TextScript:
    """Answers by the newest user text. Lines are directives, one for each model call of the turn, then `SAY done`;
    other text is echoed. `ERR code xN [message]` fails N times and then lets the line below it answer; `USAGE in out
    [cache_read [cache_write]]` is no step but holds for all of them; `$i` in `TOOLS` is the index of the call."""

    def __init__(self) -> None:
        self._failed: dict[tuple[Conversation, str], int] = {}

    def reply(self, body: Any) -> Reply:
        """The answer to a request body. ValueError when a directive cannot be read."""
        talk = read_conversation(body)
        plan = read_plan(talk.text)
        if plan is None:
            return text(f"echo: {talk.text.strip()[:80]}")
        passing, directive = plan.steps[min(talk.answered, len(plan.steps) - 1)]
        failed = self._failed.pop((talk, directive), 0)
        if failed < len(passing):
            self._failed[talk, directive] = failed + 1
            directive = passing[failed]
        verb, _, rest = directive.partition(" ")
        try:
            reply = DIRECTIVES[verb](rest.strip())
        except (ValueError, TypeError) as problem:
            raise ValueError(f"the directive {directive[:80]!r} cannot be read: {problem}") from problem
        return reply._replace(usage=reply.usage or plan.usage)
