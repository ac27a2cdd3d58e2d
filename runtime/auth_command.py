"""`atomic auth`: hands a configured credential to another program, or tells whether there is one.

Owns the exit codes. Promises that stdout holds the credential and nothing else, that it is empty whenever the exit code
is not 0, and that no secret goes to stderr. Only `--help` writes something else there, and nobody captures that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from actors.session.naming import agent_dir
from runtime.choose_model import ModelChoiceError
from runtime.cli import Options
from runtime.config_values import shown
from runtime.credentials import CredentialError, NoCredential
from runtime.load_catalog import load_catalog
from runtime.setting_keys import NotAllowed, duration
from runtime.settings import load_settings
from runtime.stdio import complain, note, say

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from protocol.model import Model
    from runtime.catalog import LoadedCatalog

NOT_READY, USAGE, NO_MODEL, NOT_CONFIGURED, UNRESOLVED, OTHER_KIND = 1, 2, 3, 4, 5, 6
"""Exit codes; `check` knows the first two alone."""

EPILOG = f"""exit codes of print-*: {USAGE} the call makes no sense, {NO_MODEL} no such model,
{NOT_CONFIGURED} no credential is configured, {UNRESOLVED} it cannot be read, {OTHER_KIND} it is of the other kind.
exit codes of check: 0 ready, {NOT_READY} not ready, {USAGE} invalid."""


class _Failure(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def run(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> int:
    """The exit code. `argv` is what follows `auth`."""
    given = _parsed(argv)
    try:
        if given.action == "check":
            return _check(given.model, env, cwd)
        say(_credential(given, env, cwd))
        return 0
    except _Failure as failure:
        complain(str(failure))
        return failure.code


def _parsed(argv: Sequence[str]) -> Namespace:
    """Help that nobody asked for goes to stderr: whoever captures stdout wants the credential."""
    parser = _parser()
    if "-h" in argv or "--help" in argv:
        say(parser.format_help(), end="")
        raise SystemExit(0)
    if not argv:
        note(parser.format_help())
        raise SystemExit(USAGE)
    given = parser.parse_args(list(argv))
    if given.action == "print-api-key" and given.min_expiry is not None:
        _usage("--min-expiry is for print-bearer-token; an API key does not expire")
    if given.min_expiry is not None:
        _refuse_expiry(given.min_expiry)
    if given.action != "check" and not (given.model or "").strip():
        _usage(f"--model is needed by {given.action}")
    return given


def _parser() -> ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(
        prog="atomic auth",
        allow_abbrev=False,
        add_help=False,
        description="Print a configured credential, or check that there is one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    parser.add_argument("action", choices=("print-api-key", "print-bearer-token", "check"))
    parser.add_argument("--model", metavar="MODEL", help="whose provider is meant, as with atomic --model")
    parser.add_argument("--min-expiry", metavar="TIME", help="print-bearer-token: how long the token must last (30m)")
    parser.error = _usage  # type: ignore[assignment,method-assign]
    return parser


def _refuse_expiry(text: str) -> None:
    try:
        if not text.strip()[-1:].isalpha():
            raise NotAllowed
        duration(text)
    except NotAllowed:
        _usage(f'--min-expiry is {shown(text)}; allowed: a number with "ms", "s", "m" or "h"')


def _usage(text: str) -> NoReturn:
    complain(text[:1].upper() + text[1:])
    raise SystemExit(USAGE)


def _credential(given: Namespace, env: Mapping[str, str], cwd: str) -> str:
    catalog, model = _resolved(given.model, env, cwd)
    assert model is not None
    try:
        credential = catalog.authorize(model)
    except CredentialError as error:
        code = NOT_CONFIGURED if isinstance(error, NoCredential) else UNRESOLVED
        raise _Failure(code, str(error)) from None
    headers = {name.lower(): value for name, value in credential.headers}
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = credential.bearer or (token if scheme.lower() == "bearer" else "")
    wanted, found = ("bearer token", bearer)
    if given.action == "print-api-key":
        wanted, found = ("API key", credential.api_key)
    if not found:
        raise _Failure(OTHER_KIND, f"{model.provider} has no {wanted}; {_told(credential.api_key, bearer)}.")
    return found


def _told(api_key: str, bearer: str) -> str:
    return "it has an API key" if api_key else "it has a bearer token" if bearer else "it needs none"


def _check(pattern: str | None, env: Mapping[str, str], cwd: str) -> int:
    """Whether a prompt could be sent: to this model, or to any."""
    try:
        catalog, model = _resolved(pattern, env, cwd)
    except _Failure as failure:
        raise _Failure(USAGE, str(failure)) from None
    if pattern is None:
        ready = bool(catalog.available())
        what = "at least one provider" if ready else "any provider"
    else:
        assert model is not None
        ready = catalog.auth_status(model.provider).configured
        what = model.provider
    complain(f"{'ready: there is a' if ready else 'not ready: there is no'} credential for {what}")
    return 0 if ready else NOT_READY


def _resolved(pattern: str | None, env: Mapping[str, str], cwd: str) -> tuple[LoadedCatalog, Model | None]:
    """The project has no say: its settings are not read."""
    agent = os.path.join(cwd, agent_dir(env, os.path.expanduser("~")))
    settings, _ = load_settings(agent, cwd, env, trusted=False)
    try:
        start = load_catalog(Options(model=pattern), env, agent, settings)
    except ModelChoiceError as error:
        raise _Failure(NO_MODEL, str(error)) from None
    for warning in start.warnings:
        complain(warning)
    return start.catalog, start.named.model if start.named else None
