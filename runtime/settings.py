"""Settings: what the user's and the project's `settings.json` say, checked key by key, and how one key is saved.

Owns the keys, their defaults and the order of the files. Promises that a file or a value that makes no sense costs one
warning and nothing else, and that saving a key touches no other: a file that cannot be read as JSON is never written.
Source: sessions 3.1, 3.7, 6.1 and 6.2.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from actors.session.naming import expand_home, home_dir
from protocol.model import ThinkingLevel
from runtime import setting_keys
from runtime.config_values import decode_document, kind_of
from runtime.regular_file import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Document = dict[str, Any]
QueueMode = Literal["all", "one-at-a-time"]
# Not HTTP_PROXY: by convention it is for http:// alone, and providers are reached by https://.
PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
MERGED = ("thinking_budgets", "model_thinking_levels", "model_budgets", "agent_overrides")
LOCK_TRIES = 10
LOCK_PAUSE_S = 0.02


class SettingsError(ValueError):
    """A setting that could not be saved; the text names the file."""


class Settings(Struct, frozen=True):
    """Every setting that the program reads, in effect. Times are milliseconds, 0 switches a limit off; None means that
    nobody said. `child_variables` are what shell commands see of `httpProxy`; `documents` are the files as read, by
    scope, for a reload that meets a broken file."""

    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"
    default_provider: str | None = None
    default_model: str | None = None
    default_thinking_level: ThinkingLevel | None = None
    model_thinking_levels: dict[str, ThinkingLevel] = {}
    thinking_budgets: dict[str, int] = {}
    fallback_models: tuple[str, ...] = ()
    enabled_models: tuple[str, ...] | None = None
    default_tools: tuple[str, ...] | None = None
    compaction_enabled: bool = True
    compaction_reserve_tokens: int = 16384
    compression_ratio: float = 0.5
    preserve_recent: int = 2
    compaction_query: str | None = None
    model_budgets: dict[str, dict[str, int]] = {}
    branch_summary_reserve_tokens: int = 16384
    session_summary_enabled: bool = False
    retry_enabled: bool = True
    retry_max_retries: int = 3
    retry_base_delay_ms: int = 2000
    provider_timeout_ms: int | None = None
    provider_max_retries: int = 0
    provider_max_retry_delay_ms: int = 60000
    http_proxy: str | None = None
    no_proxy: tuple[str, ...] = ()
    child_variables: tuple[tuple[str, str], ...] = ()
    ca_file: str | None = None
    http_connect_timeout_ms: int = 30000
    http_idle_timeout_ms: int = 600000
    http_total_timeout_ms: int = 3600000
    stream_deadline_ms: int = 300000
    cache_retention: Literal["none", "short", "long"] = "short"
    session_dir: str | None = None
    shell_path: str | None = None
    shell_command_prefix: str | None = None
    task_wait: Literal["automatic", "until-settled"] = "automatic"
    task_command_budget_ms: int = 10000
    task_agent_budget_ms: int = 30000
    running_subagents: int = 4
    max_subagents: int = 50
    agent_overrides: dict[str, dict[str, Any]] = {}
    worktree_hook: str | None = None
    worktree_hook_timeout_ms: int = 30000
    task_keys: dict[str, tuple[str, ...]] = {}
    block_images: bool = False
    auto_resize_images: bool = True
    search_context_before: int = 1
    search_context_after: int = 3
    default_project_trust: Literal["ask", "always", "never"] = "ask"
    documents: tuple[tuple[str, Document | None], ...] = ()


class Scope(Struct, frozen=True):
    """One file: `scope` is `global` or `project`; `document` is None when the file is absent or broken."""

    path: str
    scope: str
    document: Document | None


def load_settings(
    agent_dir: str,
    cwd: str,
    env: Mapping[str, str],
    trusted: bool,
    *,
    context: str = "startup",
    previous: Settings | None = None,
) -> tuple[Settings, list[str]]:
    """The settings in effect and one warning for each fault. A file that is broken counts as empty, or, when `previous`
    read it whole, as it was then."""
    warnings: list[str] = []
    before = dict(previous.documents) if previous else {}
    scopes: list[Scope] = []
    for path, name in _files(agent_dir, cwd, env, trusted):
        document, fault = _read(path)
        if fault:
            warnings.append(f"({context}, {name} settings) {fault}")
            document = before.get(path)
        elif document and not _is_older(path):
            warnings += filter(None, [setting_keys.unknown_setting(document, path)])
        scopes.append(Scope(path, name, document))
    found = _values(scopes, warnings)
    found.update(_from_environment(env, found))
    return Settings(**found, documents=tuple((scope.path, scope.document) for scope in scopes)), warnings


def file_of(settings: Settings, key: str) -> str | None:
    """The path of the file whose value for a key at its top counts; None when no file has one."""
    return next((path for path, document in settings.documents if document and document.get(key) is not None), None)


def settings_path(agent_dir: str) -> str:
    return os.path.join(agent_dir, "settings.json")


def save_setting(agent_dir: str, path: tuple[str, ...], value: Any) -> None:
    """Put `value` at `path` into the user's settings file and keep all else that stands there now.

    Raises SettingsError when the file is locked for 200 ms, broken, or cannot be written. Source: sessions 6.1.
    """
    from filelock import FileLock, Timeout

    target = os.path.realpath(settings_path(agent_dir))
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with FileLock(target + ".lock", timeout=LOCK_TRIES * LOCK_PAUSE_S, poll_interval=LOCK_PAUSE_S):
            _replace(target, _patched(target, path, value))
    except Timeout:
        raise SettingsError(f"{target} is locked by another process; the setting was not saved") from None
    except OSError as error:
        raise SettingsError(f"{target} could not be written: {error.strerror or error}") from None


def _files(agent_dir: str, cwd: str, env: Mapping[str, str], trusted: bool) -> Iterator[tuple[str, str]]:
    """Paths with their scope, strongest first. The older `.pi` files lie under ours, for the default agent dir only."""
    home = home_dir(env, os.path.expanduser("~"))
    if trusted:
        yield os.path.join(cwd, ".atomic", "settings.json"), "project"
        yield os.path.join(cwd, ".pi", "settings.json"), "project"
    yield settings_path(agent_dir), "global"
    if os.path.normpath(agent_dir) == os.path.join(home, ".atomic", "agent"):
        yield os.path.join(home, ".pi", "agent", "settings.json"), "global"


def _is_older(path: str) -> bool:
    """Whether the file is another program's, which may have keys that are not ours."""
    return ".pi" in path.split(os.sep)[-3:]


