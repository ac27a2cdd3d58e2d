"""What the contract asks to be shown: each command with its errors and the events that it causes, and each event.

Facts alone; the commands and events that exist are read from `protocol`, and the tests that show each are found by
`contract_table`. In an error `…` stands for what differs from case to case.

Source: contract `rpc-protocol.md`, and the commands and events that the reference has beyond it.
"""

from __future__ import annotations

from typing import NamedTuple


class Facts(NamedTuple):
    """Of one command: the errors it may be refused with, and the events that it causes."""

    errors: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


RUN = ("agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end")
TOOLS = ("tool_execution_start", "tool_execution_update", "tool_execution_end")
SUMMARY_RETRY = (
    "summarization_retry_scheduled",
    "summarization_retry_attempt_start",
    "summarization_retry_finished",
)
RETRY = ("auto_retry_start", "auto_retry_end", "model_fallback_start", "model_fallback_end", "model_changed")
NOT_SAVED = "This session has not been saved yet. Wait for the first assistant response before cloning or forking it."
NOT_A_SESSION = "Session file is not a valid atomic session: …"
NO_PATH = (
    "Invalid …: it must not contain a NUL character",
    "Invalid …: it must not contain a lone surrogate",
)
NOT_RUN = "Working directory does not exist: …\nCannot execute bash commands."
NOT_RECORDED = "…\nOutput that was not recorded:\n…"
LET_GO = ("queue_update", "agent_end", "agent_settled")
IMAGE = '…: "images[…]" cannot be used: …'
AUTH_FILE = "Failed to parse auth.json…"

CONTRACT: dict[str, Facts] = {
    "prompt": Facts(
        (
            "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.",
            "Configured default model is unavailable or unsupported. "
            "Update defaultProvider/defaultModel or use /model.",
            "No API key found for ….",
            "No API key found for the selected model.",
            "prompt was stopped by abort before it started",
            "the session was left before the prompt started",
            IMAGE,
        ),
        (
            *(*RUN, *TOOLS, "agent_settled", "queue_update", *RETRY, "extension_error"),
            *("compaction_start", "compaction_end"),
        ),
    ),
    "steer": Facts(("steer was stopped by clear_queue before it started", IMAGE), ("queue_update",)),
    "follow_up": Facts(("follow_up was stopped by clear_queue before it started", IMAGE), ("queue_update",)),
    "abort": Facts(events=("agent_end", "agent_settled")),
    "clear_queue": Facts(events=("queue_update",)),
    "new_session": Facts(("Session folder cannot be made: …",), LET_GO),
    "get_state": Facts(),
    "get_messages": Facts(),
    "set_model": Facts(("Model not found: …/…",), ("thinking_level_changed", "model_changed")),
    "cycle_model": Facts(events=("thinking_level_changed", "model_changed")),
    "get_available_models": Facts(),
    "logout_provider": Facts((AUTH_FILE, "Credential logout committed for …, but local synchronization failed")),
    "set_thinking_level": Facts(events=("thinking_level_changed",)),
    "cycle_thinking_level": Facts(events=("thinking_level_changed",)),
    "get_available_thinking_levels": Facts(),
    "set_steering_mode": Facts(),
    "set_follow_up_mode": Facts(),
    "compact": Facts(
        (
            "Nothing to compact (session too small)",
            "Compaction cancelled",
            "Compaction range planning returned malformed output…",
            "No API key found for ….",
            'compact: "compression_ratio" must be a number above 0 and below 1, not …',
            'compact: "preserve_recent" must be a whole number of 0 or more, not …',
        ),
        ("compaction_start", "compaction_end", *SUMMARY_RETRY),
    ),
    "set_auto_compaction": Facts(),
    "set_auto_retry": Facts(),
    "abort_retry": Facts(events=("auto_retry_end",)),
    "bash": Facts((NOT_RUN, NOT_RECORDED), ("bash_execution_update",)),
    "abort_bash": Facts(),
    "get_session_stats": Facts(),
    "export_html": Facts(
        (
            "Nothing to export yet - start a conversation first",
            "Cannot export in-memory session to HTML",
            "Cannot export to …: it is the file of the session itself",
            "outputPath must hold neither NUL characters nor lone surrogates, got …",
        )
    ),
    "switch_session": Facts(
        (
            NOT_A_SESSION,
            *NO_PATH,
            "Session file cannot be opened: …",
            "Session file is a directory: …",
            "Session file is in use by another process: …",
            "Stored session working directory does not exist: …",
        ),
        LET_GO,
    ),
    # its own "not saved yet" cannot happen: a session with a user message has a file
    "fork": Facts(("Invalid entry ID for forking",), LET_GO),
    "clone": Facts((NOT_SAVED, "Cannot clone session: no current entry selected"), LET_GO),
    "get_fork_messages": Facts(),
    "get_entries": Facts(("Entry not found: …",)),
    "get_tree": Facts(),
    "get_last_assistant_text": Facts(),
    "set_session_name": Facts(("Session name cannot be empty",), ("session_info_changed",)),
    "get_commands": Facts(),
}

