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
from actors.session.opening import missing_cwd
from runtime.catalog import LoadedCatalog
from runtime.choose_model import ModelChoiceError, NamedModel, names_scripted, resolve_named
from runtime.cli import Options
from runtime.credentials import Credentials
from runtime.models import load_models
from runtime.resources import Resources, is_trusted, load_resources
from runtime.secret_command import run_command
from runtime.settings import Settings, load_settings
from runtime.stored_credentials import load_stored


class StartupError(Exception):
    """The program cannot start; the text is for the user."""


class Startup(Struct, frozen=True):
    """`directory` is where sessions go (None: nowhere)."""

    options: Options
    agent_dir: str
    cwd: str
    settings: Settings
    catalog: LoadedCatalog
    credentials: Credentials
    resources: Resources
    session: OpenedSession
    directory: str | None
    warnings: tuple[str, ...]


def load(options: Options, env: Mapping[str, str], cwd: str, stamps: Stamps) -> Startup:
    home = os.path.expanduser("~")
    agent = os.path.join(cwd, agent_dir(env, home))
    trusted, warnings = is_trusted(agent, cwd, env, options.approve)
    settings, found = load_settings(agent, cwd, env, trusted)
    warnings += [*options.warnings, *found]
    catalog, credentials = _load_catalog(options, env, agent, settings, warnings)
    resources = load_resources(agent, cwd, env, trusted=trusted, context_files=not options.no_context_files)
    directory, chosen = session_dir(env, home, cwd, flag=options.session_dir, setting=settings.session_dir)
    session = _first_session(options, stamps, cwd, directory, chosen)
    return Startup(
        options,
        agent,
        cwd,
        settings,
        catalog,
        credentials,
        resources,
        session,
        None if options.no_session else directory,
        (*warnings, *resources.warnings, *session.notes),
    )


def _load_catalog(
    options: Options, env: Mapping[str, str], agent: str, settings: Settings, warnings: list[str]
) -> tuple[LoadedCatalog, Credentials]:
    scripted = names_scripted(
        options.provider,
        options.model,
        settings.default_provider,
        settings.default_model,
        *(settings.enabled_models or ()),
    )
    loaded = load_models(agent, scripted=scripted)
    stored, faults = load_stored(agent)
    warnings += [*loaded.warnings, *faults]
    credentials = Credentials(env, loaded.providers, stored, run_command)
    named: NamedModel | None = None
    if options.model is not None:
        try:
            named = resolve_named(loaded.models, credentials.is_configured, options.provider, options.model)
        except ModelChoiceError as error:
            raise StartupError(str(error)) from None
        if named.warning:
            warnings.append(named.warning)
    return LoadedCatalog(loaded.models, credentials, settings, named, options.thinking), credentials


def _first_session(options: Options, stamps: Stamps, cwd: str, directory: str, chosen: bool) -> OpenedSession:
    try:
        return _open_first(options, stamps, cwd, directory, chosen)
    except (SessionFileError, JournalError, ValueError, OSError) as error:
        raise StartupError(str(error)) from None


def _open_first(options: Options, stamps: Stamps, cwd: str, directory: str, chosen: bool) -> OpenedSession:
    if options.no_session:
        return new_session(stamps, cwd, None)
    path = _wanted_path(options, cwd, directory, chosen)
    if path is None:
        return new_session(stamps, cwd, directory)
    opened = open_session(path, stamps, cwd)
    stored = opened.header.cwd
    if stored and not os.path.isdir(stored):
        opened.journal.close()
        raise SessionFileError(missing_cwd(stored, path, cwd))
    return opened if stored else replace(opened, header=replace(opened.header, cwd=cwd))


def _wanted_path(options: Options, cwd: str, directory: str, chosen: bool) -> str | None:
    from actors.session.listing import find_session, most_recent

    wanted = options.session
    if wanted is not None:
        if "/" in wanted or "\\" in wanted or wanted.endswith(".jsonl"):
            return os.path.join(cwd, os.path.expanduser(wanted))
        found = find_session(directory, wanted, cwd if chosen else None) or find_session(directory, wanted)
        if found is None:
            raise StartupError(f"No session found matching '{wanted}'")
        return found.path
    if options.continue_recent:
        recent = most_recent(directory, cwd if chosen else None)
        return None if recent is None else recent.path
    return None
