"""The keys of `settings.json`: where each one stands, what it may be, and the field of `Settings` that it becomes.

Promises one warning for a value that is not allowed, naming the key, the value and what is allowed, and one for the
keys that mean nothing. Of a list or an object the good entries count and each bad one is named. What may hold a secret
is told by its type. `null` unsets what a weaker file says. Source: sessions 6.1 and 6.2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from protocol.model import THINKING_LEVELS
from runtime.config_values import is_unicode, is_writable, kind_of, shown
from runtime.unknown_keys import paths_of, told_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECRETS = frozenset({"httpProxy", "shellCommandPrefix"})
SHOWN_ENTRIES = 5
GLOBAL_ONLY = frozenset({"default_project_trust", "http_proxy", "ca_file"})
# Lists of paths, which `templates.setting_paths` reads, since each file's count.
PATH_LISTS = frozenset({"skills", "prompts"})
# What the reference knows and this program has no use for: a file may be shared with it, so nothing is said. There is
# no other transport than HTTP, no terminal interface, no extension, and nothing is reported to anybody; an exported
# page takes its colours from whoever looks at it. `packages` is read by `templates.package_folders`, for agents alone.
UNUSED = frozenset(
    {
        *("transport", "websockets", "websocketConnectTimeoutMs", "bashInterceptor", "enableSkillCommands", "theme"),
        *("packages", "extensions", "themes", "workflows", "enableInstallTelemetry"),
        "quietStartup",  # clients that wrap the program in another protocol write and read it
    }
)
LONGEST_MS = 2_000_000_000  # 23 days; sockets and timers of some systems count in 31 bits
LARGEST = 2**53 - 1  # what every reader of the wire takes for a whole number
BUDGET_LEVELS = ("minimal", "low", "medium", "high")

_DURATION = r"(?a)(\d+(?:\.\d+)?)\s*(ms|s|m|h)?"  # compiled on first use, not at start
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, None: 1}


ABSENT = object()


class NotAllowed(Exception):
    """Says what would have been allowed."""


class BadEntry(Struct, frozen=True):
    """`place` is where it stands, under its key."""

    place: str
    value: object
    allowed: str


class Partly(Struct, frozen=True):
    """A list or an object of which some entries are bad. `value` holds the others, a list is ABSENT without any."""

    value: Any
    bad: list[BadEntry]


class Key(Struct, frozen=True):
    """`path` leads to the value inside the document; `read` gives the checked value or raises NotAllowed."""

    attribute: str
    path: tuple[str, ...]
    read: Callable[[Any], Any]


def read_document(document: dict[str, Any], scope: str, warnings: list[str]) -> Iterator[tuple[str, Any]]:
    """The good values of one file, None for an explicit `null`; a warning for each of the others."""
    for key in KEYS:
        if scope == "project" and key.attribute in GLOBAL_ONLY:
            continue
        try:
            value = _look_up(document, key.path)
            if value is not ABSENT:
                value = None if value is None else _read(key, value, scope, warnings)
            if value is not ABSENT:
                yield key.attribute, value
        except _NotASection as error:
            _warn_once(warnings, scope, error.name, error.value, "an object")
        except NotAllowed as error:
            _warn_once(warnings, scope, ".".join(key.path), value, str(error))


def _read(key: Key, value: Any, scope: str, warnings: list[str]) -> Any:
    if not is_writable(value):
        raise NotAllowed("Unicode text, not nested too deep")
    read = key.read(value)
    if not isinstance(read, Partly):
        return read
    name = ".".join(key.path)
    told = [f"{bad.place} is {_told(bad.value)} (allowed: {bad.allowed})" for bad in read.bad[:SHOWN_ENTRIES]]
    more = f" and {len(read.bad) - SHOWN_ENTRIES} more" if len(read.bad) > SHOWN_ENTRIES else ""
    warnings.append(f"Invalid {name} setting: {', '.join(told)}{more} ({scope} settings); the others count")
    return read.value


def unknown_setting(document: dict[str, Any], path: str) -> str | None:
    """The warning for the keys of one file, at `path`, that mean nothing; None when all do."""
    known = {".".join(key.path) for key in KEYS}
    sections = {".".join(key.path[:depth]) for key in KEYS for depth in range(1, len(key.path))}
    return told_unknown(path, paths_of(document, sections), known | sections | PATH_LISTS | UNUSED)


class _NotASection(Exception):
    def __init__(self, name: str, value: object) -> None:
        self.name, self.value = name, value


def _look_up(document: dict[str, Any], path: tuple[str, ...]) -> Any:
    """ABSENT if nobody wrote it; None also below a section that is `null`."""
    value: Any = document
    for depth, name in enumerate(path):
        if not isinstance(value, dict):
            raise _NotASection(".".join(path[:depth]), value)
        value = value.get(name, ABSENT)
        if value is None or value is ABSENT:
            return value
    return value


def _warn_once(warnings: list[str], scope: str, name: str, value: object, allowed: str) -> None:
    told = f"of type {kind_of(value)}" if name in SECRETS else _told(value)
    text = f"Invalid {name} setting: {told} ({scope} settings); allowed: {allowed}; it is ignored"
    if text not in warnings:
        warnings.append(text)


def _told(value: object) -> str:
    return shown(value) if isinstance(value, str | int | float) else f"of type {kind_of(value)}"


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NotAllowed("true or false")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise NotAllowed("a non-empty string")
    return value


def one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words or not isinstance(value, str):
            raise NotAllowed(", ".join(words))
        return value

    return read


def path(value: Any) -> str:
    """What the system takes for one, whether it exists or not."""
    if not isinstance(value, str) or not value.strip() or "\0" in value or not is_unicode(value):
        raise NotAllowed("a path")
    return value


def count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST or value % 1:
        raise NotAllowed("a whole number of 0 or more")
    return int(value)


def floor_count(value: Any) -> int:
    """`preserve_recent` may be any finite number: its floor, at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value - value != 0:
        raise NotAllowed("a number")
    return min(max(0, int(value // 1)), LARGEST)


def ratio(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise NotAllowed("a number above 0 and below 1")
    return float(value)


def duration(value: Any) -> int:
    """Milliseconds from a number, a numeric string, `500ms`, `30s`, `5m`, `1h`; `disabled` is 0."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word == "disabled":
            return 0
        match = re.fullmatch(_DURATION, word)
        value = float(match[1]) * _MILLISECONDS[match[2]] if match else None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return min(round(value), LONGEST_MS)
    raise NotAllowed('milliseconds, "500ms", "30s", "5m", "1h" or "disabled"')


def names(value: Any) -> tuple[str, ...] | Partly:
    """Strings, trimmed."""
    if not isinstance(value, list):
        raise NotAllowed("an array of strings")
    good = tuple(item.strip() for item in value if isinstance(item, str) and item.strip())
    bad = [
        BadEntry(f"[{position}]", item, "a non-empty string")
        for position, item in enumerate(value)
        if not isinstance(item, str) or not item.strip()
    ]
    return Partly(good or ABSENT, bad) if bad else good


def _entries(value: dict[str, Any], read: Callable[[str, Any], Any]) -> dict[str, Any] | Partly:
    """`read` gives the checked value for name and value, or raises NotAllowed; `null` is absent."""
    good, bad = dict[str, Any](), list[BadEntry]()
    for name, entry in value.items():
        try:
            if entry is not None:
                good[name] = read(name, entry)
        except NotAllowed as error:
            bad.append(BadEntry(shown(name), entry, str(error)))
    return Partly(good, bad) if bad else good


def budgets(value: Any) -> dict[str, int] | Partly:
    if not isinstance(value, dict):
        raise NotAllowed("an object")
    return _entries(value, _budget)


def _budget(level: str, value: Any) -> int:
    if level not in BUDGET_LEVELS:
        raise NotAllowed(f"budgets for {', '.join(BUDGET_LEVELS)}")
    return count(value)


def levels(value: Any) -> dict[str, str] | Partly:
    known = one_of(*THINKING_LEVELS)
    if not isinstance(value, dict):
        raise NotAllowed('an object with a level by "provider/id"')
    return _entries(value, lambda _, level: known(level))


def task_keys(value: Any) -> dict[str, tuple[str, ...]] | Partly:
    from runtime.inspector.keys import read_keys

    def read(ask: str, keys: Any) -> tuple[str, ...]:
        try:
            return read_keys(ask, keys)
        except ValueError as error:
            raise NotAllowed(str(error)) from None

    if not isinstance(value, dict):
        raise NotAllowed("an object of keys by action")
    return _entries(value, read)


MODEL_BUDGET_FIELDS = ("reserveTokens", "preserve_recent")


def model_budgets(value: Any) -> dict[str, dict[str, int]] | Partly:
    """`compaction.modelOverrides`: by exact `provider/modelId`, whole numbers for the fields that are there."""
    if not isinstance(value, dict):
        raise NotAllowed('an object of objects by "provider/modelId"')
    good, bad = dict[str, dict[str, int]](), list[BadEntry]()
    for model, fields in value.items():
        if isinstance(fields, dict):
            known = {name: fields[name] for name in MODEL_BUDGET_FIELDS if name in fields}
            read = _entries(known, lambda _, number: _safe_count(number))
            if not isinstance(read, Partly):
                good[model] = read
                continue
            bad += [replace(entry, place=f"{shown(model)}.{entry.place}") for entry in read.bad]
            good.update({model: read.value} if read.value else {})
        else:
            bad.append(BadEntry(shown(model), fields, "an object"))
    return Partly(good, bad) if bad else good


BUILT_IN_AGENTS = ("analyst", "reviewer", "scout", "worker")


def agent_overrides(value: Any) -> dict[str, dict[str, Any]] | Partly:
    """`subagents.agentOverrides`: fields by the name of an agent that comes with the program; `true` and `false` as
    text, like in the front matter that they are laid over."""
    if not isinstance(value, dict):
        raise NotAllowed("an object of objects by the name of a built-in agent")
    good, bad = dict[str, dict[str, Any]](), list[BadEntry]()
    for agent, fields in value.items():
        if agent not in BUILT_IN_AGENTS:
            bad.append(BadEntry(shown(agent), fields, f"agents {', '.join(BUILT_IN_AGENTS)}"))
        elif not isinstance(fields, dict):
            bad.append(BadEntry(shown(agent), fields, "an object"))
        elif isinstance(read := _entries(fields, _agent_field), Partly):
            bad += [replace(entry, place=f"{shown(agent)}.{entry.place}") for entry in read.bad]
            good.update({agent: read.value} if read.value else {})
        else:
            good[agent] = read
    return Partly(good, bad) if bad else good


def _agent_field(name: str, value: Any) -> Any:
    if name not in _AGENT_FIELDS:
        raise NotAllowed(f"fields {', '.join(_AGENT_FIELDS)}")
    return _AGENT_FIELDS[name](value)


def _switch(value: Any) -> str:
    return "true" if flag(value) else "false"


def _listing(value: Any) -> str:
    """Names with commas between them, however they were written; none at all is allowed."""
    entries = value.split(",") if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise NotAllowed("an array of strings")
    return ",".join(entries)


def from_1_to(most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= most or value % 1:
            raise NotAllowed(f"a whole number from 1 to {most}")
        return int(value)

    return read


_AGENT_FIELDS: dict[str, Callable[[Any], Any]] = {
    "disabled": _switch,
    "description": text,
    "systemPrompt": text,
    "systemPromptMode": one_of("append", "replace"),
    "tools": _listing,
    "model": text,
    "fallbackModels": _listing,
    "thinking": one_of(*THINKING_LEVELS),
    "inheritProjectContext": _switch,
    "inheritSkills": _switch,
    "skills": _listing,
    "defaultContext": one_of("fresh", "fork"),
    "defaultReads": _listing,
    "output": text,
    "interactive": _switch,
}


def _safe_count(value: Any) -> int:
    try:
        return count(value)
    except NotAllowed:
        raise NotAllowed(f"a whole number from 0 to {LARGEST}") from None


_queue_mode = one_of("all", "one-at-a-time")

# Of two keys for one attribute the first counts: the second is the key's older name.
KEYS: tuple[Key, ...] = (
    Key("steering_mode", ("steeringMode",), _queue_mode),
    Key("steering_mode", ("queueMode",), _queue_mode),
    Key("follow_up_mode", ("followUpMode",), _queue_mode),
    Key("default_provider", ("defaultProvider",), text),
    Key("default_model", ("defaultModel",), text),
    Key("default_thinking_level", ("defaultThinkingLevel",), one_of(*THINKING_LEVELS)),
    Key("model_thinking_levels", ("modelThinkingLevels",), levels),
    Key("thinking_budgets", ("thinkingBudgets",), budgets),
    Key("fallback_models", ("fallbackModels",), names),
    Key("enabled_models", ("enabledModels",), names),
    Key("default_tools", ("defaultTools",), names),
    Key("compaction_enabled", ("compaction", "enabled"), flag),
    Key("compaction_reserve_tokens", ("compaction", "reserveTokens"), count),
    Key("compression_ratio", ("compaction", "compression_ratio"), ratio),
    Key("preserve_recent", ("compaction", "preserve_recent"), floor_count),
    Key("model_budgets", ("compaction", "modelOverrides"), model_budgets),
    Key("compaction_query", ("compaction", "query"), text),
    Key("branch_summary_reserve_tokens", ("branchSummary", "reserveTokens"), count),
    Key("session_summary_enabled", ("sessionSummary", "enabled"), flag),
    Key("retry_enabled", ("retry", "enabled"), flag),
    Key("retry_max_retries", ("retry", "maxRetries"), count),
    Key("retry_base_delay_ms", ("retry", "baseDelayMs"), count),
    Key("provider_timeout_ms", ("retry", "provider", "timeoutMs"), duration),
    Key("provider_max_retries", ("retry", "provider", "maxRetries"), count),
    Key("provider_max_retry_delay_ms", ("retry", "provider", "maxRetryDelayMs"), count),
    Key("provider_max_retry_delay_ms", ("retry", "maxDelayMs"), count),
    Key("http_proxy", ("httpProxy",), text),
    Key("ca_file", ("caFile",), path),
    Key("http_connect_timeout_ms", ("httpConnectTimeoutMs",), duration),
    Key("http_idle_timeout_ms", ("httpIdleTimeoutMs",), duration),
    Key("http_total_timeout_ms", ("httpTotalTimeoutMs",), duration),
    Key("stream_deadline_ms", ("streamDeadlineMs",), duration),
    Key("cache_retention", ("cacheRetention",), one_of("none", "short", "long")),
    Key("session_dir", ("sessionDir",), path),
    Key("shell_path", ("shellPath",), path),
    Key("task_wait", ("tasks", "wait", "kind"), one_of("automatic", "until-settled")),
    Key("task_command_budget_ms", ("tasks", "wait", "commandBudgetMs"), count),
    Key("task_agent_budget_ms", ("tasks", "wait", "agentBudgetMs"), count),
    Key("running_subagents", ("subagents", "concurrency"), from_1_to(4)),
    Key("max_subagents", ("subagents", "maxTasks"), from_1_to(50)),
    Key("agent_overrides", ("subagents", "agentOverrides"), agent_overrides),
    Key("worktree_hook", ("subagents", "worktreeHook"), path),
    Key("worktree_hook_timeout_ms", ("subagents", "worktreeHookTimeoutMs"), duration),
    Key("task_keys", ("tasks", "keys"), task_keys),
    Key("shell_command_prefix", ("shellCommandPrefix",), text),
    Key("block_images", ("images", "blockImages"), flag),
    Key("auto_resize_images", ("images", "autoResize"), flag),
    Key("search_context_before", ("search", "contextBefore"), count),
    Key("search_context_after", ("search", "contextAfter"), count),
    Key("default_project_trust", ("defaultProjectTrust",), one_of("ask", "always", "never")),
)
