"""What docs/reference.md says in words: a sentence for each command and event, and the order in which they stand.

Data alone. Names, fields and types come from `protocol`, errors from `contract_facts`, examples from
`reference_examples`.
"""

from __future__ import annotations

OPENING = """# Every command and every event

`make reference` writes this page from the code, and `make test` compares the two. [guide.md](guide.md) shows how it
goes together, [protocol.md](protocol.md) tells the rules: order, ids, what passes what.

## How to read it

- A command is one JSON object on a line of stdin, with its `type`. Any command may have an `id` (a string, a number,
  `true`, `false` or `null`), which comes back in its response. `{"id":"7","type":"set_thinking_level","level":"high"}`
- Each command gets one response, on a line of stdout:
  `{"id":"7","type":"response","command":"set_thinking_level","success":true,"data":{…}}`, without `data` where none is
  shown here, or `{"id":"7","type":"response","command":"set_thinking_level","success":false,"error":"…"}`.
- An event has no `command` and, but for `bash_execution_update`, no `id`.
- Examples are shown on several lines; on the wire each record is one line. Be ready for fields that this page does not
  name: newer versions may add some.
- In an error `…` stands for what differs. Errors are for people: test `success`, not the text.
"""

COMMANDS: dict[str, dict[str, str]] = {
    "Prompts and the queue": {
        "prompt": "Ask the agent something. Success says that it was accepted; the answer comes as events, and is "
        "over at "
        "`agent_settled`. To a busy session it needs `streamingBehavior`: before the next request to the model "
        "(`steer`), or when the run would end (`followUp`).",
        "steer": "Queue a message for the next request to the model of the run at hand; without one, of the next run.",
        "follow_up": "Queue a message for when the run would end.",
        "abort": "End the run, the wait for a retry included. Answers when the run has ended; what is queued then "
        "begins.",
        "clear_queue": "Take back what is queued.",
        "pause_queued_messages": "Hold what is queued, so that `abort` does not begin it.",
        "resume_queued_messages": "Let it go on, with the next prompt. `released` tells whether it was held.",
        "set_steering_mode": "Whether queued steering messages go to the model all at once or one for each "
        "request. Saved.",
        "set_follow_up_mode": "The same for follow-ups. Saved.",
    },
    "What is there": {
        "get_state": "How the session stands; the first thing to ask, since it shows that the process is up. "
        "`sessionFile` is absent with `--no-session`, `model` is `null` when there is none.",
        "get_messages": "The conversation as the model sees it, as [messages](#messages).",
        "get_session_stats": "Counts, tokens and dollars of the session. `tokens` of `contextUsage` may be `null`.",
        "get_last_assistant_text": "The text of the last answer, `null` when there is none.",
        "get_entries": "The lines of the session file in their order, all branches. With `since` only those after "
        "that id.",
        "get_tree": "The same as a tree. A conversation is a chain, so it is as deep as it is long: read it with "
        "a parser "
        "that does not recurse, or use `get_entries` and `parentId`.",
        "get_fork_messages": "The user messages that `fork` can start before.",
    },
    "Models, thinking, credentials": {
        "set_model": "Change the model; `data` is the model. `persist` makes it your default.",
        "cycle_model": "The next model of the scope (`--models`), else of all that can be used. `data` is `null` "
        "when there is "
        "no other one.",
        "get_available_models": "The models whose provider has a credential, and those to cycle through.",
        "refresh_models": "Read `models.json` and `auth.json` again. `errors` names what is wrong in them.",
        "set_thinking_level": "How much the model may think; clamped to what it supports, and `data` tells the "
        "outcome.",
        "cycle_thinking_level": "The next level. `data` is `null` when the model cannot think.",
        "get_available_thinking_levels": "The levels of the model.",
        "login_provider": "Not possible without extensions: nobody can be asked.",
        "cancel_login_provider": "Does nothing yet, and succeeds.",
        "save_provider_credential": "Store a credential in `auth.json`. `credential` is "
        '`{"type":"api_key","key":"…"}`, with an object `env` beside or in place of `key`, or '
        '`{"type":"oauth",…}`.',
        "logout_provider": "Remove what is stored. `authStatus` tells what is left, an environment variable say.",
    },
    "Compaction and retry": {
        "compact": "Shorten the context: lines of its older part are left out, the rest stands word for word. The "
        "parameters count before the settings. `plannerModel` is there when another model chose the lines, "
        "`backupPath` when the session has a file.",
        "abort_compaction": "End a compaction, or the summary of a branch; succeeds also when there is none.",
        "set_auto_compaction": "Whether the context is shortened by itself. Saved.",
        "set_auto_retry": "Whether failures that may pass are tried again. Saved.",
        "abort_retry": "End the wait for a retry, and with it the prompt.",
    },
    "Shell": {
        "bash": "Run a command for the user, at once, beside the agent. Output streams as "
        "`bash_execution_update`; the response "
        "comes at the end. The result joins the conversation, and the model sees it unless `excludeFromContext`. "
        "`exitCode` is absent after a cancel or a signal; `fullOutputPath` is there when `output` was cut.",
        "user_bash": "The same under another name.",
        "abort_bash": "Cancel the request with the `id` `requestId`; without it all of them.",
    },
    "Tasks": {
        "get_tasks": "The commands of the model that run in the background, and those that did. [tasks.md](tasks.md) "
        "tells the rules.",
        "get_task": "One of them, with the end of its output. `tail` is absent when it is no longer kept. With "
        "`transcript` the data of a subagent's also holds `transcript`: a page of its conversation "
        "([subagents.md](subagents.md#its-conversation)).",
        "cancel_task": "Stop it. Success says that this was asked for; `task_update` or `wait_task` tell when it is "
        "over.",
        "send_task_input": "Type at a command with `acceptsInput` (a line needs its line feed), or answer the question "
        "of an agent. With an `operationId` a repeated command types and answers nothing again.",
        "resize_task": "Give the terminal of a task another size, in characters. What runs there is told (SIGWINCH).",
        "wait_task": "Answers when the task has settled, or, `yielded`, after `budgetMs`. The task does not notice.",
        "set_task_subscription": "Whether `task_update` is sent, from now on and in the sessions that follow. At the "
        "start it is not. With the id of a subagent in `transcript` what that one says comes as `task_transcript`.",
    },
    "Sessions": {
        "new_session": "Begin a new session. `parentSession` is written into its header.",
        "switch_session": "Open the session in a file.",
        "import_session": "Copy a session file into the session folder and open the copy. `cwdOverride` is for "
        "one whose "
        "folder is gone.",
        "fork": "A new session with what came before a user message; `text` is that message, to be changed.",
        "clone": "A new session with the same history.",
        "navigate_tree": "Move to another place in this session's tree. `editorText` is the user message there, "
        "to be changed. With `summarize` the branch that is left is summarized first; `aborted` tells that this was "
        "cancelled.",
        "set_session_name": "Name the session.",
        "set_label": "Label an entry of the tree; without `label` it is taken away.",
        "export_html": "Write the session as a page; see [export.md](export.md). `path` is told as it was given.",
        "reload": "Read templates, skills, context files and settings again.",
    },
    "Slash commands and extensions": {
        "get_commands": "The prompt templates and skills that a prompt can call as `/name`; see "
        "[skills-and-templates.md](skills-and-templates.md).",
        "get_command_completions": "`completions` is `null`: only extensions have some.",
        "get_shortcuts": "Empty without extensions.",
        "invoke_shortcut": "Fails without extensions.",
        "extension_ui_response": "The answer to a dialog of an extension. It is no command: it gets no response. "
        "There are no "
        "dialogs yet.",
    },
}

