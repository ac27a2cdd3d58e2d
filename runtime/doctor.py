"""`atomic doctor`: what is configured, where it was found, and what is broken. No secret is read out, no command of the
configuration is run and no network is touched.

Owns the report. Each line is a check with one of three marks: `ok`, `--` (not there, which is fine), `!!` (broken).
"""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Literal, NamedTuple

from actors.session.listing import list_sessions
from actors.session.naming import agent_dir, session_dir
from runtime.catalog import LoadedCatalog
from runtime.choose_model import ModelChoiceError
from runtime.cli import Options, is_offline, program_version
from runtime.load_catalog import StartCatalog, load_catalog, start_defaults
from runtime.resources import has_trust_inputs, is_trusted, load_resources, recorded_trust
from runtime.settings import PROXY_VARIABLES, load_settings
from runtime.startup import active_tools
from runtime.stdio import complain, plain, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runtime.settings import Settings

USAGE = """usage: atomic doctor

Tell what is configured, where it was found, and what is broken. Secrets are not
shown. The exit code is 1 if something is broken, else 0.
"""
TOOLS = ("git", "rg", "fd")
NO_PROVIDER = "none has a credential; set ANTHROPIC_API_KEY or OPENAI_API_KEY, or store a key"


class Finding(NamedTuple):
    mark: Literal["ok", "--", "!!"]
    subject: str
    text: str


