"""Every flag of `atomic` with its help, for parsing, for `--help` and for shell completions. Source: sessions 8.1."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from protocol.model import THINKING_LEVELS

if TYPE_CHECKING:
    from argparse import ArgumentParser


def build_parser() -> ArgumentParser:
    """Prints and exits nothing by itself, save for errors. Messages and `@` files are no part of it: see
    `runtime.arguments`."""
    import argparse
    import functools

    parser = argparse.ArgumentParser(
        prog="atomic",
        usage="atomic [options] [@file ...] [message ...]\n"
        "       atomic {agents,auth,completions,doctor,export,schema,sessions} ...",
        allow_abbrev=False,
        add_help=False,
        # With no width each flag that is added asks shutil for it: 6 ms of imports at every start.
        formatter_class=functools.partial(argparse.HelpFormatter, width=_help_width()),
        description="A coding agent that programs drive: JSON lines in on stdin, JSON lines out on stdout. "
        "With -p it answers one prompt as text, with --mode json as events.",
        epilog="In RPC mode the end of stdin means stop. Files and environment variables: docs/configuration.md.",
    )
    _add_mode_flags(parser)
    _add_model_flags(parser)
    _add_session_flags(parser)
    _add_prompt_flags(parser)
    _add_resource_flags(parser)
    parser.add_argument("--trace", metavar="FILE", help="write the mail between actors to FILE, secrets removed")
    parser.add_argument("--offline", action="store_true", help="start without looking anything up on the network")
    parser.add_argument("--verbose", action="store_true", help="tell on stderr what the session starts with")
    parser.add_argument("-v", "--version", action="store_true", help="print the version and exit")
    parser.add_argument("-h", "--help", action="store_true", help="print this and exit")
    return parser


def _help_width() -> int:
    """Columns: those of the terminal, at most 118 and at least 60; 78 where stdout is none."""
    try:
        return max(60, min(os.get_terminal_size(1).columns - 2, 118))
    except OSError:
        return 78


def _add_mode_flags(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--mode", metavar="MODE", help="rpc: driven over stdin; json: one run as events; text: one run as text")
    add("-p", "--print", action="store_true", help="the same as --mode text; so is stdin or stdout without a terminal")
    add("--json-deltas", action="store_true", help="--mode json: every delta, without the message so far")
    add("--rpc-compat", metavar="CLIENT", help="--mode rpc: tell more, as clients of that program need; only: pi")


def _add_model_flags(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--provider", metavar="ID", help="provider of the model that --model names")
    add("--model", metavar="PATTERN", help="model to start with: provider/id, id, or a part of one; id:level too")
    add("--models", metavar="PATTERNS", help="models to cycle through, with commas between; * and :level too")
    add("--api-key", metavar="KEY", help="key for the provider of the model, for this process only")
    add("--list-models", nargs="?", const="", metavar="SEARCH", help="list the models that can be used now, and exit")
    add("--thinking", metavar="LEVEL", help=f"thinking level to start with: {', '.join(THINKING_LEVELS)}")


def _add_session_flags(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--session", metavar="PATH|ID", help="open this session: a path, an id or the beginning of one")
    add("-r", "--resume", nargs="?", const="", metavar="PATH|ID", help="the same as --session")
    add("-c", "--continue", dest="continue_recent", action="store_true", help="open the most recent session")
    add("--session-id", metavar="ID", help="open the session with exactly this id, or begin one with it")
    add("--fork", metavar="PATH|ID", help="begin a new session with what this one holds")
    add("--session-dir", metavar="DIR", help="keep session files in DIR")
    add("--no-session", action="store_true", help="keep the session in memory only")
    add("-n", "--name", metavar="NAME", help="name of the session")
    add("--export", metavar="PATH", help="write this session as a page, to the path behind it, and exit")


def _add_prompt_flags(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--system-prompt", metavar="TEXT|FILE", help="in place of the built-in system prompt")
    add("--append-system-prompt", metavar="TEXT|FILE", action="append", default=[], help="more of it; may be repeated")
    add("-t", "--tools", metavar="NAMES", help="only these tools, with commas between")
    add("-xt", "--exclude-tools", metavar="NAMES", help="not these tools")
    add("-nt", "--no-tools", "-nbt", "--no-builtin-tools", dest="no_tools", action="store_true", help="no tools")


def _add_resource_flags(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("-a", "--approve", dest="approve", action="store_true", default=None, help="trust this project's files")
    add("-na", "--no-approve", dest="approve", action="store_false", help="do not trust this project's files")
    add("-nc", "--no-context-files", action="store_true", help="read no AGENTS.md or CLAUDE.md")
    add("-ne", "--no-extensions", action="store_true", help="accepted; there are no extensions yet")
    for flag, what in (("--skill", "skills"), ("--prompt-template", "prompt templates")):
        add(flag, metavar="PATH", action="append", default=[], help=f"a file or folder of {what}; may be repeated")
    add("-ns", "--no-skills", action="store_true", help="load no skills but those of --skill")
    add("-np", "--no-prompt-templates", action="store_true", help="load no templates but those of --prompt-template")
    add("--no-themes", action="store_true", help="accepted; there are no themes")