EVENTS: dict[str, str] = {
    "agent_start": "A run begins.",
    "turn_start": "A request to the model begins; a run has one or more.",
    "message_start": "A message begins, of the user, the model or a tool. That of the model is empty, and its "
    "`stopReason` is `pending`, or `error` when the request failed at once.",
    "message_update": "The reply has grown; see [below](#what-a-reply-grows-by). `usage` is what the provider "
    "told so far.",
    "message_end": "A message is whole, and in the session file. A failure is one too: `stopReason` `error` with "
    "`errorMessage`.",
    "tool_execution_start": "A tool begins. Tools of one reply run side by side.",
    "tool_execution_update": "`partialResult` is all so far and takes the place of what was shown.",
    "tool_execution_end": "A tool has ended. Results follow as `toolResult` messages when all have.",
    "turn_end": "The reply and the results of its tools.",
    "agent_end": "A run is over; `messages` are those of this run. Another may begin by itself: a retry, or what "
    "is queued.",
    "agent_settled": "Nothing more comes by itself. Wait for this one.",
    "queue_update": "What is queued now.",
    "auto_retry_start": "The run failed; in `delayMs` milliseconds it is tried again.",
    "auto_retry_end": "The retries are over; `success` tells whether the last one did it.",
    "model_fallback_start": "Another model of `fallbackModels` takes over.",
    "model_fallback_end": "The first model is back; `success` tells whether another one did it.",
    "model_changed": "The model is another one. `source` tells why.",
    "thinking_level_changed": "The thinking level is another one.",
    "session_info_changed": "The session has another name; without `name` it has none.",
    "bash_execution_update": "New output of a shell request; `id` is that of the request, absent when it had none.",
    "task_update": "A background task has changed; only after `set_task_subscription`.",
    "task_transcript": "What a subagent has said since the last of these: `entries` begin with the number `first`. "
    "`live` is what it is saying. Only for the one that `set_task_subscription` names, at most ten times a second.",
    "extension_error": "A skill could not be expanded; the prompt goes on with its text as it stands.",
    "entry_appended": "",
    "compaction_start": "The context is being shortened; `midTurn` when a run waits for it.",
    "compaction_end": "`result` is the data of `compact`, or `null`. `willRetry`: the interrupted work goes on. "
    "`unresolvedOverflow`: it does not fit into this model, and another one is tried if there is one.",
    "summarization_retry_scheduled": "A request outside a run failed; in `delayMs` milliseconds it is tried again.",
    "summarization_retry_attempt_start": "Now; `source` tells what the request is for.",
    "summarization_retry_finished": "No retry follows, whatever came of the last one.",
    "agent_continue_error": "",
}

GROWTH = """`assistantMessageEvent` of `message_update` is one of these. `contentIndex` is the place of the block in
`content` of the message; add up the deltas of each block by it. Other clients know of `start`, `done` and `error` as
well; atomic never sends them.
"""

MESSAGES = """`message` of an event and the items of `get_messages` are one of these, told apart by `role`. `content`
of a user is a string or a list of blocks; `timestamp` is in milliseconds since 1970. `stopReason` is `stop`, `length`
(the output limit), `toolUse`, `error` or `aborted`; with `error` there is an `errorMessage`. Prices in `usage.cost` are
dollars.
"""

IMAGES = """`images` is a list of objects like this one. `data` is base64 alone, no `data:` URL; `mimeType` is
`image/png`, `image/jpeg`, `image/gif` or `image/webp`. An image with more than 3,932,160
bytes or 2000 pixels in a direction is made smaller first (`images.autoResize`). A command that waits for that holds
back what follows it, as a replacement of the session does.
"""