NO_TASK = "UnknownTask: UnknownTask"

BEYOND: dict[str, Facts] = {
    "get_tasks": Facts(),
    "get_task": Facts((NO_TASK, 'get_task: "transcript" is for subagents; …')),
    "cancel_task": Facts((NO_TASK,)),
    "send_task_input": Facts(
        (
            NO_TASK,
            "StdinClosed: …",
            "TaskTerminal: …",
            "OperationConflict: …",
            "InputBackpressure: …",
            "No pending ask from …",
            "Invalid params: input must not be blank …",
        )
    ),
    "resize_task": Facts((NO_TASK, "StdinClosed: …", "TaskTerminal: …")),
    "wait_task": Facts((NO_TASK,)),
    "set_task_subscription": Facts((NO_TASK,), ("task_update", "task_transcript")),
    "pause_queued_messages": Facts(),
    "resume_queued_messages": Facts(),
    "refresh_models": Facts(),
    "login_provider": Facts(
        (
            "Provider login requires an interactive input host",
            "Provider does not support API-key login: …",
            "Unknown OAuth provider: …",
        )
    ),
    "save_provider_credential": Facts(
        (
            AUTH_FILE,
            'save_provider_credential: "credential.type" must be …',
            "Credential login committed for …, but local synchronization failed",
        )
    ),
    "cancel_login_provider": Facts(),
    "abort_compaction": Facts(),
    "user_bash": Facts((NOT_RUN, NOT_RECORDED), ("bash_execution_update",)),
    "import_session": Facts(
        (
            "File not found: …",
            NOT_A_SESSION,
            *NO_PATH,
            "Session file is in use by another process: …",
            "import_session: the session at … is open here, so it cannot be overwritten",
        ),
        LET_GO,
    ),
    "navigate_tree": Facts(
        (
            "Wait for the current response to finish before navigating the session tree.",
            "Entry … not found",
            "No model available for summarization",
            "No API key found for ….",
            "The model answered without a summary of the branch",
            "navigate_tree was stopped by … before it started",
        ),
        SUMMARY_RETRY,
    ),
    "set_label": Facts(("Entry … not found",)),
    "reload": Facts(),
    "get_command_completions": Facts(),
    "get_shortcuts": Facts(),
    "invoke_shortcut": Facts(("Shortcut not found: …",)),
}

# Of every command, and of lines that are none; `*` in a marker.
ANY: tuple[str, ...] = (
    "Failed to parse command: …",
    "Unknown command: …",
    '…: "…" is required…',
    '…: "…" must be …',
    "Session file was removed or replaced: …",
    "atomic is shutting down",
    "the session failed: …",
    "atomic failed: …",
)

CONTRACT_EVENTS: tuple[str, ...] = (
    "agent_start",
    "agent_end",
    "turn_start",
    "turn_end",
    "message_start",
    "message_update",
    "message_end",
    *TOOLS,
    "bash_execution_update",
    "queue_update",
    "compaction_start",
    "compaction_end",
    "auto_retry_start",
    "auto_retry_end",
    *SUMMARY_RETRY,
    "extension_error",
)

# Without effect yet, and why. Nothing may show a success or an event of these; when something does, it leaves the list.
LATER: dict[str, str] = {
    "login_provider": "extensions",
    "invoke_shortcut": "extensions",
    "agent_continue_error": "a run that goes on tells its failure itself",
    "entry_appended": "extensions",
}


def when(name: str) -> str:
    """What a page says of a name in `LATER`."""
    return f"never: {LATER[name]}" if name == "agent_continue_error" else f"not yet: {LATER[name]}"
