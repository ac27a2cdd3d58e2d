"""How requests to providers are sent, by the settings of the user."""

from __future__ import annotations

from actors.model.transport import TransportSettings
from runtime.settings import Settings


def transport_settings(settings: Settings) -> TransportSettings:
    answer_ms = settings.provider_timeout_ms
    return TransportSettings(
        proxy=settings.http_proxy,
        no_proxy=settings.no_proxy,
        ca_file=settings.ca_file,
        connect_timeout_s=_seconds(settings.http_connect_timeout_ms),
        answer_timeout_s=(settings.http_idle_timeout_ms if answer_ms is None else answer_ms) / 1000,
        idle_timeout_s=_seconds(settings.http_idle_timeout_ms),
        event_timeout_s=_seconds(settings.stream_deadline_ms),
        total_timeout_s=_seconds(settings.http_total_timeout_ms),
    )


def _seconds(milliseconds: int) -> float | None:
    """None, which is no limit, for 0."""
    return milliseconds / 1000 or None
