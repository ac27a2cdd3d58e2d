"""The table of built-in tools: what the model is told of each, what a run is given, and what it gives back.

Owns the names, schemas and descriptions. A tool's own module is imported on its first run, so this one is cheap at
start. `Tool.run` blocks and belongs in a pump thread; it returns a `ToolOutput` or raises `ToolFailure` (or an
`OSError`), whose text is the error result. Source: `tasks.md` 1.1 to 1.8.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct

from actors.tool import subagent_schema, talk_schema
from protocol.messages import TextContent, UserContent

if TYPE_CHECKING:
    from actors.shell.process import Process
    from actors.shell.spill import Spill

_POWERSHELL = ("powershell",) if sys.platform == "win32" else ()
DEFAULT_TOOLS = ("read", "bash", *_POWERSHELL, "edit", "write", "find", "search", "kill", "subagent")
ABORTED = "Operation aborted"


class ToolOutput(Struct, frozen=True):
    """A result, or in `ToolContext.update` the whole result so far. `details` is any JSON value."""

    content: list[UserContent]
    details: Any = UNSET
    is_error: bool = False
    terminate: bool = False


class ToolOptions(Struct, frozen=True):
    """What the settings say of tools: lines that `search` shows around a match (0 or more), and whether `read` makes
    large images smaller."""

    lines_before: int = 1
    lines_after: int = 3
    resize_images: bool = True


class ToolFailure(Exception):
    """The call failed; `str()` of it is the text of the error result, which may carry `details`."""

    def __init__(self, text: str, details: Any = UNSET) -> None:
        super().__init__(text)
        self.details = details


DEFAULT_OPTIONS = ToolOptions()


def _forget(process: Process) -> None:
    pass


def _at_once(work: Callable[[], None]) -> None:
    work()


class ToolContext:
    """What one run may touch. The actor makes it, and calls `cancel` from its own thread; what is then to be done is
    done `beside` it.

    `now` is monotonic seconds; `environment` takes the session's snapshot of variables at the moment it is called.
    `leave_behind` gets a command's process whose background processes outlive it: whoever takes it ends them when the
    program ends.
    """

    __slots__ = (
        "_beside",
        "_callbacks",
        "_cancelled",
        "cwd",
        "environment",
        "leave_behind",
        "now",
        "options",
        "shell_path",
        "shell_prefix",
        "spill",
        "supports_images",
        "update",
    )

    def __init__(
        self,
        *,
        cwd: str,
        update: Callable[[ToolOutput], None],
        now: Callable[[], float],
        environment: Callable[[], dict[str, str]],
        spill: Callable[[], Spill],
        shell_path: str | None = None,
        shell_prefix: str | None = None,
        supports_images: bool = True,
        options: ToolOptions = DEFAULT_OPTIONS,
        leave_behind: Callable[[Process], None] = _forget,
        beside: Callable[[Callable[[], None]], None] = _at_once,
    ) -> None:
        self.cwd = cwd
        self.update = update
        self.now = now
        self.environment = environment
        self.spill = spill
        self.shell_path = shell_path
        self.shell_prefix = shell_prefix
        self.supports_images = supports_images
        self.options = options
        self.leave_behind = leave_behind
        self._cancelled = False
        self._beside = beside
        self._callbacks: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Any thread, any number of times."""
        self._cancelled = True
        if self._callbacks:
            self._beside(self._call_back)

    def cancelled(self) -> bool:
        return self._cancelled

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Call `callback` at most once, beside whoever cancels, or here and now if that has happened."""
        self._callbacks.append(callback)
        if self._cancelled:
            self._call_back()

    def resolve(self, path: str) -> str:
        """`path` as the model wrote it, made absolute. Raises `ToolFailure`."""
        from actors.tool import paths

        try:
            return paths.resolve(path, self.cwd)
        except paths.PathRefused as refused:
            raise ToolFailure(str(refused)) from None

    def check(self) -> None:
        """Raise `ToolFailure` ("Operation aborted") once cancelled."""
        if self._cancelled:
            raise ToolFailure(ABORTED)

    def _call_back(self) -> None:
        # `pop` hands each callback to exactly one thread, also when `on_cancel` and `cancel` meet.
        while self._callbacks:
            try:
                callback = self._callbacks.pop()
            except IndexError:
                return
            callback()


class Tool(Struct, frozen=True):
    """One tool. `parameters` is a JSON schema. `mutates(arguments, cwd)` is the real path of the file whose mutations
    must wait for each other, or `None`; it never raises. `parallel` false makes its whole batch sequential. `fault`
    says why arguments do not go together, before the schema is asked. An `owned` tool leaves its work to the session's
    tasks, where there are any; one that `delegates` is first read in a pump, and takes along what the session is. One
    that `talks` speaks to the session's subagents (down), or to whom it is a subagent of (up)."""

    name: str
    description: str
    snippet: str
    parameters: dict[str, Any]
    run: Callable[[ToolContext, dict[str, Any]], ToolOutput]
    mutates: Callable[[dict[str, Any], str], str | None]
    parallel: bool = True
    fault: Callable[[dict[str, Any]], str | None] = lambda arguments: None
    owned: bool = False
    delegates: bool = False
    talks: Literal["down", "up"] | None = None


