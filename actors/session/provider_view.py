"""What a model is shown of a conversation: user, assistant and tool-result messages, each call with one result.

The agent layer, common to all providers; what one provider needs beyond it is its adapter's. Pure. The texts made here
exist in this view only, never in the file. Source: `sessions.md` 5.5 steps 1 to 3, `rpc.md` 3.5 and 5.4.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from protocol.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CustomMessage,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)

ProviderMessage = UserMessage | AssistantMessage | ToolResultMessage

INTERRUPTED = (
    "Tool execution was interrupted after it started; its result is unavailable. "
    "Inspect side effects before deciding whether to retry it."
)
IMAGE_BLOCKED = "(image omitted: the settings block images)"
# What JavaScript trims: other than Python's set it has U+FEFF, and lacks the control characters 1C to 1F and 85.
_SPACE = "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
_SUMMARY = "Another branch of this conversation was left. What happened there, in short:\n\n<summary>\n{}\n</summary>"


def provider_view(
    messages: Iterable[Message], *, reopened: bool = False, block_images: bool = False
) -> tuple[ProviderMessage, ...]:
    """The messages a request carries. Results that answer no call, or a call a second time, are left out; a call that
    went unanswered before the conversation moved on gets an error result, and so does one at the very end if the
    session was `reopened`. With `block_images` no image is in it, but a note for each run of them."""
    paired = _paired([shown for message in messages if (shown := shown_message(message)) is not None], reopened)
    return tuple(map(_without_images, paired)) if block_images else paired


def shown_message(message: Message) -> ProviderMessage | None:
    """One message in the provider's three roles, by itself; `None` for one that a model does not see."""
    match message:
        case AssistantMessage():
            return _without_blanks(message)
        case ToolResultMessage():
            return message
        case UserMessage():
            return _user(message.content, message.timestamp, message)
        case BashExecutionMessage():
            return None if message.exclude_from_context is True else _user(bash_text(message), message.timestamp)
        case CustomMessage():
            return None if message.exclude_from_context is True else _user(message.content, message.timestamp)
        case BranchSummaryMessage():
            return _user(_SUMMARY.format(message.summary), message.timestamp) if message.summary else None


def whole_message(message: Message) -> ProviderMessage | None:
    """The same, but with the blocks of white space that providers are not sent: in a text they keep words apart."""
    if isinstance(message, AssistantMessage):
        return message
    shown = shown_message(message)
    if shown is not None and isinstance(message, UserMessage | CustomMessage):
        return UserMessage(message.content, message.timestamp)
    return shown


def bash_text(message: BashExecutionMessage) -> str:
    """A command of the client's shell, as the model reads it."""
    output = f"```\n{message.output}\n```" if message.output else "(no output)"
    text = f"Ran `{message.command}`\n{output}"
    if message.cancelled:
        text += "\n\n(command cancelled)"
    elif isinstance(message.exit_code, int) and message.exit_code != 0:
        text += f"\n\nCommand exited with code {message.exit_code}"
    if message.truncated and isinstance(message.full_output_path, str) and message.full_output_path:
        text += f"\n\n[Output truncated. Full output: {message.full_output_path}]"
    return text


def trimmed(text: str) -> str:
    """`text` without white space at its ends, as JavaScript understands that."""
    return text.strip(_SPACE)


def is_blank(text: str) -> bool:
    return not text.strip(_SPACE)


def _user(content: str | list[UserContent], timestamp: int, same: UserMessage | None = None) -> UserMessage | None:
    """A user message of what is visible of `content`: `same` itself if that is all of it."""
    if isinstance(content, str):
        if is_blank(content):
            return None
        return same or UserMessage([TextContent(content)], timestamp)
    visible = [block for block in content if not (isinstance(block, TextContent) and is_blank(block.text))]
    if not visible:
        return None
    return same if same is not None and len(visible) == len(content) else UserMessage(visible, timestamp)


def _without_images(message: ProviderMessage) -> ProviderMessage:
    if isinstance(message, AssistantMessage) or not any(isinstance(block, ImageContent) for block in message.content):
        return message
    content: list[UserContent] = []
    in_run = False
    for block in message.content:
        is_image = isinstance(block, ImageContent)
        if not is_image:
            assert not isinstance(block, str)
            content.append(block)
        elif not in_run:
            content.append(TextContent(IMAGE_BLOCKED))
        in_run = is_image
    return replace(message, content=content)


def _without_blanks(message: AssistantMessage) -> AssistantMessage:
    """Blank text is refused by providers; with a signature it is an item that the provider knows and may want back."""
    kept = [
        block
        for block in message.content
        if not (isinstance(block, TextContent) and is_blank(block.text) and not block.text_signature)
    ]
    return message if len(kept) == len(message.content) else replace(message, content=kept)


def _paired(messages: list[ProviderMessage], reopened: bool) -> tuple[ProviderMessage, ...]:
    """A user message that was recorded between calls and their results (the client's own shell command does that) is
    shown after the results: providers want these at once."""
    paired: list[ProviderMessage] = []
    caller: AssistantMessage | None = None
    open_calls: dict[str, ToolCall] = {}
    between: list[ProviderMessage] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            if open_calls.pop(message.tool_call_id, None) is not None:
                paired.append(message)
        elif isinstance(message, UserMessage) and open_calls:
            between.append(message)
        else:
            paired += [*_missing_results(caller, open_calls), *between, message]
            between = []
            caller = message if isinstance(message, AssistantMessage) else None
            open_calls = {call.id: call for call in caller.tool_calls} if caller else {}
        if between and not open_calls:
            paired += between
            between = []
    if reopened or between:
        paired += _missing_results(caller, open_calls)
    return (*paired, *between)


def _missing_results(caller: AssistantMessage | None, calls: dict[str, ToolCall]) -> list[ToolResultMessage]:
    """Results for the calls that `caller` made in earnest. One that was cut short (error, aborted, length) is not
    answered here: its calls may be partial."""
    if caller is None or caller.stop_reason != "toolUse":
        return []
    text: list[UserContent] = [TextContent(INTERRUPTED)]
    return [ToolResultMessage(call.id, call.name, text, True, caller.timestamp) for call in calls.values()]
