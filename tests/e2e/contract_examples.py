"""One example of each kind of JSON that the contract shows: commands, responses, events, types. The values are ours.

Field names, types, and which fields are `null`, are the contract's; where it elides with `...` the whole object stands
here. Source: contract `rpc-protocol.md`.
"""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]

IMAGE: Record = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
COMMANDS: list[Record] = [
    {"id": "a-1", "type": "prompt", "message": "good morning"},
    {"type": "prompt", "message": "which colour is it?", "images": [IMAGE]},
    {"type": "prompt", "message": "rather the other one", "streamingBehavior": "steer"},
    {"type": "prompt", "message": "and then this", "streamingBehavior": "followUp"},
    {"type": "steer", "message": "to the left"},
    {"type": "steer", "message": "like this", "images": [IMAGE]},
    {"type": "follow_up", "message": "afterwards"},
    {"type": "follow_up", "message": "afterwards this", "images": [IMAGE]},
    {"type": "abort"},
    {"type": "clear_queue"},
    {"type": "new_session"},
    {"type": "new_session", "parentSession": "/s/parent.jsonl"},
    {"type": "get_state"},
    {"type": "get_messages"},
    {"type": "set_model", "provider": "fa", "modelId": "m"},
    {"type": "set_model", "provider": "fa", "modelId": "m", "persist": True},
    {"type": "cycle_model"},
    {"type": "get_available_models"},
    {"type": "logout_provider", "provider": "fa"},
    {"type": "set_thinking_level", "level": "high"},
    {"type": "set_thinking_level", "level": "high", "persist": True},
    {"type": "cycle_thinking_level"},
    {"type": "get_available_thinking_levels"},
    {"type": "set_steering_mode", "mode": "one-at-a-time"},
    {"type": "set_follow_up_mode", "mode": "all"},
    {"type": "compact"},
    {"type": "set_auto_compaction", "enabled": True},
    {"type": "set_auto_retry", "enabled": True},
    {"type": "abort_retry"},
    {"type": "bash", "command": "ls"},
    {"id": "a-2", "type": "abort_bash", "requestId": "a-1"},
    {"type": "get_session_stats"},
    {"type": "export_html"},
    {"type": "export_html", "outputPath": "/s/page.html"},
    {"type": "switch_session", "sessionPath": "/s/one.jsonl"},
    {"type": "fork", "entryId": "e1"},
    {"type": "clone"},
    {"type": "get_fork_messages"},
    {"type": "get_entries"},
    {"type": "get_entries", "since": "e1"},
    {"type": "get_tree"},
    {"type": "get_last_assistant_text"},
    {"type": "set_session_name", "name": "work"},
    {"type": "get_commands"},
]

MODEL: Record = {
    "id": "m",
    "name": "M",
    "api": "anthropic-messages",
    "provider": "fa",
    "baseUrl": "http://127.0.0.1",
    "reasoning": True,
    "input": ["text", "image"],
    "contextWindow": 200_000,
    "maxTokens": 8000,
    "cost": {"input": 3.0, "output": 15.0, "cacheRead": 0.25, "cacheWrite": 3.75},
}
COST: Record = {"input": 0.001, "output": 0.002, "cacheRead": 0, "cacheWrite": 0, "total": 0.003}
USAGE: Record = {"input": 10, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 12, "cost": COST}
USER: Record = {"role": "user", "content": "good morning", "timestamp": 1_750_000_000_000}
USER_IN_BLOCKS: Record = {**USER, "content": [{"type": "text", "text": "which colour is it?"}, IMAGE]}
ASSISTANT: Record = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "good morning"},
        {"type": "thinking", "thinking": "somebody is polite"},
        {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "ls"}},
    ],
    "api": "anthropic-messages",
    "provider": "fa",
    "model": "m",
    "usage": {name: value for name, value in USAGE.items() if name != "totalTokens"},
    "stopReason": "stop",
    "timestamp": 1_750_000_000_000,
}
TOOL_RESULT: Record = {
    "role": "toolResult",
    "toolCallId": "t1",
    "toolName": "bash",
    "content": [{"type": "text", "text": "notes.md"}],
    "isError": False,
    "timestamp": 1_750_000_000_000,
}
BASH_EXECUTION: Record = {
    "role": "bashExecution",
    "command": "ls",
    "output": "notes.md\n",
    "exitCode": 0,
    "cancelled": False,
    "truncated": False,
    "fullOutputPath": None,
    "timestamp": 1_750_000_000_000,
}
MESSAGES: list[Record] = [USER, USER_IN_BLOCKS, ASSISTANT, TOOL_RESULT, BASH_EXECUTION]

