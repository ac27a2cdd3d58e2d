"""One example of everything that goes over the wire from the agent, as values of the wire's own types.

Data alone: what they are encoded to stands in docs/reference.md, which `reference_page` writes. The type checker and
msgspec see to it that no example has a field that the program does not send. The values are made up.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct
from msgspec.json import encode

from protocol import events as e
from protocol import responses as r
from protocol import tasks as t
from protocol.compaction import CompactionParameters, CompactionStats
from protocol.entries import MessageEntry
from protocol.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Cost,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from protocol.model import Model, ModelCost
from protocol.state import SessionState

NOW = 1_767_225_600_000
IMAGE = ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
CALL = ToolCall(id="call_1", name="read", arguments={"path": "notes.txt"})
USAGE = Usage(input=812, output=24, total_tokens=836, cost=Cost(input=0.0024, output=0.0004, total=0.0028))
USER = UserMessage(content=[TextContent("What is in notes.txt?")], timestamp=NOW)
ASSISTANT = AssistantMessage(
    content=[ThinkingContent("I have to read it."), TextContent("I will look."), CALL],
    api="anthropic-messages",
    provider="anthropic",
    model="claude-sonnet-4-5",
    usage=USAGE,
    stop_reason="toolUse",
    timestamp=NOW,
)
TOOL_RESULT = ToolResultMessage(
    tool_call_id="call_1",
    tool_name="read",
    content=[TextContent("The build is green.")],
    is_error=False,
    timestamp=NOW,
)
BASH = BashExecutionMessage(
    command="ls", output="notes.txt\n", cancelled=False, truncated=False, timestamp=NOW, exit_code=0
)
MESSAGES: dict[str, Struct] = {
    "user": USER,
    "assistant": ASSISTANT,
    "toolResult": TOOL_RESULT,
    "bashExecution": BASH,
}
MODEL = Model(
    id="claude-sonnet-4-5",
    name="Claude Sonnet 4.5",
    api="anthropic-messages",
    provider="anthropic",
    base_url="https://api.anthropic.com",
    reasoning=True,
    input=("text", "image"),
    cost=ModelCost(input=3, output=15, cache_read=0.3, cache_write=3.75),
    context_window=200_000,
    max_tokens=64_000,
)
OUTPUT = t.OutputRef(
    owner_id="owner-3f6c1a2b-0",
    task_id="task-3f6c1a2b-0-0",
    artifact_id="output-task-3f6c1a2b-0-0",
    byte_count="10",
)
TASK = t.TaskRecord(
    ref=t.TaskRef("owner-3f6c1a2b-0", "task-3f6c1a2b-0-0", "attempt-3f6c1a2b-0-0-1", "3f6c1a2b-0"),
    launch_ordinal=0,
    kind="command",
    title="npm run build",
    state="running",
    execution=t.Running(),
    observation=t.Background("elapsed"),
    cleanup=t.CleanupActive(),
    attention=t.Attention(),
    was_background=True,
)
ENTRY = MessageEntry(id="3f6c1a2b", parent_id=None, timestamp="2026-01-01T00:00:00.000Z", message=USER)
FAILED = "529 overloaded"


def raw(value: object) -> Raw:
    return Raw(encode(value))


SHORT_USER = raw(USER)
COMPACTED = r.CompactionResult(
    compacted_text="[User]: mend it\n(filtered 4 lines)",
    first_kept_entry_id="3f6c1a2b",
    tokens_before=90_000,
    prompt_version=3,
    parameters=CompactionParameters(compression_ratio=0.5, preserve_recent=2),
    rung="planned",
    stats=CompactionStats(10, 4, 6, 1, 90_000, 60_000, 33.3),
)
CATALOGUE = r.Catalogue(models=[MODEL])

DATA: dict[str, Any] = {
    "clear_queue": r.QueuedTexts(steering=["rather in French"], follow_up=["then run the tests"]),
    "resume_queued_messages": r.Released(released=True),
    "get_state": SessionState(
        model=MODEL,
        thinking_level="medium",
        is_streaming=False,
        is_compacting=False,
        steering_mode="one-at-a-time",
        follow_up_mode="one-at-a-time",
        session_id="019b76da-a800-7000-8000-000000000000",
        auto_compaction_enabled=True,
        message_count=4,
        pending_message_count=0,
        session_file="/home/me/.atomic/agent/sessions/--p--/2026-01-01T00-00-00-000Z_019b76da.jsonl",
        session_name="green build",
    ),
    "get_messages": r.MessageList(messages=[SHORT_USER]),
    "get_session_stats": r.SessionStats(
        session_id="019b76da-a800-7000-8000-000000000000",
        user_messages=1,
        assistant_messages=2,
        tool_calls=1,
        tool_results=1,
        total_messages=4,
        tokens=r.TokenTotals(input=812, output=24, cache_read=0, cache_write=0, total=836),
        cost=0.0028,
        session_file="/s/one.jsonl",
        context_usage=r.ContextUsage(tokens=836, context_window=200_000, percent=0.418),
    ),
    "get_last_assistant_text": r.LastAssistantText(text="The build is green."),
    "get_entries": r.EntryList(entries=[raw(ENTRY)], leaf_id="3f6c1a2b"),
    "get_tree": {"tree": [{"children": [], "entry": ENTRY, "label": "start"}], "leafId": "3f6c1a2b"},
    "get_fork_messages": r.ForkMessageList([r.ForkMessage(entry_id="3f6c1a2b", text="What is in notes.txt?")]),
    "set_model": MODEL,
    "cycle_model": r.CycledModel(model=MODEL, thinking_level="medium", is_scoped=False),
    "get_available_models": CATALOGUE,
    "refresh_models": r.RefreshedCatalogue(models=[MODEL], aborted=False, errors=[]),
    "save_provider_credential": CATALOGUE,
    "logout_provider": r.LoggedOut(provider="anthropic", auth_status=r.AuthStatus(configured=False), models=[]),
    "set_thinking_level": r.EffectiveLevel(level="high", provider="anthropic", model_id="claude-sonnet-4-5"),
    "cycle_thinking_level": r.EffectiveLevel(level="high"),
    "get_available_thinking_levels": r.LevelList(levels=["off", "low", "medium", "high"]),
    "compact": COMPACTED,
    "bash": r.BashResult(output="notes.txt\n", cancelled=False, truncated=False, exit_code=0),
    "user_bash": r.BashResult(output="notes.txt\n", cancelled=True, truncated=False),
    "get_tasks": r.TaskList(tasks=[TASK]),
    "get_task": r.TaskDetail(
        task=TASK, command="npm run build", cwd="/home/me/project", timeout_seconds=600, tail="compiling\n"
    ),
    "cancel_task": t.CancelReceipt(
        task_id="task-3f6c1a2b-0-0",
        decision="cancellation-requested",
        execution=t.Cancelling(cause="user"),
        cleanup=t.CleanupDraining(),
    ),
    "send_task_input": r.InputAccepted(accepted=4),
    "wait_task": t.SettledWait(task_id="task-3f6c1a2b-0-0", result=t.TaskCompleted(output=OUTPUT, exit_code=0)),
    "new_session": r.Cancelled(cancelled=False),
    "switch_session": r.Cancelled(cancelled=False),
    "import_session": r.Cancelled(cancelled=False),
    "clone": r.Cancelled(cancelled=False),
    "fork": r.Forked(cancelled=False, text="What is in notes.txt?"),
    "navigate_tree": r.Navigated(cancelled=False, editor_text="What is in notes.txt?"),
    "export_html": r.ExportedPath(path="atomic-session-one.html"),
    "get_commands": r.SlashCommandList(
        [r.SlashCommand(name="mend", source="prompt", description="mends it", location="project", path="/p/mend.md")]
    ),
    "get_command_completions": r.CompletionList(completions=None),
    "get_shortcuts": r.ShortcutList(shortcuts=[]),
}
"""The `data` of a success, by command; a command that is not here has none."""


def update(change: e.AssistantMessageEvent) -> e.MessageUpdate:
    return e.MessageUpdate(usage=USAGE, assistant_message_event=change)


GROWTH: list[e.AssistantMessageEvent] = [
    e.TextStart(content_index=1),
    e.TextDelta(content_index=1, delta="I will"),
    e.TextEnd(content_index=1, content="I will look."),
    e.ThinkingStart(content_index=0),
    e.ThinkingDelta(content_index=0, delta="I have to"),
    e.ThinkingEnd(content_index=0, content="I have to read it."),
    e.ToolCallStart(content_index=2),
    e.ToolCallDelta(content_index=2, delta='{"path":'),
    e.ToolCallEnd(content_index=2, tool_call=CALL),
]
"""The inner events that are sent."""

RESULT = {"content": [{"type": "text", "text": "The build is green."}]}
EVENTS: list[Struct] = [
    e.AgentStart(),
    e.TurnStart(),
    e.MessageStart(message=SHORT_USER),
    update(e.TextDelta(content_index=0, delta="I will")),
    e.MessageEnd(message=raw(ASSISTANT)),
    e.ToolExecutionStart(tool_call_id="call_1", tool_name="read", args={"path": "notes.txt"}),
    e.ToolExecutionUpdate(tool_call_id="call_1", tool_name="bash", args={"command": "make"}, partial_result=RESULT),
    e.ToolExecutionEnd(tool_call_id="call_1", tool_name="read", result=RESULT, is_error=False),
    e.TurnEnd(message=raw(ASSISTANT), tool_results=[raw(TOOL_RESULT)]),
    e.AgentEnd(messages=[SHORT_USER, raw(ASSISTANT)]),
    e.AgentSettled(),
    e.QueueUpdate(steering=["rather in French"], follow_up=[]),
    e.AutoRetryStart(attempt=1, max_attempts=3, delay_ms=2000, error_message=FAILED),
    e.AutoRetryEnd(success=False, attempt=3, final_error=FAILED),
    e.ModelFallbackStart(
        to="openai/gpt-5-mini:off", reason=FAILED, attempt=1, from_="anthropic/claude-sonnet-4-5:medium"
    ),
    e.ModelFallbackEnd(success=True, from_="anthropic/claude-sonnet-4-5:medium", to="openai/gpt-5-mini:off"),
    e.ModelChanged(model=MODEL, source="set"),
    e.ThinkingLevelChanged(level="high"),
    e.SessionInfoChanged(name="green build"),
    e.BashExecutionUpdate(channel="stdout", delta="notes.txt\n", id=Raw(b'"req-7"')),
    e.TaskUpdate(task=TASK),
    e.TaskTranscript(
        task_id="task-3f6c1a2b-0-1",
        first=3,
        entries=[raw(t.TranscriptEntry(3, "toolCall", '{"command":"ls"}', "bash", "toolu_1", timestamp=1767225600000))],
        live=t.TranscriptEntry(4, "assistant", "Looking at"),
    ),
    e.ExtensionError(extension_path="skill:mend", event="skill_expansion", error="Unknown skill: mend"),
    e.EntryAppended(entry=raw(ENTRY)),
    e.CompactionStart(reason="threshold"),
    e.CompactionEnd(reason="threshold", result=COMPACTED, aborted=False, will_retry=False),
    e.SummarizationRetryScheduled(attempt=1, max_attempts=3, delay_ms=2000, error_message=FAILED),
    e.SummarizationRetryAttemptStart(source="branchSummary"),
    e.SummarizationRetryFinished(),
    e.AgentContinueError(source="post_compaction", error_message=FAILED),
]
"""One of each event, in the order of the page."""
