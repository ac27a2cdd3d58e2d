"""Commands for the session's model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET
from msgspec.structs import replace

from actors.catalog_view import CatalogView, Defaults
from actors.mail import Ticket
from actors.session.fallback import Place
from actors.session.journal import JournalError
from actors.session.requests.group import Answers, Group
from actors.session.requests.thinking import ThinkingRequests
from protocol import commands as c
from protocol.events import ModelChanged
from protocol.model import Model, ThinkingLevel

if TYPE_CHECKING:
    from protocol.responses import ScopedModel


class ModelRequests(Group):
    """A model that a command names replaces what the start chose, and lifts the block of an unsupported default."""

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self.thinking = ThinkingRequests(session)

    def answers(self) -> Answers:
        return {
            c.SetModel: self._set_model,
            c.CycleModel: self._cycle_model,
            c.GetAvailableModels: self._get_available_models,
        }

    # -- without a command

    def choose(self, *, first: bool) -> None:
        """The model and level at the start of the session, and the entries that tell them. `first` tells that it is
        the first session of the process."""
        history, setting = self._history, self._setting
        fresh = not history.messages
        level = history.saved_level if history.has_level else None
        saved = None if fresh else history.saved_model
        choice = setting.catalog.choose(saved, None if fresh else level, setting.defaults, first=first)
        setting.model, setting.level = choice.model, choice.thinking_level
        self._session.fallback = (choice.message, choice.reason)
        if self._services.place is not None:
            self._start_at(self._services.place)
            return
        try:
            if fresh and choice.model is not None:
                history.append("model_change", provider=choice.model.provider, modelId=choice.model.id)
            if fresh or level is None:
                history.append("thinking_level_change", thinkingLevel=choice.thinking_level)
        except JournalError as error:
            self._services.complain(str(error))

    def _start_at(self, place: Place) -> None:
        """A subagent's model is decided before it has a session."""
        history, setting, model = self._history, self._setting, place.model
        setting.model, setting.level = model, place.level
        self._session.fallback = (None, None)
        try:
            if history.saved_model != (model.provider, model.id):
                history.append("model_change", provider=model.provider, modelId=model.id)
            if history.saved_level != place.level or not history.has_level:
                history.append("thinking_level_change", thinkingLevel=place.level)
        except JournalError as error:
            self._services.complain(str(error))

    def take_over(self, defaults: Defaults) -> None:
        """What the session before this one has saved since this one was started. Nothing was said here yet, so a new
        session chooses again; only what comes out differently is written."""
        setting, history = self._setting, self._history
        setting.defaults = defaults
        if history.messages:
            return
        choice = setting.catalog.choose(None, None, defaults, first=False)
        self._session.fallback = (choice.message, choice.reason)
        try:
            if choice.model is not None and choice.model != setting.model:
                history.append("model_change", provider=choice.model.provider, modelId=choice.model.id)
            if choice.thinking_level != setting.level:
                history.append("thinking_level_change", thinkingLevel=choice.thinking_level)
        except JournalError as error:
            self._services.complain(str(error))
        setting.model, setting.level = choice.model, choice.thinking_level

    def use(self, catalog: CatalogView) -> None:
        """Models or credentials have changed. The session keeps its model, as the catalogue now describes it."""
        setting = self._setting
        setting.catalog = catalog
        if setting.model is not None:
            setting.model = catalog.find(setting.model.provider, setting.model.id) or setting.model

    # -- commands

    def _set_model(self, ticket: Ticket, command: c.SetModel) -> None:
        wanted = (command.provider, command.model_id)
        found = next((m for m in self._setting.catalog.available() if (m.provider, m.id) == wanted), None)
        if found is None:
            self._outbox.failed(ticket, f"Model not found: {command.provider}/{command.model_id}")
            return
        self.switch(found, "set")
        if command.persist:
            self._persist(found)
        self._outbox.ok(ticket, found)

    def _cycle_model(self, ticket: Ticket, command: c.CycleModel) -> None:
        from protocol.responses import CycledModel, ScopedModel

        scope = self._setting.catalog.scope()
        candidates = scope or tuple(ScopedModel(model) for model in self._setting.catalog.available())
        if len(candidates) < 2:
            self._outbox.ok(ticket, b"null")
            return
        step = 1 if command.direction == "forward" else -1
        chosen = candidates[(_place(candidates, self._setting.model) + step) % len(candidates)]
        self.switch(chosen.model, "cycle", chosen.thinking_level or None)
        if command.persist:
            self._persist(chosen.model)
        self._outbox.ok(ticket, CycledModel(chosen.model, self._setting.level, bool(scope)))

    def switch(
        self,
        model: Model,
        source: Literal["set", "cycle", "fallback", "restore"],
        level: ThinkingLevel | None = None,
    ) -> None:
        """The entry is written even for the same model; the event is for another one alone."""
        previous, setting = self._setting.model, self._setting
        self._history.append("model_change", provider=model.provider, modelId=model.id)
        level = level or self._level_at(model)
        setting.model = model
        self._session.fallback = (None, None)
        if source in ("set", "cycle"):
            self._session.cycle.model_chosen()
        self.thinking.change(level)
        if previous != model:
            self._outbox.event(ModelChanged(model, source, previous or UNSET))

    def _level_at(self, model: Model) -> ThinkingLevel:
        """The level that goes with a switch to `model`: its own saved one, else the one in force, which says nothing
        when the model before could not think."""
        setting = self._setting
        before = setting.model
        if before is not None and (before.provider, before.id) == (model.provider, model.id):
            return setting.level
        if f"{model.provider}/{model.id}" in setting.defaults.levels or before is None or not before.reasoning:
            return setting.defaults.level_of(model)
        return setting.level

    def _persist(self, model: Model) -> None:
        """Of a model that cannot think the level `off` is no wish, so it is not saved."""
        setting = self._setting
        setting.defaults = replace(setting.defaults, provider=model.provider, model=model.id)
        self.save(("defaultProvider",), model.provider)
        self.save(("defaultModel",), model.id)
        if model.reasoning:
            setting.defaults = replace(setting.defaults, level=setting.level)
            self.save(("defaultThinkingLevel",), setting.level)

    def _get_available_models(self, ticket: Ticket, _: c.GetAvailableModels) -> None:
        from protocol.responses import Catalogue

        catalog = self._setting.catalog
        self._outbox.ok(ticket, Catalogue(catalog.available(), list(catalog.scope()), oauth_providers=[]))


def _place(candidates: tuple[ScopedModel, ...], current: Model | None) -> int:
    """Where the current model stands; one that is not among them counts as the first."""
    if current is None:
        return 0
    names = [(candidate.model.provider, candidate.model.id) for candidate in candidates]
    return names.index((current.provider, current.id)) if (current.provider, current.id) in names else 0
