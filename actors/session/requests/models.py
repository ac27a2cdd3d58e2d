"""Commands for the session's model and thinking level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from actors.mail import SavePreference, Ticket
from actors.session.journal import JournalError
from protocol import commands as c
from protocol.events import ModelChanged, ThinkingLevelChanged
from protocol.model import clamp_level
from protocol.responses import Catalogue

if TYPE_CHECKING:
    from actors.session.actor import Session
    from actors.session.requests.dispatch import Answers


class ModelRequests:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._services = session.services
        self._history = session.history
        self._outbox = session.outbox
        self._setting = session.setting

    def answers(self) -> Answers:
        return {c.SetModel: self._set_model, c.GetAvailableModels: self._get_available_models}

    def choose(self, *, first: bool) -> None:
        """The model and level at the start of the session, and the entries that tell them. `first` tells that it is
        the first session of the process."""
        history = self._history
        fresh = not history.messages
        level = history.saved_level if history.has_level else None
        saved = None if fresh else history.saved_model
        choice = self._services.catalog.choose(saved, None if fresh else level, first=first)
        self._setting.model, self._setting.level = choice.model, choice.thinking_level
        self._session.fallback = (choice.message, choice.reason)
        try:
            if fresh and choice.model is not None:
                history.append("model_change", provider=choice.model.provider, modelId=choice.model.id)
            if fresh or level is None:
                history.append("thinking_level_change", thinkingLevel=choice.thinking_level)
        except JournalError as error:
            self._services.complain(str(error))

    def _set_model(self, ticket: Ticket, command: c.SetModel) -> None:
        wanted = (command.provider, command.model_id)
        found = next((m for m in self._services.catalog.available() if (m.provider, m.id) == wanted), None)
        if found is None:
            self._outbox.failed(ticket, f"Model not found: {command.provider}/{command.model_id}")
            return
        previous, setting = self._setting.model, self._setting
        self._history.append("model_change", provider=found.provider, modelId=found.id)
        setting.model = found
        self._session.fallback = (None, None)
        self._clamp_level()
        if previous != found:
            self._outbox.event(ModelChanged(found, "set", previous or UNSET))
        if command.persist:
            self._persist_model()
        self._outbox.ok(ticket, found)

    def _clamp_level(self) -> None:
        level = clamp_level(self._setting.model, self._setting.level)
        if level != self._setting.level:
            self._history.append("thinking_level_change", thinkingLevel=level)
            self._setting.level = level
            self._outbox.event(ThinkingLevelChanged(level))

    def _persist_model(self) -> None:
        model = self._setting.model
        assert model is not None
        save = self._services.preferences.tell
        save(SavePreference(("defaultProvider",), model.provider))
        save(SavePreference(("defaultModel",), model.id))
        save(SavePreference(("defaultThinkingLevel",), self._setting.level))

    def _get_available_models(self, ticket: Ticket, _: c.GetAvailableModels) -> None:
        self._outbox.ok(ticket, Catalogue(self._services.catalog.available(), [], oauth_providers=[]))