ROOT_ENTRY: Record = {
    "type": "message",
    "id": "e1",
    "parentId": None,
    "timestamp": "2026-01-01T00:00:00.000Z",
    "message": USER_IN_BLOCKS,
}
ENTRY: Record = {**ROOT_ENTRY, "id": "e2", "parentId": "e1"}
COMPACTED: Record = {
    "compactedText": "[User]: mend it\n(filtered 4 lines)",
    "firstKeptEntryId": "e7",
    "tokensBefore": 90_000,
    "promptVersion": 3,
    "parameters": {"compression_ratio": 0.5, "preserve_recent": 2, "query": "mend it"},
    "rung": "planned",
    "stats": {
        "linesBefore": 10,
        "linesDeleted": 4,
        "linesKept": 6,
        "rangeCount": 1,
        "tokensBefore": 90_000,
        "tokensAfter": 60_000,
        "percentReduction": 33,
    },
}
BASH_RESULT: Record = {"output": "notes.md\n", "exitCode": 0, "cancelled": False, "truncated": False}


def _response(command: str, *data: Any) -> Record:
    return {"type": "response", "command": command, "success": True, **({"data": data[0]} if data else {})}


RESPONSES: list[Record] = [
    {"id": "a-1", **_response("prompt")},
    _response("steer"),
    _response("follow_up"),
    _response("abort"),
    _response("clear_queue", {"steering": ["to the left"], "followUp": ["afterwards"]}),
    _response("new_session", {"cancelled": False}),
    _response(
        "get_state",
        {
            "model": MODEL,
            "thinkingLevel": "medium",
            "isStreaming": False,
            "isCompacting": False,
            "steeringMode": "all",
            "followUpMode": "one-at-a-time",
            "sessionFile": "/s/one.jsonl",
            "sessionId": "s1",
            "sessionName": "work",
            "autoCompactionEnabled": True,
            "messageCount": 5,
            "pendingMessageCount": 0,
        },
    ),
    _response("get_messages", {"messages": [USER_IN_BLOCKS, ASSISTANT, TOOL_RESULT, BASH_EXECUTION]}),
    _response("set_model", MODEL),
    _response("cycle_model", {"model": MODEL, "thinkingLevel": "medium", "isScoped": False}),
    _response("get_available_models", {"models": [MODEL]}),
    _response(
        "logout_provider", {"provider": "x", "authStatus": {"configured": False}, "models": [], "scopedModels": []}
    ),
    _response("set_thinking_level"),
    _response("set_thinking_level", {"level": "high", "provider": "fa", "modelId": "m"}),
    _response("cycle_thinking_level", {"level": "high"}),
    _response("get_available_thinking_levels", {"levels": ["off", "low", "medium", "high"]}),
    _response("set_steering_mode"),
    _response("set_follow_up_mode"),
    _response("compact", {**COMPACTED, "backupPath": "/s/one.jsonl.compact.bak"}),
    _response("compact", {**COMPACTED, "firstKeptEntryId": None, "backupPath": "/s/one.jsonl.compact.bak"}),
    _response("set_auto_compaction"),
    _response("set_auto_retry"),
    _response("abort_retry"),
    _response("bash", BASH_RESULT),
    _response("bash", {**BASH_RESULT, "truncated": True, "fullOutputPath": "/tmp/atomic/s1/atomic-bash-1.log"}),
    {"id": "a-2", **_response("abort_bash")},
    _response(
        "get_session_stats",
        {
            "sessionFile": "/s/one.jsonl",
            "sessionId": "s1",
            "userMessages": 5,
            "assistantMessages": 5,
            "toolCalls": 2,
            "toolResults": 2,
            "totalMessages": 12,
            "tokens": {"input": 50, "output": 10, "cacheRead": 40, "cacheWrite": 5, "total": 105},
            "cost": 0.45,
            "contextUsage": {"tokens": 60, "contextWindow": 200_000, "percent": 0.03},
        },
    ),
    _response("export_html", {"path": "/s/page.html"}),
    _response("switch_session", {"cancelled": False}),
    _response("fork", {"text": "good morning", "cancelled": False}),
    _response("clone", {"cancelled": False}),
    _response("get_fork_messages", {"messages": [{"entryId": "e1", "text": "good morning"}]}),
    _response("get_entries", {"entries": [ENTRY], "leafId": "e2"}),
    _response(
        "get_tree",
        {"tree": [{"entry": ROOT_ENTRY, "children": [{"entry": ENTRY, "children": []}]}], "leafId": "e2"},
    ),
    _response("get_last_assistant_text", {"text": "good morning"}),
    _response("get_last_assistant_text", {"text": None}),
    _response("set_session_name"),
    _response(
        "get_commands",
        {
            "commands": [
                {"name": "name", "description": "names it", "source": "extension", "path": "/h/name.ts"},
                {
                    "name": "mend",
                    "description": "mends it",
                    "source": "prompt",
                    "location": "project",
                    "path": "/p/.atomic/prompts/mend.md",
                },
                {
                    "name": "skill:greet",
                    "description": "greets",
                    "source": "skill",
                    "location": "user",
                    "path": "/h/skills/greet/SKILL.md",
                },
            ]
        },
    ),
    {"type": "response", "command": "set_model", "success": False, "error": "Model not found: no/model"},
    {"type": "response", "command": "parse", "success": False, "error": "Failed to parse command: it is no JSON"},
    # a hook of an extension may refuse these, so a client must be able to read it
    *[_response(name, {"cancelled": True}) for name in ("new_session", "switch_session", "clone")],
    _response("fork", {"text": "good morning", "cancelled": True}),
]


