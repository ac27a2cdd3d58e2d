"""What a session works with now: its model and level, and what these are chosen from."""

from __future__ import annotations

from actors.session.retry import RetryPolicy
from actors.session.services import Services
from protocol.model import Model, ThinkingLevel


class Setting:
    """Without a model nothing can be asked."""

    __slots__ = ("catalog", "defaults", "level", "model", "surroundings")

    def __init__(self, services: Services) -> None:
        self.model: Model | None = None
        self.level: ThinkingLevel = "off"
        self.catalog = services.catalog
        self.defaults = services.defaults
        self.surroundings = services.surroundings

    @property
    def retry_policy(self) -> RetryPolicy:
        policy = self.surroundings.retry
        return policy if self.defaults.auto_retry else policy.switched_off()
