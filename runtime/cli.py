"""The command line as a value: `parse_arguments` turns argv into frozen `Options`.

Owns what the flags mean together and their conflicts. Promises one line on stderr for every refusal: exit code 2
for an unknown flag or a flag without its value, 1 for flags that are fine alone and impossible as given; nothing on
stdout but `--help` and `--version`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from protocol.model import THINKING_LEVELS, ThinkingLevel
from runtime.arguments import Arguments, sort_arguments
from runtime.config_values import shown
from runtime.flags import BY_NAME, BadFlag, build_parser, flag_values
from runtime.stdio import complain, note, say
from runtime.unknown_keys import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODES = ("rpc", "json", "text")
COMPATIBLE = ("pi",)
NOT_INTERACTIVE = "There is no interactive mode: give a prompt with -p, or choose --mode json or --mode rpc"
TRUE_WORDS = ("1", "true", "yes")


class Options(Struct, frozen=True):
    """What the user asked for. `session_dir` is the flag's word alone, unexpanded; `approve` is None when neither
    `--approve` nor `--no-approve` was given. `messages` and `files` are for the modes `json` and `text`; `tools` is
    None when nobody chose."""

    mode: str = "rpc"
    provider: str | None = None
    model: str | None = None
    models: str | None = None
    api_key: str | None = None
    list_models: str | None = None
    thinking: ThinkingLevel | None = None
    session: str | None = None
    session_dir: str | None = None
    no_session: bool = False
    continue_recent: bool = False
    name: str | None = None
    approve: bool | None = None
    no_extensions: bool = False
    skill: tuple[str, ...] = ()
    prompt_template: tuple[str, ...] = ()
    no_skills: bool = False
    no_prompt_templates: bool = False
    no_themes: bool = False
    no_context_files: bool = False
    trace: str | None = None
    offline: bool = False
    verbose: bool = False
    json_deltas: bool = False
    rpc_compat: str | None = None
    messages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    fork: str | None = None
    session_id: str | None = None
    export: str | None = None
    system_prompt: str | None = None
    append_system_prompt: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    exclude_tools: tuple[str, ...] = ()
    no_tools: bool = False
    warnings: tuple[str, ...] = ()


def parse_arguments(argv: Sequence[str], env: Mapping[str, str], *, terminal: bool = True) -> Options:
    """`argv` without the program name; `terminal` tells that stdin and stdout both are one. Raises SystemExit after its
    one line: 0 for help and version, else 1 or 2.

    Source: sessions 8.1 and 8.4; rpc 1.6 for the exit code of start-up errors.
    """
    sorted_ = sort_arguments(argv, {name: flag.takes for name, flag in BY_NAME.items()})
    if sorted_.unknown is not None:
        _stop(2, f"Unknown option: {shown(sorted_.unknown)}{_suggestion(sorted_.unknown, list(BY_NAME))}")
    try:
        given = flag_values(sorted_.flags)
    except BadFlag as error:
        _stop(2, str(error)[:1].upper() + str(error)[1:])
    if given.pop("help"):
        if given["mode"] in ("json", "rpc"):
            note(build_parser().format_help())
        else:
            say(build_parser().format_help(), end="")
        raise SystemExit(0)
    if given.pop("version"):
        say(f"atomic {program_version()}")
        raise SystemExit(0)
    given["mode"] = _mode(given["mode"], asked=given.pop("print") or not terminal)
    given |= {"messages": sorted_.messages, "files": sorted_.files}
    for name in ("tools", "exclude_tools"):
        given[name] = _names(given[name])
    given["exclude_tools"] = given["exclude_tools"] or ()
    given |= {name: tuple(given[name]) for name in ("append_system_prompt", "skill", "prompt_template")}
    _take_resume(given)
    thinking, warnings = _thinking(given.pop("thinking"))
    given["offline"] = given["offline"] or is_offline(env)
    if given["provider"] is not None and given["model"] is None:
        warnings.append("--provider has no effect without --model")
    options = Options(thinking=thinking, warnings=tuple(warnings), **given)
    if options.mode == "rpc" and options.list_models is None and options.export is None:
        _refuse_arguments(sorted_)
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


def _mode(mode: str | None, *, asked: bool) -> str:
    """`asked` tells that without a mode it is `text`. Source: rpc 6."""
    if mode is None:
        return "text" if asked else ""
    if mode not in MODES:
        _stop(1, f"Invalid --mode: {shown(mode)}; allowed: {', '.join(MODES)}")
    return mode


def _names(value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def _suggestion(flag: str, known: list[str]) -> str:
    near = nearest(flag, known)
    return f"; did you mean {near}?" if near else "; see atomic --help"


def _refuse_arguments(given: Arguments) -> None:
    if given.files:
        _stop(1, "@file arguments are not supported in RPC mode")
    if given.messages:
        _stop(1, f"Unexpected argument: {shown(given.messages[0])}; in RPC mode prompts come over stdin")


def _thinking(level: str | None) -> tuple[ThinkingLevel | None, list[str]]:
    if level is None or level in THINKING_LEVELS:
        return level, []
    allowed = ", ".join(THINKING_LEVELS)
    return None, [f"Invalid thinking level {shown(level)}; allowed: {allowed}. Using the default instead."]


def _refuse_conflicts(options: Options) -> None:
    _refuse_empty(options)
    if options.list_models is not None or options.export is not None:
        return
    if not options.mode:
        _stop(1, NOT_INTERACTIVE)
    if options.json_deltas and options.mode != "json":
        _stop(1, "--json-deltas needs --mode json")
    if options.rpc_compat is not None:
        _refuse_compat(options.rpc_compat, options.mode)
    given = {
        "--session": options.session is not None,
        "--continue": options.continue_recent,
        "--fork": options.fork is not None,
        "--no-session": options.no_session,
        "--session-id": options.session_id is not None,
    }
    _refuse_pairs([flag for flag, on in given.items() if on])


def _refuse_empty(options: Options) -> None:
    single = {
        "--models": options.models,
        "--api-key": options.api_key,
        "--name": options.name,
        "--session": options.session,
        "--session-dir": options.session_dir,
        "--fork": options.fork,
        "--export": options.export,
    }
    repeated = {"--skill": options.skill, "--prompt-template": options.prompt_template}
    given = [*single.items(), *((flag, value) for flag, values in repeated.items() for value in values)]
    for flag, value in given:
        if value is not None and not value.strip():
            _stop(1, f"{flag} must not be empty")


def _take_resume(given: dict[str, Any]) -> None:
    """There is no list to pick from here: `--resume` names the session, as `--session` does."""
    resume = given.pop("resume")
    if resume is None:
        return
    if not resume.strip():
        _stop(1, "--resume needs the path or id of a session (atomic sessions lists them); --continue opens the latest")
    if given["session"] is not None:
        _stop(1, "--session cannot be combined with --resume")
    given["session"] = resume


def _refuse_compat(client: str, mode: str) -> None:
    if client not in COMPATIBLE:
        _stop(1, f"Invalid --rpc-compat: {shown(client)}; allowed: {', '.join(COMPATIBLE)}")
    if mode != "rpc":
        _stop(1, "--rpc-compat needs --mode rpc")


def _refuse_pairs(chosen: list[str]) -> None:
    """Each chooses the session, but a new id goes with a fork and with a session in memory."""
    if not {"--session", "--continue"} & set(chosen):
        chosen = [flag for flag in chosen if flag != "--session-id"]
    if len(chosen) > 1:
        _stop(1, f"{chosen[0]} cannot be combined with {chosen[1]}")


def _stop(code: int, text: str) -> NoReturn:
    complain(text)
    raise SystemExit(code)
