"""The packages of an extra: imported when the first request needs them, and named when they are not there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from actors.model.transport_contract import TransportError


def imported(module: str, extra: str, cloud: str) -> Any:
    """Raises TransportError with what to install."""
    try:
        return import_module(module)
    except ImportError:
        package = {"botocore": "boto3", "google": "google-auth"}.get(module.partition(".")[0], module)
        raise TransportError(
            f"{cloud} needs the package {package}, which is not installed; run: pip install 'atomic-runtime[{extra}]'"
        ) from None
