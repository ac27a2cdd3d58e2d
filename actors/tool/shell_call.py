"""The calls of `bash`, `powershell` and `kill` where a session owns what they start: what is asked, and what is said.

Pure. `fault` checks the fields that belong together, before the schema and before anything runs. `order` makes the mail
for the tasks' desk, `output` the result out of its answer. Source: `tasks.md` 1.8 and 1.9.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
from msgspec import UNSET

from actors.base import Address
from actors.mail import (
    KillTask,
    LaunchShell,
    ShellTaskPlan,
    TaskAnswer,
    ToolCallMail,
    ToolPlace,
    ToolRequest,
    WaitForTask,
)
from actors.shell.environment import SESSION_VARIABLES
from actors.shell.pty import wants_pty
from actors.shell.truncate import ABORT_NOTE, bash_tool_text, exit_note, timeout_note
from actors.task.effects import WaitPolicy
from actors.task.view import OutputView, page_text, settled_text
from actors.tool import paths
from actors.tool.schema import as_number, given, number, shorten, shown_number, text
from actors.tool.table import ToolFailure, ToolOutput, text_output
from protocol import tasks as t
from protocol.codec import encode
from protocol.messages import TextContent

DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S = 300, 3600
BAD_WAIT = "Invalid {tool} wait: expected background or foreground with a finite non-negative budgetMs"
NO_OWNER = {
    "background": "Background bash observation requires a supported task owner",
    "wait": "Shell task wait requires a supported task owner",
    "kill": "kill requires a supported task owner",
}
_LAUNCH_FIELDS = ("command", "timeout", "wait", "env", "cwd", "pty")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROTECTED = SESSION_VARIABLES | {"AI_AGENT"}


# ---- arguments ---------------------------------------------------------------------------------------------------


def fault(tool: str, arguments: dict[str, Any]) -> str | None:
    """Why the fields do not go together; None if they do. The rest is for the schema. Null counts as left out, but as a
    policy of waiting it is none."""
    has_wait, wait = "wait" in arguments, arguments.get("wait")
    arguments = given(arguments)
    if "action" in arguments or "id" in arguments:
        return _wait_fault(tool, arguments)
    if "command" not in arguments:
        return f"Invalid {tool} call: command is missing; or use action wait with the id of a task"
    if "budgetMs" in arguments:
        return f"Invalid {tool} call: budgetMs belongs into a foreground wait; at the top only with action wait"
    try:
        timeout_seconds(number(arguments, "timeout"))
    except ToolFailure as refused:
        return str(refused)
    return BAD_WAIT.format(tool=tool) if has_wait and not is_wait(wait) else None


def _wait_fault(tool: str, arguments: dict[str, Any]) -> str | None:
    if arguments.get("action") != "wait":
        return f"Invalid {tool} action {shorten(arguments.get('action'))}: the only one is wait"
    mixed = [name for name in _LAUNCH_FIELDS if name in arguments]
    if mixed:
        return f"Invalid {tool} wait: {mixed[0]} belongs to a launch, not to action wait"
    if not isinstance(arguments.get("id"), str):
        return f"Invalid {tool} wait: id must be the id of a task, got {shorten(arguments.get('id'))}"
    if "budgetMs" in arguments and not is_budget(arguments["budgetMs"]):
        return (
            f"Invalid {tool} wait: budgetMs must be a finite number of 0 or more, got {shorten(arguments['budgetMs'])}"
        )
    return None


def is_wait(value: Any) -> bool:
    """Whether it is a policy of waiting for a launch."""
    if not isinstance(value, dict) or value.get("kind") not in ("background", "foreground"):
        return False
    allowed = {"kind", "budgetMs"} if value["kind"] == "foreground" else {"kind"}
    return set(value) <= allowed and ("budgetMs" not in value or is_budget(value["budgetMs"]))


def is_budget(value: Any) -> bool:
    asked = None if isinstance(value, str) else as_number(value)
    return asked is not None and 0 <= asked < math.inf


def timeout_seconds(requested: float | None) -> int:
    """Whole seconds, at least 1; never clamped from above. Raises `ToolFailure`."""
    if requested is None:
        return DEFAULT_TIMEOUT_S
    if not (math.isfinite(requested) and 0 < requested <= MAX_TIMEOUT_S):
        raise ToolFailure(
            f"Invalid timeout {shown_number(requested)}: timeout must be a finite number greater than 0 "
            f"and no more than {MAX_TIMEOUT_S} seconds"
        )
    return max(math.floor(requested), 1)


def environment(session: dict[str, str], extra: dict[str, str]) -> dict[str, str]:
    """The session's variables with the caller's, who cannot fake those that tell the session. Raises `ToolFailure`."""
    for name, value in extra.items():
        if not _ENV_NAME.fullmatch(name):
            raise ToolFailure(f"Invalid bash env name: {name if name.isprintable() else shorten(name)}")
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise ToolFailure(f"Invalid bash env value of {name}: it holds a NUL character or a lone surrogate")
    return session | {name: value for name, value in extra.items() if name not in _PROTECTED}


def refused_without_owner(arguments: dict[str, Any]) -> str | None:
    """Why a shell call cannot be made where nobody owns tasks."""
    if arguments.get("action") is not None:
        return NO_OWNER["wait"]
    wait = arguments.get("wait")
    return NO_OWNER["background"] if isinstance(wait, dict) and wait.get("kind") == "background" else None


# ---- asking ------------------------------------------------------------------------------------------------------


def order(request: ToolRequest, call: Address[ToolCallMail]) -> LaunchShell | WaitForTask | KillTask:
    """What a call asks of the tasks' desk. Raises `ToolFailure`."""
    arguments = request.tool_call.arguments
    if request.tool.name == "kill":
        return KillTask(text(arguments, "id"), call)
    if arguments.get("action") is not None:
        return WaitForTask(text(arguments, "id"), arguments.get("budgetMs"), call)
    wait = arguments.get("wait") or {"kind": "default"}
    operation = f"{request.call}:{request.tool_call.id}"
    plan = _plan(request.tool.name, request.place, arguments)
    return LaunchShell(operation, plan, WaitPolicy(wait["kind"], wait.get("budgetMs")), call)