def run(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> int:
    """The exit code."""
    if list(argv) in (["-h"], ["--help"]):
        say(USAGE, end="")
        return 0
    if argv:
        complain(f"doctor takes no arguments, got {argv[0][:80]!r}")
        return 2
    findings = list(examine(env, cwd))
    width = max(len(finding.subject) for finding in findings)
    lines = [plain(f"{mark}  {subject.ljust(width)}  {text}") for mark, subject, text in findings]
    broken = sum(finding.mark == "!!" for finding in findings)
    say("\n".join(lines))
    say(f"\n{'Nothing is broken.' if not broken else f'{broken} broken; see the lines with !!.'}")
    return 1 if broken else 0


def examine(env: Mapping[str, str], cwd: str) -> Iterator[Finding]:
    """Every finding, in the order of the report."""
    home = os.path.expanduser("~")
    agent = os.path.join(cwd, agent_dir(env, home))
    trusted, _ = is_trusted(agent, cwd, env, None)
    _, doubts = recorded_trust(agent, cwd, env)  # also of a project that brings nothing
    settings, found = load_settings(agent, cwd, env, trusted)
    start, about_models = _loaded(env, agent, settings)
    about_tools = active_tools(settings, Options())[1]
    faults = [*doubts, *found, *about_models, *about_tools]
    yield Finding("ok", "atomic", f"{program_version()}, Python {platform.python_version()}, {platform.platform()}")
    yield _folder("agent directory", agent)
    yield from _files(agent, cwd, trusted, faults)
    yield _trust(cwd, env, trusted)
    yield from (Finding("!!", "settings", line) for line in (*doubts, *found, *about_tools))
    yield from (Finding("!!", "models", line) for line in about_models)
    yield from _models(start, settings)
    yield from _context(agent, cwd, env, trusted)
    yield from _sessions(env, home, cwd, settings)
    yield from _surroundings(env, settings)


def _loaded(env: Mapping[str, str], agent: str, settings: Settings) -> tuple[StartCatalog | None, list[str]]:
    try:
        start = load_catalog(Options(), env, agent, settings)
    except ModelChoiceError as error:
        return None, [str(error)]
    return start, start.warnings


def _folder(subject: str, path: str) -> Finding:
    if not os.path.exists(path):
        return Finding("--", subject, f"{path} (not there yet)")
    if not os.path.isdir(path):
        return Finding("!!", subject, f"{path} is no folder")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Finding("!!", subject, f"{path} cannot be read and written")
    return Finding("ok", subject, path)


def _files(agent: str, cwd: str, trusted: bool, faults: list[str]) -> Iterator[Finding]:
    for name in ("settings.json", "models.json", "auth.json", "trust.json"):
        yield _file(name, os.path.join(agent, name), faults)
    project = os.path.join(cwd, ".atomic", "settings.json")
    if os.path.lexists(project):
        found = _file("project settings", project, faults)
        yield found if trusted else Finding("--", found.subject, f"{project} (not read: the project is not trusted)")


def _file(subject: str, path: str, faults: list[str]) -> Finding:
    """Whether it is there and whole; what is wrong in it its reader has told, by its path or as a kind of settings."""
    if not os.path.lexists(path):
        return Finding("--", subject, f"{path} (not there)")
    if not os.access(path, os.R_OK):
        return Finding("!!", subject, f"{path} is unreadable")
    kind = {"settings.json": "(global settings)", "project settings": "(project settings)"}.get(subject, path)
    if any(path in line or kind in line for line in faults):
        return Finding("!!", subject, f"{path} has faults, told below")
    return Finding("ok", subject, path)


def _trust(cwd: str, env: Mapping[str, str], trusted: bool) -> Finding:
    if not has_trust_inputs(cwd, env):
        return Finding("--", "project", f"{cwd} brings no files of its own")
    if trusted:
        return Finding("ok", "project", f"{cwd} is trusted: its files count")
    return Finding("--", "project", f"{cwd} is not trusted: its files are left out (--approve, or trust.json)")


def _models(start: StartCatalog | None, settings: Settings) -> Iterator[Finding]:
    if start is None:
        return
    available = start.catalog.available()
    providers = list(dict.fromkeys(model.provider for model in available))
    for provider in providers:
        status = start.catalog.auth_status(provider)
        source = " ".join(str(part) for part in (status.source, status.label) if part)
        count = sum(model.provider == provider for model in available)
        yield Finding("ok", f"provider {provider}", f"{count} models, credential from: {source or 'none needed'}")
    if not providers:
        yield Finding("!!", "providers", NO_PROVIDER)
    yield _start_model(start.catalog, settings)


def _start_model(catalog: LoadedCatalog, settings: Settings) -> Finding:
    choice = catalog.choose(None, None, start_defaults(settings), first=True)
    if choice.model is None:
        return Finding("!!", "model at start", (choice.message or "none").splitlines()[0])
    text = f"{choice.model.provider}/{choice.model.id}, thinking {choice.thinking_level}"
    wanted = (settings.default_provider, settings.default_model)
    if all(wanted) and wanted != (choice.model.provider, choice.model.id):
        return Finding("!!", "model at start", f"{text}; the default {'/'.join(map(str, wanted))} cannot be had")
    return Finding("ok", "model at start", text)


def _context(agent: str, cwd: str, env: Mapping[str, str], trusted: bool) -> Iterator[Finding]:
    resources = load_resources(agent, cwd, env, trusted=trusted)
    yield from (Finding("ok", "instructions", file.path) for file in resources.context_files)
    yield from (Finding("!!", "instructions", line) for line in resources.warnings)


def _sessions(env: Mapping[str, str], home: str, cwd: str, settings: Settings) -> Iterator[Finding]:
    directory, _ = session_dir(env, home, cwd, setting=settings.session_dir)
    found = _folder("sessions", directory)
    if found.mark == "ok":
        found = found._replace(text=f"{found.text}, {len(list_sessions(directory))} sessions")
    yield found


def _surroundings(env: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    from shutil import which

    for tool in TOOLS:
        path = which(tool, path=env.get("PATH"))
        yield Finding("ok" if path else "--", tool, path or "not found; built-in ways are used")
    shell = settings.shell_path
    if shell is not None:
        exists = os.access(shell, os.X_OK)
        yield Finding("ok" if exists else "!!", "shellPath", shell if exists else f"{shell} cannot be run")
    yield _proxy(env, settings)
    if settings.ca_file is not None:
        yield _authorities(settings.ca_file)
    if is_offline(env):
        yield Finding("--", "offline", "nothing is looked up on the network at the start")


def _proxy(env: Mapping[str, str], settings: Settings) -> Finding:
    from actors.model.route import BadUrl, parse_proxy

    if not settings.http_proxy:
        return Finding("--", "proxy", "none")
    source = next((name for name in PROXY_VARIABLES if env.get(name)), "httpProxy")
    try:
        parse_proxy(settings.http_proxy)
    except BadUrl:
        wanted = "a http://, https:// or socks5:// URL with a host"
        return Finding("!!", "proxy", f"{source} is not {wanted}: every request through it fails")
    return Finding("ok", "proxy", f"from {source}")


def _authorities(file: str) -> Finding:
    from actors.model.transport_errors import BadCaFile
    from actors.model.trust import client_context

    if not os.path.exists(file):
        return Finding("!!", "caFile", f"{file} is missing")
    if not os.path.isfile(file):
        return Finding("!!", "caFile", f"{file} is not a regular file")
    try:
        client_context(file, {})
    except BadCaFile:
        return Finding("!!", "caFile", f"{file} holds no certificate that can be read: no https:// request can be made")
    return Finding("ok", "caFile", file)
