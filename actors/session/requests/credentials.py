"""Commands for credentials and for reading the catalogue again. The Catalog does the work; the session answers."""

from __future__ import annotations

from typing import Any

from actors.mail import CatalogAnswered, RefreshCatalog, RemoveCredential, SaveCredential, Ticket
from actors.session.requests.group import Answers, Group
from protocol import commands as c


class CredentialRequests(Group):
    """A session that retires stays until the Catalog has answered everything that it asked."""

    def answers(self) -> Answers:
        return {
            c.RefreshModels: self._refresh,
            c.SaveProviderCredential: self._save,
            c.LogoutProvider: self._logout,
            c.LoginProvider: self._login,
        }

    def answered(self, mail: CatalogAnswered) -> None:
        self._session.catalog_requests.discard(mail.response.serial)
        self._outbox.record(mail.response)

    def _ask(self, ticket: Ticket, mail: Any) -> None:
        self._session.catalog_requests.add(ticket.serial)
        self._services.catalog_owner.tell(mail)

    def _refresh(self, ticket: Ticket, command: c.RefreshModels) -> None:
        """`force` and `allowNetwork` are about lists that are fetched from providers, which are not there yet."""
        self._ask(ticket, RefreshCatalog(ticket, self._session.me, command.timeout_ms))

    def _save(self, ticket: Ticket, command: c.SaveProviderCredential) -> None:
        wrong = _wrong_credential(command.provider, command.credential)
        if wrong is not None:
            self._outbox.failed(ticket, f"save_provider_credential: {wrong}")
            return
        self._ask(ticket, SaveCredential(ticket, self._session.me, command.provider, command.credential))

    def _logout(self, ticket: Ticket, command: c.LogoutProvider) -> None:
        self._ask(ticket, RemoveCredential(ticket, self._session.me, command.provider))

    def _login(self, ticket: Ticket, command: c.LoginProvider) -> None:
        """There is nobody here to type a key, and no provider with a login of its own."""
        if command.auth_type != "api_key":
            error = f"Unknown OAuth provider: {command.provider}"
        elif self._setting.catalog.knows(command.provider):
            error = "Provider login requires an interactive input host"
        else:
            error = f"Provider does not support API-key login: {command.provider}"
        self._outbox.failed(ticket, error)


def _wrong_credential(provider: str, credential: dict[str, Any]) -> str | None:
    """What is wrong, by field and type, never by value."""
    if not provider.strip():
        return '"provider" must not be empty'
    kind, key, env = credential.get("type"), credential.get("key"), credential.get("env")
    if kind not in ("api_key", "oauth"):
        return '"credential.type" must be "api_key" or "oauth"'
    if kind == "api_key" and key is None and not env:
        return '"credential.key" is required (a string)'
    if kind == "api_key" and key is not None and not (isinstance(key, str) and key.strip()):
        return '"credential.key" must be a string that is not empty'
    if env is not None and not (isinstance(env, dict) and all(isinstance(value, str) for value in env.values())):
        return '"credential.env" must be an object of strings'
    return None
