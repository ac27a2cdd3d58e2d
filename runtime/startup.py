"""Everything that is read before the first actor starts, as one value.

A fault in it that leaves nothing to run is a `StartupError`: one line on stderr and exit code 1. Faults that leave
something to run are warnings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from actors.session.file import OpenedSession, SessionFileError, Stamps, new_session, open_session
from actors.session.journal import JournalError
from actors.session.naming import agent_dir, session_dir
from actors.session.surroundings import Surroundings
from actors.tool.table import DEFAULT_TOOLS, Tool, builtin_tools
from runtime.choose_model import ModelChoiceError
from runtime.cli import Options
from runtime.config_values import shown
from runtime.load_catalog import StartCatalog, load_catalog
from runtime.resources import is_trusted, load_resources
from runtime.settings import Settings, file_of, load_settings
from runtime.surroundings import SurroundingsReader


class StartupError(Exception):
    """The program cannot start; the text is for the user."""


class Startup(Struct, frozen=True):
    """`directory` is where sessions go (None: nowhere)."""

    options: Options
    agent_dir: str
    cwd: str
    settings: Settings
    catalog: StartCatalog
    tools: dict[str, Tool]
    reader: SurroundingsReader
    surroundings: Surroundings
    session: OpenedSession
    directory: str | None
    warnings: tuple[str, ...]


def load(options: Options, env: Mapping[str, str], cwd: str, stamps: Stamps) -> Startup:
    if options.system_prompt is not None or options.append_system_prompt or options.skill or options.prompt_template:
        from runtime.file_flags import resolved

        options = resolved(options, cwd)
    home = os.path.expanduser("~")
    agent = os.path.join(cwd, agent_dir(env, home))
    trusted, warnings = is_trusted(agent, cwd, env, options.approve)
    settings, found = load_settings(agent, cwd, env, trusted)
    try:
        catalog = load_catalog(options, env, agent, settings)
    except ModelChoiceError as error:
        raise StartupError(str(error)) from None
    tools, about_tools = active_tools(settings, options)
    directory, chosen = session_dir(env, home, cwd, flag=options.session_dir, setting=settings.session_dir)
    session = _first_session(options, stamps, cwd, directory, chosen)
    here = session.header.cwd or cwd
    snippets = {name: tool.snippet for name, tool in tools.items()}
    reader = SurroundingsReader(options, agent, env, snippets, chosen=(cwd, here))
    if here == cwd:
        resources = load_resources(agent, cwd, env, trusted=trusted, context_files=not options.no_context_files)
        warnings += [*found, *resources.warnings]
        surroundings = reader.made(cwd, trusted, settings, resources, warnings)
    else:
        surroundings = reader.read(here)
    return Startup(
        options,
        agent,
        cwd,
        settings,
        catalog,
        tools,
        reader,
        surroundings,
        session,
        None if options.no_session else directory,
        (*options.warnings, *catalog.warnings, *about_tools, *surroundings.warnings, *session.notes),
    )


def active_tools(settings: Settings, options: Options) -> tuple[dict[str, Tool], list[str]]:
    """The tools that the model is offered, and one warning for each name that is none. The flags' choice comes before
    the settings', and that before the usual ones, which also stand in for settings without a single good name."""
    tools = builtin_tools()
    wanted = settings.default_tools
    is_usual = wanted is None or (wanted and not any(name in tools for name in wanted))
    names = DEFAULT_TOOLS if wanted is None or is_usual else wanted
    if options.tools is not None or options.no_tools:
        names = options.tools or ()
    known = ", ".join(sorted(tools))
    flagged = [name for name in (*(options.tools or ()), *options.exclude_tools) if name not in tools]
    warnings = [f"There is no tool {shown(name)}; known: {known}" for name in flagged]
    file = file_of(settings, "defaultTools")
    unknown = [name for name in wanted or () if name not in tools]
    warnings += [f"{file}: defaultTools: there is no tool {shown(name)}; known: {known}" for name in unknown]
    offered = [name for name in names if name in tools and name not in options.exclude_tools]
    if "subagent" in offered and "intercom" not in options.exclude_tools:
        offered.append("intercom")  # whoever has agents can answer them
    return {name: tools[name] for name in offered}, warnings


def _first_session(options: Options, stamps: Stamps, cwd: str, directory: str, chosen: bool) -> OpenedSession:
    try:
        return _open_first(options, stamps, cwd, directory, chosen)
    except (SessionFileError, JournalError, ValueError, OSError) as error:
        raise StartupError(str(error)) from None


def _open_first(options: Options, stamps: Stamps, cwd: str, directory: str, chosen: bool) -> OpenedSession:
    if options.no_session:
        return new_session(stamps, cwd, None, session_id=options.session_id)
    if options.fork is not None:
        from runtime.first_session import named_session, open_fork

        source = named_session(options.fork, cwd, directory, chosen, from_others=True)
        return open_fork(source, options.session_id, stamps, cwd, directory)
    if options.session_id is not None:
        from runtime.first_session import open_by_id

        return open_by_id(options.session_id, stamps, cwd, directory, cwd if chosen else None)
    path = _wanted_path(options, cwd, directory, chosen)
    if path is None:
        return new_session(stamps, cwd, directory)
    opened = open_session(path, stamps, cwd)
    stored = opened.header.cwd
    if stored and not os.path.isdir(stored):
        from actors.session.opening import missing_cwd

        opened.journal.close()
        raise SessionFileError(missing_cwd(stored, path, cwd))
    return opened if stored else replace(opened, header=replace(opened.header, cwd=cwd))


def _wanted_path(options: Options, cwd: str, directory: str, chosen: bool) -> str | None:
    if options.session is not None:
        from runtime.first_session import named_session

        return named_session(options.session, cwd, directory, chosen, from_others=False)
    if options.continue_recent:
        from actors.session.listing import most_recent

        recent = most_recent(directory, cwd if chosen else None)
        return None if recent is None else recent.path
    return None