def _update(event: Record) -> Record:
    return {"type": "message_update", "usage": USAGE, "assistantMessageEvent": event}


CALL: Record = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "ls"}}
UPDATES: list[Record] = [
    _update({"type": "text_start", "contentIndex": 0}),
    _update({"type": "text_delta", "contentIndex": 0, "delta": "good"}),
    _update({"type": "text_end", "contentIndex": 0, "content": "good morning"}),
    _update({"type": "thinking_start", "contentIndex": 0}),
    _update({"type": "thinking_delta", "contentIndex": 0, "delta": "some"}),
    _update({"type": "thinking_end", "contentIndex": 0, "content": "somebody is polite"}),
    _update({"type": "toolcall_start", "contentIndex": 1}),
    _update({"type": "toolcall_delta", "contentIndex": 1, "delta": '{"com'}),
    _update({"type": "toolcall_end", "contentIndex": 1, "toolCall": CALL}),
    _update({"type": "start"}),
    _update({"type": "done", "reason": "stop"}),
    _update({"type": "error", "reason": "aborted"}),
    {**_update({"type": "text_delta", "contentIndex": 0, "delta": "!"}), "endTurn": True},
]
TOOL: Record = {"toolCallId": "t1", "toolName": "bash"}
EVENTS: list[Record] = [
    {"type": "agent_start"},
    {"type": "agent_end", "messages": [USER_IN_BLOCKS, ASSISTANT]},
    {"type": "turn_start"},
    {"type": "turn_end", "message": ASSISTANT, "toolResults": [TOOL_RESULT]},
    {"type": "message_start", "message": USER_IN_BLOCKS},
    {"type": "message_start", "message": {**ASSISTANT, "content": [], "stopReason": "pending"}},
    {"type": "message_end", "message": {**ASSISTANT, "endTurn": True}},
    {"type": "message_end", "message": ASSISTANT},
    *UPDATES,
    {"type": "tool_execution_start", **TOOL, "args": {"command": "ls"}},
    {
        "type": "tool_execution_update",
        **TOOL,
        "args": {"command": "ls"},
        "partialResult": {
            "content": [{"type": "text", "text": "notes"}],
            "details": {"truncation": None, "fullOutputPath": None},
        },
    },
    {
        "type": "tool_execution_end",
        **TOOL,
        "result": {"content": [{"type": "text", "text": "notes.md"}], "details": {}},
        "isError": False,
    },
    {"type": "bash_execution_update", "id": "a-1", "channel": "stdout", "delta": "notes.md\n"},
    {"type": "bash_execution_update", "id": "a-1", "channel": "stderr", "delta": "beware\n"},
    {"type": "bash_execution_update", "channel": "stdout", "delta": "notes.md\n"},
    {"type": "queue_update", "steering": ["to the left"], "followUp": ["afterwards"]},
    {"type": "compaction_start", "reason": "threshold"},
    {
        "type": "compaction_end",
        "reason": "threshold",
        "result": {**COMPACTED, "backupPath": "/s/one.jsonl.auto-compact.bak"},
        "aborted": False,
        "willRetry": False,
    },
    {"type": "compaction_end", "reason": "manual", "result": None, "aborted": True, "willRetry": False},
    {
        "type": "compaction_end",
        "reason": "overflow",
        "result": None,
        "aborted": False,
        "willRetry": False,
        "errorMessage": "too long",
        "unresolvedOverflow": True,
    },
    {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000, "errorMessage": "529 overloaded"},
    {"type": "auto_retry_end", "success": True, "attempt": 2},
    {"type": "auto_retry_end", "success": False, "attempt": 3, "finalError": "529 overloaded"},
    {
        "type": "summarization_retry_scheduled",
        "attempt": 1,
        "maxAttempts": 3,
        "delayMs": 2000,
        "errorMessage": "terminated",
    },
    {"type": "summarization_retry_attempt_start", "source": "compaction", "reason": "threshold"},
    {"type": "summarization_retry_attempt_start", "source": "branchSummary"},
    {"type": "summarization_retry_finished"},
    {"type": "extension_error", "extensionPath": "/h/x.ts", "event": "tool_call", "error": "it threw"},
]
