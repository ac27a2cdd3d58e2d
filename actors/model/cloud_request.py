"""A question to a model behind a cloud's own gateway, before that cloud's SDK has signed it.

What crosses from the pure dialects into the transport. Neither `repr` shows a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from actors.model.prompt import Credential, HttpRequest
from protocol.model import Model

if TYPE_CHECKING:
    from actors.model.transport_contract import Abort

SCHEME = "cloud:"


class CloudCredential(Credential, frozen=True):
    """`variables` are the cloud's own (region, profile, project, key pair), from the environment under what auth.json
    says for the provider. A key or a bearer token besides wins over what they could sign with."""

    variables: dict[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, variables=[{', '.join(self.variables)}])"


class CloudRequest(HttpRequest, frozen=True):
    """`url` is `cloud:` and the name of the api; `headers` and `body` are what the caller adds and asks."""

    model: Model
    credential: Credential

    @property
    def variables(self) -> dict[str, str]:
        return self.credential.variables if isinstance(self.credential, CloudCredential) else {}

    @property
    def given_token(self) -> str:
        """The key or token that the user gave, if any."""
        return self.credential.bearer or self.credential.api_key


class Sender(Protocol):
    """What the clouds need of the transport."""

    def stream(
        self,
        build: Callable[[], HttpRequest],
        abort: Abort,
        on_head: Callable[[int, Mapping[str, str]], None],
        on_bytes: Callable[[bytes], None],
        method: str = "POST",
    ) -> None: ...

    def close(self) -> None: ...
