"""The catalogue's owner: whoever asked is answered once and last, and a new view reaches the desk before that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.catalog import FAILED, Catalog
from actors.catalog_view import CatalogView
from actors.mail import (
    CatalogAnswered,
    CatalogChanged,
    CatalogLate,
    CatalogLoaded,
    CredentialRefused,
    RefreshCatalog,
    RemoveCredential,
    SaveCredential,
    Ticket,
)
from actors.probe import Probe
from protocol.model import Model
from protocol.responses import AuthStatus, ScopedModel

SECRET = {"type": "api_key", "key": "s3cret"}


class View:
    """A view that is told apart by what was read and who was logged out."""

    def __init__(self, name: str) -> None:
        self.name = name

    def available(self) -> list[Model]:
        return []

    def scope(self) -> tuple[ScopedModel, ...]:
        return ()

    def auth_status(self, provider: str) -> AuthStatus:
        return AuthStatus(False, label=f"{provider} in {self.name}")

    def reloaded(self, files: Any) -> Any:
        return View(f"{self.name}+{files}")

    def logged_out(self, provider: str) -> Any:
        return View(f"{self.name}-{provider}")


class Bench:
    def __init__(self) -> None:
        self.desk, self.session, self.me = Probe[Any](), Probe[Any](), Probe[Any]()
        self.jobs: list[tuple[Any, ...]] = []
        view: Any = View("start")
        self.catalog = Catalog(view, self)
        self.catalog.me = self.me
        self.catalog.connect(self.desk)

    def load(self, job: int, timeout_ms: float | None, to: Any) -> None:
        self.jobs.append(("load", job, timeout_ms))

    def save(self, job: int, provider: str, credential: Any, to: Any) -> None:
        self.jobs.append(("save", job, provider, credential))

    def remove(self, job: int, provider: str, to: Any) -> None:
        self.jobs.append(("remove", job, provider))

    def ticket(self, serial: int, command: str) -> Ticket:
        return Ticket(serial, b'"r%d"' % serial, command)

    def refresh(self, serial: int, timeout_ms: float | None = None) -> None:
        self.catalog.receive(RefreshCatalog(self.ticket(serial, "refresh_models"), self.session, timeout_ms))

    def save_credential(self, serial: int) -> None:
        ticket = self.ticket(serial, "save_provider_credential")
        self.catalog.receive(SaveCredential(ticket, self.session, "p", SECRET))

    def log_out(self, serial: int) -> None:
        self.catalog.receive(RemoveCredential(self.ticket(serial, "logout_provider"), self.session, "p"))

    def loaded(self, job: int, at: float, files: str, *errors: tuple[str, str]) -> None:
        self.catalog.receive(CatalogLoaded(job, at, files, errors))

    def answer(self) -> tuple[str, dict[str, Any]]:
        """The view and the response of the one answer that came."""
        (mail,) = self.session.drain()
        assert isinstance(mail, CatalogAnswered)
        return name(mail.view), json.loads(mail.response.line)

    def changes(self) -> list[str]:
        return [name(mail.view) for mail in self.desk.drain() if isinstance(mail, CatalogChanged)]


def name(view: CatalogView) -> str:
    assert isinstance(view, View)
    return view.name


def test_a_refresh_answers_with_what_was_read_and_tells_the_desk() -> None:
    bench = Bench()
    bench.refresh(1)
    assert bench.jobs == [("load", 1, None)]
    bench.loaded(1, 5.0, "a", ("fa", "no api"))
    assert bench.changes() == ["start+a"]
    view, response = bench.answer()
    assert (view, response["id"], response["data"]["aborted"]) == ("start+a", "r1", False)
    assert response["data"]["errors"] == [{"provider": "fa", "message": "no api"}]


def test_a_refresh_that_is_late_answers_with_what_is_known_and_its_result_still_counts() -> None:
    bench = Bench()
    bench.refresh(1, 10)
    bench.catalog.receive(CatalogLate(1))
    view, response = bench.answer()
    assert (view, response["data"]["aborted"]) == ("start", True)
    bench.loaded(1, 5.0, "a")
    assert bench.changes() == ["start+a"]
    assert bench.session.drain() == []


def test_a_deadline_after_the_result_is_nothing() -> None:
    bench = Bench()
    bench.refresh(1, 10)
    bench.loaded(1, 5.0, "a")
    bench.answer()
    bench.catalog.receive(CatalogLate(1))
    assert bench.session.drain() == []


def test_a_reading_that_began_before_a_newer_one_changes_nothing() -> None:
    bench = Bench()
    bench.refresh(1)
    bench.save_credential(2)
    bench.loaded(2, 7.0, "saved")
    assert bench.answer()[0] == "start+saved"
    bench.loaded(1, 6.0, "stale")
    assert bench.answer()[0] == "start+saved"


def test_a_saved_credential_is_answered_with_the_catalogue_and_without_the_secret() -> None:
    bench = Bench()
    bench.save_credential(1)
    assert bench.jobs == [("save", 1, "p", SECRET)]
    bench.loaded(1, 1.0, "a")
    _, response = bench.answer()
    assert response["data"] == {"models": [], "scopedModels": [], "customAuthProviders": [], "oauthProviders": []}


def test_a_logout_tells_what_is_left() -> None:
    bench = Bench()
    bench.log_out(1)
    bench.loaded(1, 1.0, "a")
    view, response = bench.answer()
    assert view == "start+a-p"
    assert bench.changes() == ["start+a-p"]
    status = {"configured": False, "label": "p in start+a-p"}
    assert response["data"] == {"provider": "p", "authStatus": status, "models": [], "scopedModels": []}


def test_a_credential_that_was_not_written_changes_nothing() -> None:
    bench = Bench()
    bench.save_credential(1)
    bench.catalog.receive(CredentialRefused(1, "auth.json is locked"))
    view, response = bench.answer()
    assert (view, response["success"], response["error"]) == ("start", False, "auth.json is locked")
    assert bench.changes() == []


@pytest.mark.shows(
    "save_provider_credential", error="Credential login committed for …, but local synchronization failed"
)
def test_a_credential_that_is_written_but_cannot_be_read_back_is_the_structured_error() -> None:
    bench = Bench()
    bench.save_credential(1)
    bench.catalog.receive(CredentialRefused(1, "", committed=True))
    _, response = bench.answer()
    assert response["error"] == "Credential login committed for p, but local synchronization failed"
    assert response["errorCode"] == "credential_synchronization"
    assert response["errorDetails"] == {"providerId": "p", "operation": "login"}


@pytest.mark.shows("logout_provider", error="Credential logout committed for …, but local synchronization failed")
def test_a_logout_that_cannot_be_read_back_still_forgets_the_runtime_key() -> None:
    bench = Bench()
    bench.log_out(1)
    bench.catalog.receive(CredentialRefused(1, "", committed=True))
    view, response = bench.answer()
    assert view == "start-p"
    assert response["error"] == "Credential logout committed for p, but local synchronization failed"
    assert response["errorDetails"] == {"providerId": "p", "operation": "logout"}
    assert bench.changes() == ["start-p"]


def test_its_last_words_answer_what_is_open_and_what_was_not_read() -> None:
    bench = Bench()
    bench.refresh(1)
    unread = RemoveCredential(bench.ticket(2, "logout_provider"), bench.session, "p")
    bench.catalog.last_words([CatalogLate(1), unread])
    errors = [json.loads(mail.response.line)["error"] for mail in bench.session.drain()]
    assert errors == [FAILED, FAILED]


def test_no_mail_shows_a_credential() -> None:
    mail = SaveCredential(Ticket(1, b"", "save_provider_credential"), Probe[Any](), "p", SECRET)
    assert "s3cret" not in repr(mail)