def _read(path: str) -> tuple[Document | None, str | None]:
    """The document of a file, or what is wrong with it. An absent file has neither."""
    try:
        document = decode_document(read_regular(path))
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as error:
        return None, f"{path} cannot be read: {error.strerror or error}"
    except ValueError as error:
        return None, f"{path} is not valid JSON: {error}"
    if not isinstance(document, dict):
        return None, f"{path} must hold a JSON object, not {kind_of(document)}"
    return document, None


def _values(scopes: list[Scope], warnings: list[str]) -> dict[str, Any]:
    """For each key the value of the strongest scope that holds a good one; none if `null` is stronger."""
    found: dict[str, Any] = {}
    for scope in scopes:
        for attribute, value in setting_keys.read_document(scope.document or {}, scope.scope, warnings):
            stronger = found.get(attribute, {})
            if attribute in MERGED and value is not None and stronger is not None:
                found[attribute] = _merged(value, stronger)
            found.setdefault(attribute, value)
    return {attribute: value for attribute, value in found.items() if value is not None}


def _merged(weaker: Document, stronger: Document) -> Document:
    """Objects in objects are merged too."""
    both = {**weaker, **stronger}
    for name in weaker.keys() & stronger.keys():
        if isinstance(weaker[name], dict) and isinstance(stronger[name], dict):
            both[name] = _merged(weaker[name], stronger[name])
    return both


def _from_environment(env: Mapping[str, str], found: Mapping[str, Any]) -> dict[str, Any]:
    """What the environment says: proxy and cache retention over the files, the certificates under them."""
    said: dict[str, Any] = {}
    home = home_dir(env, os.path.expanduser("~"))
    if (retention := env.get("PI_CACHE_RETENTION", "")) in ("none", "short", "long"):
        said["cache_retention"] = retention
    if proxy := next((env[name] for name in PROXY_VARIABLES if env.get(name)), None):
        said["http_proxy"] = proxy
    if of_file := found.get("http_proxy"):
        meant = {"HTTP_PROXY": of_file, "HTTPS_PROXY": of_file, "NO_PROXY": ",".join(LOOPBACK)}
        unset = [name for name in meant if not (env.get(name) or env.get(name.lower()))]
        said["child_variables"] = tuple((name, meant[name]) for name in unset)
    bypass = env.get("NO_PROXY") or env.get("no_proxy") or ""
    said["no_proxy"] = (*LOOPBACK, *filter(None, (host.strip() for host in bypass.split(","))))
    if "ca_file" not in found and env.get("SSL_CERT_FILE"):
        said["ca_file"] = env["SSL_CERT_FILE"]
    for attribute in ("ca_file", "session_dir", "shell_path", "worktree_hook"):
        if path := said.get(attribute) or found.get(attribute):
            said[attribute] = expand_home(path, home)
    return said


def _patched(target: str, path: tuple[str, ...], value: Any) -> bytes:
    import json

    document, fault = _read(target)
    if fault:
        raise SettingsError(f"{fault}; it was left as it is and the setting was not saved")
    document = document if document is not None else {}
    section: Any = document
    for name in path[:-1]:
        if section.get(name) is None:
            section[name] = {}
        section = section[name]
        if not isinstance(section, dict):
            told = f'{target}: "{name}" must be an object, not {kind_of(section)}'
            raise SettingsError(f"{told}; it was left as it is and the setting was not saved")
    section[path[-1]] = value
    try:
        return _encoded(json, document)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{target} could not be written: {error}") from None


def _encoded(json: Any, document: Document) -> bytes:
    """Not msgspec: it writes infinities as null and refuses lone surrogates."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        return bytes(text + "\n", "utf-8")
    except UnicodeEncodeError:
        return bytes(json.dumps(document, indent=2, allow_nan=False) + "\n", "ascii")


def _replace(target: str, data: bytes) -> None:
    """Temp file and rename, with the mode that the file has: a crash leaves the old file or the new one."""
    draft = f"{target}.{os.getpid()}.tmp"
    mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o644
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.chmod(draft, mode)
        os.replace(draft, target)
    except OSError:
        os.unlink(draft)
        raise
