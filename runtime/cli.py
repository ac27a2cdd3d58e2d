"""The command line as a value: `parse_arguments` turns argv into frozen `Options`.

Owns the flags, their conflicts and the text of `--help`. Promises one line on stderr for every refusal: exit code 2
for an unknown flag or a flag without its value, 1 for flags that are fine alone and impossible as given; nothing on
stdout but `--help` and `--version`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct

from protocol.model import THINKING_LEVELS, ThinkingLevel
from runtime.config_values import shown

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Mapping, Sequence

UNSUPPORTED_MODES = ("text", "json")
TRUE_WORDS = ("1", "true", "yes")


class Options(Struct, frozen=True):
    """What the user asked for. `session_dir` is the flag's word alone, unexpanded; `approve` is None when neither
    `--approve` nor `--no-approve` was given."""

    mode: str = "rpc"
    provider: str | None = None
    model: str | None = None
    thinking: ThinkingLevel | None = None
    session: str | None = None
    session_dir: str | None = None
    no_session: bool = False
    continue_recent: bool = False
    name: str | None = None
    approve: bool | None = None
    no_extensions: bool = False
    no_skills: bool = False
    no_prompt_templates: bool = False
    no_themes: bool = False
    no_context_files: bool = False
    trace: str | None = None
    offline: bool = False
    warnings: tuple[str, ...] = ()


def parse_arguments(argv: Sequence[str], env: Mapping[str, str]) -> Options:
    """`argv` without the program name. Raises SystemExit after its one line: 0 for help and version, else 1 or 2.

    Source: sessions 8.1 and 8.4; rpc 1.6 for the exit code of start-up errors.
    """
    parser = _parser()
    _refuse_unknown_flags(parser, argv)
    given = vars(parser.parse_args(list(argv)))
    if given.pop("version"):
        print(f"atomic {program_version()}")
        raise SystemExit(0)
    _refuse_arguments(given.pop("arguments"))
    thinking, warnings = _thinking(given.pop("thinking"))
    given["mode"] = given["mode"] or ""
    given["offline"] = given["offline"] or is_offline(env)
    if given["provider"] is not None and given["model"] is None:
        warnings.append("--provider has no effect without --model")
    options = Options(thinking=thinking, warnings=tuple(warnings), **given)
    _refuse_conflicts(options)
    return options


def twin_variable(env: Mapping[str, str], name: str) -> str | None:
    """The value of `ATOMIC_<name>`, else of `PI_<name>`: the first that is set at all wins, even when empty."""
    return env.get(f"ATOMIC_{name}", env.get(f"PI_{name}"))


def is_offline(env: Mapping[str, str]) -> bool:
    return (twin_variable(env, "OFFLINE") or "").strip().lower() in TRUE_WORDS


def program_version() -> str:
    """The installed version, or `0+unknown` when run from a tree that was never installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("atomic-runtime")
    except PackageNotFoundError:
        return "0+unknown"


def _parser() -> ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(
        prog="atomic",
        allow_abbrev=False,
        description="A coding agent that programs drive: JSON lines in on stdin, JSON lines out on stdout.",
        epilog="End of stdin means stop. Files and environment variables: docs/configuration.md.",
    )
    _add_model_flags(parser)
    _add_session_flags(parser)
    _add_resource_flags(parser)
    parser.add_argument("--trace", metavar="FILE", help="write the mail between actors to FILE, secrets removed")
    parser.add_argument("--offline", action="store_true", help="start without looking anything up on the network")
    parser.add_argument("-v", "--version", action="store_true", help="print the version and exit")
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    return parser


def _add_model_flags(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--mode", metavar="MODE", help='how the program is driven; only "rpc" today')
    add("--provider", metavar="ID", help="provider of the model that --model names")
    add("--model", metavar="PATTERN", help="model to start with: provider/id, id, or a part of one; id:level too")
    add("--thinking", metavar="LEVEL", help=f"thinking level to start with: {', '.join(THINKING_LEVELS)}")


def _add_session_flags(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--session", metavar="PATH|ID", help="open this session: a path, an id or the beginning of one")
    add("-c", "--continue", dest="continue_recent", action="store_true", help="open the most recent session")
    add("--session-dir", metavar="DIR", help="keep session files in DIR")
    add("--no-session", action="store_true", help="keep the session in memory only")
    add("-n", "--name", metavar="NAME", help="name of the session")


def _add_resource_flags(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("-a", "--approve", dest="approve", action="store_true", default=None, help="trust this project's files")
    add("-na", "--no-approve", dest="approve", action="store_false", help="do not trust this project's files")
    add("-nc", "--no-context-files", action="store_true", help="read no AGENTS.md or CLAUDE.md")
    add("-ne", "--no-extensions", action="store_true", help="accepted; there are no extensions yet")
    add("-ns", "--no-skills", action="store_true", help="accepted; there are no skills yet")
    add("-np", "--no-prompt-templates", action="store_true", help="accepted; there are no prompt templates yet")
    add("--no-themes", action="store_true", help="accepted; there are no themes")


def _refuse_unknown_flags(parser: ArgumentParser, argv: Sequence[str]) -> None:
    """argparse alone would read an unknown `-nt` as `-n t`, a session named "t"."""
    known = parser._option_string_actions
    options = argv[: argv.index("--")] if "--" in argv else argv
    for argument in options:
        flag = argument.split("=", 1)[0]
        if len(flag) > 1 and flag.startswith("-") and flag not in known:
            _stop(2, f"Unknown option: {shown(flag)}{_suggestion(flag, list(known))}")
    parser.error = _usage_error  # type: ignore[method-assign]


def _suggestion(flag: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(flag, known, n=1)
    return f"; did you mean {near[0]}?" if near else "; see atomic --help"


def _usage_error(message: str) -> NoReturn:
    _stop(2, message[:1].upper() + message[1:])


def _refuse_arguments(arguments: list[str]) -> None:
    for argument in arguments:
        if argument.startswith("@"):
            _stop(1, "@file arguments are not supported in RPC mode")
        _stop(1, f"Unexpected argument: {shown(argument)}; in RPC mode prompts come over stdin")


def _thinking(level: str | None) -> tuple[ThinkingLevel | None, list[str]]:
    if level is None or level in THINKING_LEVELS:
        return level, []
    allowed = ", ".join(THINKING_LEVELS)
    return None, [f"Invalid thinking level {shown(level)}; allowed: {allowed}. Using the default instead."]


def _refuse_conflicts(options: Options) -> None:
    if options.mode in UNSUPPORTED_MODES:
        _stop(1, f"--mode {options.mode} is not supported yet; allowed: rpc")
    if not options.mode:
        _stop(1, "A mode is needed: atomic --mode rpc")
    if options.mode != "rpc":
        _stop(1, f"Invalid --mode: {shown(options.mode)}; allowed: rpc")
    if options.name is not None and not options.name.strip():
        _stop(1, "--name must not be empty")
    flags = {
        "--session": options.session is not None,
        "--continue": options.continue_recent,
        "--no-session": options.no_session,
    }
    chosen = [flag for flag, on in flags.items() if on]
    if len(chosen) > 1:
        _stop(1, f"{chosen[0]} cannot be combined with {chosen[1]}")
    for flag, value in (("--session", options.session), ("--session-dir", options.session_dir)):
        if value is not None and not value.strip():
            _stop(1, f"{flag} must not be empty")


def _stop(code: int, text: str) -> NoReturn:
    print(f"Error: {text}", file=sys.stderr)
    raise SystemExit(code)
