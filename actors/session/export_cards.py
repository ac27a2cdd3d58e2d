"""One card for each entry of a session: what the page shows of it, and its line in the page's tree.

Pure. Cards come in the order of the file; the card of a tool's result hangs below the call that asked for it. What
cannot be read is shown as such and never ends the export. Source: `sessions.md` 9.
"""

from __future__ import annotations

from msgspec import UNSET

from actors.session.export_entries import LINE, Card, fill_entry, fill_summary, one_line
from actors.session.export_parts import Part, Parts, call_title, shows_diff, skill_block
from actors.session.naming import epoch_ms
from actors.session.stored import known_role, message_head, read_message, text_of
from actors.session.tree import Entry, Tree
from protocol.codec import BadJson, decode_any, encode
from protocol.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CustomMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

_FAR = 300  # steps from a result up to its call


def cards(tree: Tree, parents: list[int]) -> list[Card]:
    """The cards of all entries, by position. `parents` are the positions above, -1 for a root."""
    return _Maker(tree, parents).cards()


class _Maker:
    def __init__(self, tree: Tree, parents: list[int]) -> None:
        self._tree = tree
        self._parents = parents
        self._parts = Parts()
        self._messages = [_message(entry) for entry in tree.entries]
        self._calls: dict[tuple[int, str], tuple[ToolCall, Part]] = {}

    def cards(self) -> list[Card]:
        made = [self._card(position, entry) for position, entry in enumerate(self._tree.entries)]
        for position, message in enumerate(self._messages):
            if isinstance(message, ToolResultMessage):
                self._fill_result(made[position], message)
        return made

    def _card(self, position: int, entry: Entry) -> Card:
        head = entry.head
        card = Card(position, head.id, head.type, time=head.timestamp[:19].replace("T", " "))
        message = self._messages[position]
        if message is not None:
            self._fill_message(card, message)
        elif head.type in ("message", "custom_message"):
            card.kind, card.title = "other", "Message that cannot be read"
            card.line = card.title
        else:
            fill_entry(card, entry, self._parts)
        card.line = one_line(card.line)
        return card

    # ---- messages ------------------------------------------------------------------------------------------------

    def _fill_message(self, card: Card, message: Message) -> None:
        match message:
            case UserMessage():
                self._fill_user(card, message)
            case AssistantMessage():
                self._fill_assistant(card, message)
            case ToolResultMessage():
                card.kind, card.failed, card.title = "tool", message.is_error, message.tool_name or "tool"
            case BashExecutionMessage():
                _fill_bash(card, message, self._parts)
            case CustomMessage():
                card.kind, card.title, card.quiet = "custom", message.custom_type, not message.display
                card.parts = self._parts.content(message.content)
                card.line = f"[{message.custom_type}] {text_of(message.content)[: LINE * 4]}"
            case BranchSummaryMessage():
                fill_summary(card, message.summary, self._parts)

    def _fill_user(self, card: Card, message: UserMessage) -> None:
        card.kind, card.title = "user", "User"
        card.parts = self._parts.content(message.content)
        text = text_of(message.content)
        skill = skill_block(text)
        card.line = f"[{skill[0]}] {skill[3]}" if skill else text[: LINE * 4]
        if not card.line.strip():
            card.line = "(image)" if card.parts else "(empty)"

    def _fill_assistant(self, card: Card, message: AssistantMessage) -> None:
        card.kind, card.title, card.meta = "assistant", "Assistant", _meta(message)
        texts: list[str] = []
        for block in message.content:
            match block:
                case TextContent():
                    texts.append(block.text[: LINE * 4])
                    card.parts += self._parts.text(block.text)
                case ThinkingContent():
                    card.parts += self._parts.thinking(block.thinking)
                case ToolCall():
                    part = self._parts.call(block)
                    self._calls[card.position, block.id] = (block, part)
                    card.parts.append(part)
        _judge(card, message)
        calls = message.tool_calls
        text = " ".join(texts).strip()
        card.tool_only = bool(calls) and not text and not card.failed
        card.line = text or ", ".join(f"[{call.name}]" for call in calls) or card.line or "(no text)"

    def _fill_result(self, card: Card, message: ToolResultMessage) -> None:
        found = self._call_of(card.position, message.tool_call_id)
        call, part = found if found is not None else (None, None)
        card.parts = self._parts.result(message, call)
        if part is not None:
            card.nested = True
            part.results.append(card)
            if shows_diff(message):
                part.parts = []
        title = call.arguments.get("command") if call and call.name == "bash" else call_title(call) if call else ""
        card.line = one_line(f"{card.title}: {str(title)[: LINE * 4]}" if title else card.title)

    def _call_of(self, position: int, call_id: str) -> tuple[ToolCall, Part] | None:
        for _ in range(_FAR):
            position = self._parents[position]
            if position < 0:
                return None
            if (position, call_id) in self._calls:
                return self._calls[position, call_id]
        return None


def _message(entry: Entry) -> Message | None:
    """The message of an entry that holds one; `None` also for one that cannot be read."""
    head = entry.head
    time = epoch_ms(head.timestamp)
    try:
        if head.type == "custom_message":
            content = [] if head.content is UNSET else decode_any(bytes(head.content))
            stored = {"role": "custom", "customType": head.custom_type or "", "content": content, "timestamp": time}
            return read_message(encode({**stored, "display": head.display is not False}), time)
        if head.type != "message" or head.message is UNSET:
            return None
        raw = bytes(head.message)
        return read_message(raw, time) if known_role(message_head(raw).role) else None
    except (BadJson, RecursionError, ValueError, TypeError):
        return None


def _meta(message: AssistantMessage) -> str:
    usage = message.usage
    shown = [f"{message.provider}/{message.model}".strip("/")]
    if usage.input or usage.output or usage.cache_read:
        shown.append(f"{usage.input + usage.cache_read + usage.cache_write:,} in, {usage.output:,} out")
    if usage.cost.total:
        shown.append(f"${usage.cost.total:.4f}")
    return " · ".join(part for part in shown if part)


def _judge(card: Card, message: AssistantMessage) -> None:
    """What went wrong, as the last part."""
    if message.stop_reason not in ("error", "aborted", "length"):
        return
    card.failed = message.stop_reason != "length"
    told = message.error_message if isinstance(message.error_message, str) else ""
    plain = {"error": "Error", "aborted": "Aborted", "length": "Cut off at the output limit"}[message.stop_reason]
    card.line = f"{plain}: {told}" if told else plain
    card.parts.append(Part("error", card.line))


def _fill_bash(card: Card, message: BashExecutionMessage, parts: Parts) -> None:
    ended = "cancelled" if message.cancelled else f"exit code {message.exit_code}" if message.exit_code else ""
    card.kind, card.title, card.meta = "bash", "Shell", ended
    card.failed = bool(ended)
    card.parts = [Part("command", body_html=parts.code(message.command, "bash", "ls").body_html)]
    card.parts += parts.terminal(message.output)
    if message.truncated:
        card.parts.append(Part("note", f"Output truncated. Full output: {message.full_output_path or 'not kept'}"))
    card.line = f"$ {message.command[: LINE * 4]}"
