"""What sessions see of the model catalogue, and what they may save as defaults. Frozen values; see `actors.catalog`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from protocol.model import Model, ThinkingLevel

if TYPE_CHECKING:
    from actors.model.prompt import Credential
    from actors.session.surroundings import Surroundings
    from protocol.responses import AuthStatus, ScopedModel

FallbackReason = Literal["configured-provider-unsupported", "session-restore", "no-models-available"]


class Choice(Protocol):
    """The model and level that a session starts with; without a model `reason` and `message` say why."""

    @property
    def model(self) -> Model | None: ...
    @property
    def thinking_level(self) -> ThinkingLevel: ...
    @property
    def message(self) -> str | None: ...
    @property
    def reason(self) -> FallbackReason | None: ...


class Defaults(Struct, frozen=True):
    """What commands may save as the user's defaults; it goes along from session to session. `levels` are thinking
    levels by `provider/id`. `task_updates`, which is never saved, tells that the client listens to tasks."""

    provider: str | None = None
    model: str | None = None
    level: ThinkingLevel = "medium"
    levels: Mapping[str, ThinkingLevel] = {}
    auto_compaction: bool = True
    auto_retry: bool = True
    task_updates: bool = False

    def level_of(self, model: Model) -> ThinkingLevel:
        """The level that `model` starts at, before it is clamped."""
        return self.levels.get(f"{model.provider}/{model.id}", self.level)


class CatalogView(Protocol):
    """Models and who may use them, as they stand; it never changes. Only `authorize` runs commands, and nothing touches
    the network."""

    def available(self) -> list[Model]:
        """Models whose provider has a credential, in catalogue order."""

    def scope(self) -> tuple[ScopedModel, ...]:
        """The available models that cycling stays within; none: all of them."""

    def find(self, provider: str, model_id: str) -> Model | None:
        """A model of the catalogue, available or not."""

    def knows(self, provider: str) -> bool:
        """Whether the catalogue has models of this provider."""

    def refusal(self, model: Model | None) -> str | None:
        """Why a prompt for `model` cannot be sent, in words for the user; None if it can."""

    def choose(
        self, saved: tuple[str, str] | None, saved_level: ThinkingLevel | None, defaults: Defaults, *, first: bool
    ) -> Choice:
        """The model of a session whose entries name `saved`. The program's flags speak for its first session, and for
        those that name no model."""

    def auth_status(self, provider: str) -> AuthStatus:
        """Whether a provider has a credential, and where it comes from."""

    def authorize(self, model: Model) -> Credential:
        """What a request carries. For pumps alone. Raises `ValueError` with a text for the user."""

    def reloaded(self, files: Any) -> CatalogView:
        """The view that follows from what a pump has read."""

    def logged_out(self, provider: str) -> CatalogView:
        """Without this provider's runtime key, and without what has become unavailable in the scope."""


class Inherited(Struct, frozen=True):
    """What a session starts with that may have changed since the process started; None: it has not."""

    catalog: CatalogView | None = None
    defaults: Defaults | None = None
    surroundings: Surroundings | None = None