def _plan(shell: str, place: ToolPlace, arguments: dict[str, Any]) -> ShellTaskPlan:
    variables = environment(dict(place.environment), arguments.get("env") or {})
    cwd = arguments.get("cwd")
    try:
        where = paths.resolve(cwd, place.cwd) if cwd else place.cwd
    except paths.PathRefused as refused:
        raise ToolFailure(str(refused)) from None
    seconds = timeout_seconds(number(arguments, "timeout"))
    pty = wants_pty(arguments.get("pty") is True, variables)
    return ShellTaskPlan(text(arguments, "command"), where, place.session_id, variables, seconds, pty, shell)


# ---- saying ------------------------------------------------------------------------------------------------------


def output(request: ToolRequest, answer: TaskAnswer) -> ToolOutput:
    """The result of the call."""
    match answer.outcome:
        case str() as refusal:
            return ToolOutput([TextContent(refusal)], is_error=True)
        case t.CancelReceipt() as receipt:
            failed = isinstance(receipt.cleanup, t.CleanupFailed)
            return ToolOutput([TextContent(encode(receipt).decode())], msgspec.to_builtins(receipt), is_error=failed)
        case observation if request.tool_call.arguments.get("action") is not None:
            return _observed(observation, answer.view)
        case observation:
            return _launched(request.tool_call.arguments, observation, answer.view)


def _launched(arguments: dict[str, Any], observation: t.Observation, view: OutputView | None) -> ToolOutput:
    details = _launch_details(arguments, view)
    yielded = isinstance(observation, t.YieldedWait)
    if yielded:
        details["observation"] = msgspec.to_builtins(observation)
        return text_output(_text(view, f"Command is still running (task {observation.task_id})."), details)
    assert isinstance(observation, t.SettledWait)
    match observation.result:
        case t.TaskFailed(code="SpawnFailed" | "ContainmentUnavailable", message=message):
            return ToolOutput([TextContent(message)], is_error=True)
        case t.TaskCompleted(exit_code=code):
            if code:
                details["exitCode"] = code
            ending = exit_note(code or 0)
        case t.TaskCancelled(cause="execution-timeout"):
            ending = timeout_note(details["timeoutSeconds"])
        case t.TaskCancelled():
            ending = ABORT_NOTE
        case t.TaskFailed(message=message):
            ending = message
    return ToolOutput([TextContent(_text(view, ending))], details, is_error=bool(ending))


def _launch_details(arguments: dict[str, Any], view: OutputView | None) -> dict[str, Any]:
    requested = number(arguments, "timeout")
    details: dict[str, Any] = {"timeoutSeconds": timeout_seconds(requested)}
    if requested is not None and requested != details["timeoutSeconds"]:
        details["requestedTimeoutSeconds"] = requested
    if view is None:
        return details
    details["wallTimeMs"] = view.wall_ms
    if view.cut.truncated:
        details["truncation"] = msgspec.to_builtins(view.cut)
    if view.path is not None:
        details["fullOutputPath"] = view.path
    return details


def _text(view: OutputView | None, ending: str) -> str:
    if view is None:
        return f"(no output)\n\n{ending}" if ending else "(no output)"
    cut = view.cut
    if ending:
        cut = msgspec.structs.replace(cut, content=cut.content.removesuffix("\n"))
    return bash_tool_text(cut, view.path, view.last_line_bytes, ending)


def _observed(observation: t.Observation, view: OutputView | None) -> ToolOutput:
    details: dict[str, Any] = {"observation": msgspec.to_builtins(observation)}
    shown = ""
    if view is not None:
        shown = page_text(view.page) if view.page is not None else settled_text(view)
    if isinstance(observation, t.SettledWait):
        code = getattr(observation.result, "exit_code", UNSET)
        if code is not UNSET:
            details["exitCode"] = code
    lines = [shown.removesuffix("\n"), encode(observation).decode()]
    if view is not None and view.path is not None:
        details["fullOutputPath"] = view.path
        lines.append(f"Full output: {view.path}")
    return text_output("\n\n".join(filter(None, lines)), details)
