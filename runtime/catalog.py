"""The models of this process and who may use them, as sessions see them.

A value: what settings, `models.json`, credentials and flags said at the start.
"""

from __future__ import annotations

from actors.session.services import Choice
from protocol.model import Model, ThinkingLevel
from runtime.choose_model import NamedModel, SavedModel, choose_model
from runtime.credentials import Credentials, no_api_key_text
from runtime.settings import Settings


class LoadedCatalog:
    """`actors.session.services.Catalog`, made from what was loaded."""

    def __init__(
        self,
        models: list[Model],
        credentials: Credentials,
        settings: Settings,
        named: NamedModel | None,
        thinking: ThinkingLevel | None,
    ) -> None:
        self._models = models
        self._credentials = credentials
        self._settings = settings
        self._named = named
        self._thinking = thinking

    def available(self) -> list[Model]:
        return [model for model in self._models if self._credentials.is_configured(model.provider)]

    def refusal(self, model: Model | None) -> str | None:
        if model is None:
            return no_api_key_text("unknown")
        if not self._credentials.is_configured(model.provider):
            return no_api_key_text(model.provider)
        return None

    def choose(self, saved: tuple[str, str] | None, saved_level: ThinkingLevel | None, *, first: bool) -> Choice:
        return choose_model(
            self._models,
            self._credentials.is_configured,
            named=self._named if first or saved is None else None,
            saved=SavedModel(*saved) if saved else None,
            default_provider=self._settings.default_provider,
            default_model=self._settings.default_model,
            thinking=self._thinking if first or saved is None else None,
            saved_level=saved_level,
            default_level=self._settings.default_thinking_level,
        )
