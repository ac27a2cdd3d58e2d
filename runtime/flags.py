"""Every flag of `atomic` with its help, as a table: for the command line, for `--help` and for shell completions.

What a start needs of it is a lookup. The parser that writes help and completions is made from the same table, and only
for them: it cost every start 16 of 407 million instructions. Source: sessions 8.1.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from protocol.model import THINKING_LEVELS

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable

Arity = Literal["none", "one", "optional"]


class Flag(Struct, frozen=True):
    """`names` are its spellings; the first long one, unless `dest` is given, names its value. `sets` is what a flag
    without a value stands for; with `repeated` every value counts, else the last one."""

    names: tuple[str, ...]
    help: str
    takes: Arity = "none"
    metavar: str | None = None
    dest: str = ""
    sets: bool = True
    repeated: bool = False

    @property
    def key(self) -> str:
        long = next((name for name in self.names if name.startswith("--")), self.names[0])
        return self.dest or long.lstrip("-").replace("-", "_")

    @property
    def default(self) -> Any:
        if self.repeated:
            return []
        return False if self.takes == "none" and self.key != "approve" else None


def _switch(*names: str, help: str, dest: str = "", sets: bool = True) -> Flag:
    return Flag(names, help, dest=dest, sets=sets)


def _value(*names: str, help: str, metavar: str, repeated: bool = False, optional: bool = False) -> Flag:
    return Flag(names, help, "optional" if optional else "one", metavar, repeated=repeated)


MODE_FLAGS = (
    _value("--mode", metavar="MODE", help="rpc: driven over stdin; json: one run as events; text: one run as text"),
    _switch("-p", "--print", help="the same as --mode text; so is stdin or stdout without a terminal"),
    _switch("--json-deltas", help="--mode json: every delta, without the message so far"),
    _value("--rpc-compat", metavar="CLIENT", help="--mode rpc: tell more, as clients of that program need; only: pi"),
)
MODEL_FLAGS = (
    _value("--provider", metavar="ID", help="provider of the model that --model names"),
    _value("--model", metavar="PATTERN", help="model to start with: provider/id, id, or a part of one; id:level too"),
    _value("--models", metavar="PATTERNS", help="models to cycle through, with commas between; * and :level too"),
    _value("--api-key", metavar="KEY", help="key for the provider of the model, for this process only"),
    _value("--list-models", metavar="SEARCH", optional=True, help="list the models that can be used now, and exit"),
    _value("--thinking", metavar="LEVEL", help=f"thinking level to start with: {', '.join(THINKING_LEVELS)}"),
)
SESSION_FLAGS = (
    _value("--session", metavar="PATH|ID", help="open this session: a path, an id or the beginning of one"),
    _value("-r", "--resume", metavar="PATH|ID", optional=True, help="the same as --session"),
    _switch("-c", "--continue", dest="continue_recent", help="open the most recent session"),
    _value("--session-id", metavar="ID", help="open the session with exactly this id, or begin one with it"),
    _value("--fork", metavar="PATH|ID", help="begin a new session with what this one holds"),
    _value("--session-dir", metavar="DIR", help="keep session files in DIR"),
    _switch("--no-session", help="keep the session in memory only"),
    _value("-n", "--name", metavar="NAME", help="name of the session"),
    _value("--export", metavar="PATH", help="write this session as a page, to the path behind it, and exit"),
)
PROMPT_FLAGS = (
    _value("--system-prompt", metavar="TEXT|FILE", help="in place of the built-in system prompt"),
    _value("--append-system-prompt", metavar="TEXT|FILE", repeated=True, help="more of it; may be repeated"),
    _value("-t", "--tools", metavar="NAMES", help="only these tools, with commas between"),
    _value("-xt", "--exclude-tools", metavar="NAMES", help="not these tools"),
    _switch("-nt", "--no-tools", "-nbt", "--no-builtin-tools", dest="no_tools", help="no tools"),
)
RESOURCE_FLAGS = (
    _switch("-a", "--approve", help="trust this project's files"),
    _switch("-na", "--no-approve", dest="approve", sets=False, help="do not trust this project's files"),
    _switch("-nc", "--no-context-files", help="read no AGENTS.md or CLAUDE.md"),
    _switch("-ne", "--no-extensions", help="accepted; there are no extensions yet"),
    _value("--skill", metavar="PATH", repeated=True, help="a file or folder of skills; may be repeated"),
    _value(
        "--prompt-template", metavar="PATH", repeated=True, help="a file or folder of prompt templates; may be repeated"
    ),
    _switch("-ns", "--no-skills", help="load no skills but those of --skill"),
    _switch("-np", "--no-prompt-templates", help="load no templates but those of --prompt-template"),
    _switch("--no-themes", help="accepted; there are no themes"),
)
OTHER_FLAGS = (
    _value("--trace", metavar="FILE", help="write the mail between actors to FILE, secrets removed"),
    _switch("--offline", help="start without looking anything up on the network"),
    _switch("--verbose", help="tell on stderr what the session starts with"),
    _switch("-v", "--version", help="print the version and exit"),
    _switch("-h", "--help", help="print this and exit"),
)
FLAGS = (*MODE_FLAGS, *MODEL_FLAGS, *SESSION_FLAGS, *PROMPT_FLAGS, *RESOURCE_FLAGS, *OTHER_FLAGS)
BY_NAME = {name: flag for flag in FLAGS for name in flag.names}


class BadFlag(ValueError):
    """A flag that is used as it cannot be; the text begins with a small letter."""


def flag_values(words: Iterable[str]) -> dict[str, Any]:
    """What each flag is set to, from words that are flags, each with its value behind `=` if it has one.

    Raises `BadFlag`.
    """
    values = {flag.key: flag.default for flag in reversed(FLAGS)}
    for word in words:
        name, given, value = word.partition("=")
        flag = BY_NAME[name]
        said = "/".join(flag.names)
        if flag.takes == "none" and given:
            raise BadFlag(f"argument {said}: ignored explicit argument {value!r}")
        if flag.takes == "one" and not given:
            raise BadFlag(f"argument {said}: expected one argument")
        if flag.repeated:
            values[flag.key].append(value)
        else:
            values[flag.key] = value if flag.takes != "none" else flag.sets
    return values


def build_parser() -> ArgumentParser:
    """What describes the flags to people and shells. Messages and `@` files are no part of it: see
    `runtime.arguments`."""
    import argparse
    import functools

    parser = argparse.ArgumentParser(
        prog="atomic",
        usage="atomic [options] [@file ...] [message ...]\n"
        "       atomic {agents,auth,completions,doctor,export,schema,sessions,tasks} ...",
        allow_abbrev=False,
        add_help=False,
        formatter_class=functools.partial(argparse.HelpFormatter, width=_help_width()),
        description="A coding agent that programs drive: JSON lines in on stdin, JSON lines out on stdout. "
        "With -p it answers one prompt as text, with --mode json as events.",
        epilog="In RPC mode the end of stdin means stop. Files and environment variables: docs/configuration.md.",
    )
    for flag in FLAGS:
        parser.add_argument(*flag.names, dest=flag.key, help=flag.help, **_kind(flag))
    return parser


def _kind(flag: Flag) -> dict[str, Any]:
    if flag.takes == "none":
        return {"action": "store_true"}
    kind = {"nargs": "?"} if flag.takes == "optional" else {"action": "append"} if flag.repeated else {}
    return {"metavar": flag.metavar, **kind}


def _help_width() -> int:
    """Columns: those of the terminal, at most 118 and at least 60; 78 where stdout is none."""
    try:
        return max(60, min(os.get_terminal_size(1).columns - 2, 118))
    except OSError:
        return 78