def text_output(text: str, details: Any = UNSET) -> ToolOutput:
    return ToolOutput([TextContent(text)], details)


def _mutated(arguments: dict[str, Any], cwd: str) -> str | None:
    from actors.tool.paths import mutated

    return mutated(arguments, cwd)


def _lazy(module: str) -> Callable[[ToolContext, dict[str, Any]], ToolOutput]:
    def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        output: ToolOutput = import_module(f"actors.tool.{module}").run(context, arguments)
        return output

    return run


def _nothing(arguments: dict[str, Any], cwd: str) -> str | None:
    return None


def _schema(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str, **limits: Any) -> dict[str, Any]:
    return {"type": "number", "description": description, **limits}


def _switch(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


def _strings(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


_PATH = _string("File path, absolute or relative to the working directory")
_OLD_TEXT = _string("Text to replace, exactly as in the file; it must occur there once")
_NEW_TEXT = _string("Text to put in its place")


def builtin_tools() -> dict[str, Tool]:
    """Every built-in tool by name, in the order in which the model sees them."""
    tools = (
        Tool(
            "read",
            "Read a text file or an image (PNG, JPEG, GIF, WebP), or list a directory. A text result holds at most "
            "3000 lines or 50 KB; the closing note tells which offset continues it.",
            "Read files, images and directories",
            _schema(
                ("path",),
                path=_PATH,
                offset=_number("First line to read, counted from 1", minimum=1),
                limit=_number("Number of lines to read", minimum=1),
            ),
            _lazy("read"),
            _nothing,
        ),
        _shell_tool("bash"),
        Tool(
            "kill",
            "Stop a shell command that runs in the background. Takes the task id that bash gave, not a process id. The "
            "answer tells what was asked for, not that it has ended: a notice follows when nothing of it is left.",
            "Stop background commands",
            _schema(("id",), id=_string("Task id")),
            _lazy("kill"),
            _nothing,
            owned=True,
        ),
        _subagent_tool(),
        _intercom_tool(),
        Tool(
            "edit",
            "Change a text file by exact replacements. All of them refer to the file as it was before the call, must "
            "not overlap, and are made together or not at all. Line endings are kept.",
            "Change files by exact text replacement",
            _schema(
                ("path",),
                path=_PATH,
                edits={
                    "type": "array",
                    "minItems": 1,
                    "description": "Replacements in this file",
                    "items": _schema(("oldText", "newText"), oldText=_OLD_TEXT, newText=_NEW_TEXT),
                },
                oldText=_OLD_TEXT,
                newText=_NEW_TEXT,
            ),
            _lazy("edit"),
            _mutated,
        ),
        Tool(
            "write",
            "Create a file, or replace all of it. Missing parent directories are created.",
            "Create or overwrite files",
            _schema(("path", "content"), path=_PATH, content=_string("The whole new content")),
            _lazy("write"),
            _mutated,
        ),
        Tool(
            "find",
            "Find files by path or glob such as src/**/*.py. Results are relative to the working directory.",
            "Find files by path or glob",
            _schema(
                ("paths",),
                paths=_strings("Files, directories or globs, at least one"),
                hidden=_switch("Include hidden files; true if left out"),
                gitignore=_switch("Leave out what .gitignore names; true if left out"),
                limit=_number("Most results to return, 1 to 200"),
                timeout=_number("Seconds, 0.5 to 60; 5 if left out"),
            ),
            _lazy("find"),
            _nothing,
        ),
        Tool(
            "search",
            "Search file contents for a regular expression. Returns matching lines with their numbers and some "
            "context, 20 files a page.",
            "Search file contents by regular expression",
            _schema(
                ("pattern",),
                pattern=_string("Regular expression"),
                paths={
                    "type": ["string", "array"],
                    "items": {"type": "string"},
                    "description": "Files, directories or globs; the working directory if left out",
                },
                i=_switch("Ignore case"),
                case=_switch("False ignores case"),
                gitignore=_switch("Leave out what .gitignore names; true if left out"),
                skip=_number("Matching files to pass over, to reach a later page"),
            ),
            _lazy("search"),
            _nothing,
        ),
        Tool(
            "ls",
            "List a directory, sorted, hidden entries included, directories with a closing slash.",
            "List directories",
            _schema(
                path=_string("Directory; the working directory if left out"),
                limit=_number("Most entries to return; 500 if left out", minimum=1),
            ),
            _lazy("ls"),
            _nothing,
        ),
    )
    shells = (_shell_tool("powershell"),) if sys.platform == "win32" else ()
    return {tool.name: tool for tool in (*tools, *shells)}


def _subagent_tool() -> Tool:
    def fault(arguments: dict[str, Any]) -> str | None:
        found: str | None = import_module("actors.tool.subagent_call").fault(arguments)
        return found

    def mutates(arguments: dict[str, Any], cwd: str) -> str | None:
        found: str | None = import_module("actors.tool.subagent_call").mutates(arguments, cwd)
        return found

    return Tool(
        "subagent",
        subagent_schema.DESCRIPTION,
        subagent_schema.SNIPPET,
        subagent_schema.parameters(),
        _lazy("subagent"),
        mutates,
        fault=fault,
        owned=True,
        delegates=True,
    )


def _intercom_tool() -> Tool:
    def fault(arguments: dict[str, Any]) -> str | None:
        found: str | None = import_module("actors.tool.intercom_call").fault(arguments)
        return found

    return Tool(
        "intercom",
        talk_schema.INTERCOM,
        talk_schema.INTERCOM_SNIPPET,
        talk_schema.intercom_parameters(),
        _lazy("intercom"),
        _nothing,
        fault=fault,
        owned=True,
        talks="down",
    )


def _shell_tool(name: str) -> Tool:
    def fault(arguments: dict[str, Any]) -> str | None:
        found: str | None = import_module("actors.tool.shell_call").fault(name, arguments)
        return found

    return Tool(
        name,
        "Run a shell command and return its output, stdout and stderr together. Only the last 3000 lines or "
        "50 KB are shown; the note then names the file that holds everything. Standard input is empty. A command that "
        "runs for more than some 10 seconds goes on in the background: the answer then gives its task id, and a notice "
        "comes when it has ended, so do not start it again. Action wait with that id shows what it has put out since, "
        "or waits for its end. What a command leaves running ends with it: run a server with wait kind background.",
        "Run shell commands",
        _schema(
            command=_string("Command line for the shell"),
            timeout=_number("Seconds until the command is stopped, 1 to 3600; 300 if left out"),
            env={
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Extra environment variables",
            },
            cwd=_string("Directory to run in; the working directory if left out"),
            pty=_switch("Run in a pseudo-terminal, for programs that need one"),
            wait={
                "type": "object",
                "description": "How long to wait before the command goes on in the background; best left out",
                "properties": {
                    "kind": {"type": "string", "enum": ["background", "foreground"]},
                    "budgetMs": {"type": "number", "minimum": 0, "description": "Milliseconds, foreground only"},
                },
                "required": ["kind"],
                "additionalProperties": False,
            },
            action={"type": "string", "enum": ["wait"], "description": "Observe a task instead of running a command"},
            id=_string("With action wait: the task id"),
            budgetMs=_number("With action wait: milliseconds to wait at most; 0 only looks", minimum=0),
        ),
        _lazy(name),
        _nothing,
        fault=fault,
        owned=True,
    )
