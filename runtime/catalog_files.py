"""Reads and changes the files behind the model catalogue in pumps: `models.json` and `auth.json`.

Promises that a job ends in one `CatalogLoaded` or `CredentialRefused`, and that no error text holds a secret.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from actors.mail import CatalogLate, CatalogLoaded, CatalogMail, CredentialRefused
from runtime.catalog import CatalogFiles
from runtime.models import load_models
from runtime.stored_credentials import StoredCredentialsError, read_stored, write_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.base import Address, StartPump

LONGEST_MS = 86_400_000

Errors = list[tuple[str, str]]


class PumpedFiles:
    """`actors.catalog.CatalogFiles` on the files of an agent directory. `now` is in seconds and never goes back;
    `scripted` tells that the scripted model was named at the start."""

    def __init__(self, start_pump: StartPump, agent_dir: str, now: Callable[[], float], *, scripted: bool) -> None:
        self._start_pump = start_pump
        self._agent_dir = agent_dir
        self._now = now
        self._scripted = scripted

    def load(self, job: int, timeout_ms: float | None, to: Address[CatalogMail]) -> None:
        """The deadline waits in a pump of its own: the one that reads may hang, on a disk of the network, say."""
        done = threading.Event()

        def read() -> None:
            to.tell(self._loaded(job))
            done.set()

        def wait(seconds: float) -> None:
            if not done.wait(seconds):
                to.tell(CatalogLate(job))

        self._start_pump("catalog", read)
        if timeout_ms is not None:
            limit = max(0.0, min(timeout_ms, LONGEST_MS)) / 1000
            self._start_pump("catalog-deadline", lambda: wait(limit))

    def save(self, job: int, provider: str, credential: Mapping[str, Any], to: Address[CatalogMail]) -> None:
        self._start_pump("catalog", lambda: to.tell(self._changed(job, provider, credential)))

    def remove(self, job: int, provider: str, to: Address[CatalogMail]) -> None:
        self._start_pump("catalog", lambda: to.tell(self._changed(job, provider, None)))

    def _changed(
        self, job: int, provider: str, credential: Mapping[str, Any] | None
    ) -> CatalogLoaded | CredentialRefused:
        try:
            write_stored(self._agent_dir, provider, credential)
        except StoredCredentialsError as error:
            return CredentialRefused(job, str(error))
        except Exception as error:
            return CredentialRefused(job, f"the credential was not changed: {type(error).__name__}")
        mail = self._loaded(job)
        return CredentialRefused(job, "", committed=True) if mail.files.stored is None else mail

    def _loaded(self, job: int) -> CatalogLoaded:
        """What cannot be read is left as it was; see `LoadedCatalog.reloaded`."""
        begun, errors = self._now(), list[tuple[str, str]]()
        models, providers = self._models(errors)
        return CatalogLoaded(job, begun, CatalogFiles(models, providers, self._stored(errors)), tuple(errors))

    def _models(self, errors: Errors) -> Any:
        try:
            loaded = load_models(self._agent_dir, scripted=self._scripted)
        except Exception as error:
            errors.append(("models.json", f"models.json could not be read: {type(error).__name__}"))
            return None, {}
        errors += loaded.faults
        return (tuple(loaded.models), loaded.providers) if loaded.whole else (None, {})

    def _stored(self, errors: Errors) -> Any:
        try:
            stored, warnings = read_stored(self._agent_dir)
        except Exception as error:
            text = str(error) if isinstance(error, StoredCredentialsError) else type(error).__name__
            errors.append(("auth.json", text))
            return None
        errors += [("auth.json", warning) for warning in warnings]
        return stored
