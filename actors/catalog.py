"""The models of this process and their credentials: the owner of what is known of them.

Sessions hold a frozen view. When files have been read again or a credential was written, the Catalog makes a new view,
tells the session desk (for the other sessions, and for those to come), and then the session that asked, which answers:
so what follows the response on the wire finds the new view. All reading and writing runs in pumps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, assert_never

from msgspec import Struct

from actors.base import Actor, Address
from actors.catalog_view import CatalogView
from actors.mail import (
    CatalogAnswered,
    CatalogChanged,
    CatalogLate,
    CatalogLoaded,
    CatalogMail,
    CredentialRefused,
    Record,
    RefreshCatalog,
    RemoveCredential,
    SaveCredential,
    SessionDeskMail,
    SessionMail,
    Ticket,
)
from protocol.codec import encode

FAILED = "the model catalogue failed"


class CatalogFiles(Protocol):
    """Works on the files in pumps. Each job ends with one `CatalogLoaded` or `CredentialRefused`; a refresh with a
    time-out may be `CatalogLate` before."""

    def load(self, job: int, timeout_ms: float | None, to: Address[CatalogMail]) -> None: ...
    def save(self, job: int, provider: str, credential: Mapping[str, Any], to: Address[CatalogMail]) -> None: ...
    def remove(self, job: int, provider: str, to: Address[CatalogMail]) -> None: ...


class Asked(Struct, frozen=True):
    """A command under way."""

    ticket: Ticket
    session: Address[SessionMail]
    kind: Literal["refresh", "login", "logout"]
    provider: str = ""


class Catalog(Actor[CatalogMail]):
    """`view` is that of the start."""

    def __init__(self, view: CatalogView, files: CatalogFiles) -> None:
        self._view = view
        self._files = files
        self._read_at = float("-inf")
        self._last_job = 0
        self._asked: dict[int, Asked] = {}

    def connect(self, desk: Address[SessionDeskMail]) -> None:
        """Called by the wiring before the first mail."""
        self._desk = desk

    def receive(self, mail: CatalogMail) -> None:
        match mail:
            case RefreshCatalog(ticket, session, timeout_ms):
                self._files.load(self._job(Asked(ticket, session, "refresh")), timeout_ms, self.me)
            case SaveCredential(ticket, session, provider, credential):
                job = self._job(Asked(ticket, session, "login", provider))
                self._files.save(job, provider, credential, self.me)
            case RemoveCredential(ticket, session, provider):
                self._files.remove(self._job(Asked(ticket, session, "logout", provider)), provider, self.me)
            case CatalogLoaded():
                self._loaded(mail)
            case CatalogLate(job):
                self._answer(job, aborted=True)
            case CredentialRefused():
                self._refused(mail)
            case _:
                assert_never(mail)

    def last_words(self, unread: list[CatalogMail]) -> None:
        """Its sessions wait for an answer before they end."""
        asked = [(one.ticket, one.session) for one in self._asked.values()]
        asked += [(mail.ticket, mail.session) for mail in unread if not isinstance(mail, _REPORTS)]
        for ticket, session in dict(asked).items():
            session.tell(CatalogAnswered(ticket.failed(FAILED), self._view))

    def _job(self, asked: Asked) -> int:
        self._last_job += 1
        self._asked[self._last_job] = asked
        return self._last_job

    def _loaded(self, mail: CatalogLoaded) -> None:
        asked, view = self._asked.get(mail.job), self._view
        if mail.at >= self._read_at:  # else a later reading has overtaken this one
            self._read_at = mail.at
            view = view.reloaded(mail.files)
        if asked is not None and asked.kind == "logout":
            view = view.logged_out(asked.provider)
        self._change(view)
        self._answer(mail.job, errors=mail.errors)

    def _refused(self, mail: CredentialRefused) -> None:
        asked = self._asked[mail.job]
        if not mail.committed:
            self._tell(mail.job, asked.ticket.failed(mail.error))
            return
        if asked.kind == "logout":
            self._change(self._view.logged_out(asked.provider))
        text = f"Credential {asked.kind} committed for {asked.provider}, but local synchronization failed"
        details = {"providerId": asked.provider, "operation": asked.kind}
        self._tell(mail.job, asked.ticket.failed(text, "credential_synchronization", details))

    def _change(self, view: CatalogView) -> None:
        """The desk is told before anybody else, so that a session which starts after the answer has this view."""
        self._view = view
        self._desk.tell(CatalogChanged(view))

    def _answer(self, job: int, *, aborted: bool = False, errors: tuple[tuple[str, str], ...] = ()) -> None:
        asked = self._asked.get(job)
        if asked is not None:
            self._tell(job, asked.ticket.ok(encode(self._data(asked, aborted, errors))))

    def _tell(self, job: int, response: Record) -> None:
        """Forgets the job last, so that last words find it until it is answered."""
        self._asked[job].session.tell(CatalogAnswered(response, self._view))
        del self._asked[job]

    def _data(self, asked: Asked, aborted: bool, errors: tuple[tuple[str, str], ...]) -> Struct:
        from protocol.responses import Catalogue, LoggedOut, RefreshedCatalogue, RefreshError

        models, scope = self._view.available(), list(self._view.scope())
        if asked.kind == "logout":
            return LoggedOut(asked.provider, self._view.auth_status(asked.provider), models, scope)
        if asked.kind == "login":
            return Catalogue(models, scope, oauth_providers=[])
        told = [RefreshError(provider, message) for provider, message in errors]
        return RefreshedCatalogue(models, scope, oauth_providers=[], aborted=aborted, errors=told)


_REPORTS = (CatalogLoaded, CatalogLate, CredentialRefused)
