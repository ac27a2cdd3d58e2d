"""Asks the clouds: signs with their SDKs, sends with our transport, and hands on what our readers read.

Owns the credentials that it has looked up. Blocking, for pump threads; an abort cuts the request for a token and the
request itself at once. Between them it is seen before the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from actors.model.cloud_ambient import BEDROCK, VERTEX
from actors.model.cloud_aws import AwsCredentials, region_of
from actors.model.cloud_frames import FrameDecoder
from actors.model.cloud_google import GoogleTokens
from actors.model.cloud_signing import (
    signed_for_azure,
    signed_for_bedrock,
    signed_for_vertex,
    vertex_location,
    vertex_project,
)
from actors.model.redacted_answer import FRAMES, RedactedAnswer
from actors.model.redaction import Redaction, secrets_in
from actors.model.transport_contract import TransportError

if TYPE_CHECKING:
    from actors.model.cloud_request import CloudRequest, Sender
    from actors.model.prompt import HttpRequest
    from actors.model.transport_contract import Abort, TransportSettings

OnHead = Callable[[int, Mapping[str, str]], None]
OnBytes = Callable[[bytes], None]
_METADATA_HOSTS = ("169.254.169.254", "metadata.google.internal")
_TOKEN_CONNECT_S, _TOKEN_S = 5.0, 30.0


class CloudSource:
    """One per process. `stream` has the contract of `Transport.stream`. `tokens` sends the requests for tokens, with
    `token_settings`; it is closed with this."""

    def __init__(self, transport: Sender, tokens: Sender) -> None:
        self._transport = transport
        self._tokens = tokens
        self._google = GoogleTokens(tokens)
        self._aws = AwsCredentials()

    def close(self) -> None:
        self._tokens.close()

    def stream(self, request: CloudRequest, abort: Abort, on_head: OnHead, on_bytes: OnBytes) -> None:
        signed = self._signed(request, abort)
        redacted = RedactedAnswer(Redaction(secrets_in(signed.headers)), abort, on_head, on_bytes)
        answer = _Answer(redacted.on_head, redacted.on_bytes)
        try:
            self._transport.stream(lambda: signed, abort, answer.on_head, answer.on_bytes)
        except TransportError:
            redacted.end()
            raise
        redacted.end()
        if answer.status in (401, 403):
            self._google.forget(request.variables)
            self._aws.forget(request.variables)

    def _signed(self, request: CloudRequest, abort: Abort) -> HttpRequest:
        if request.model.api == BEDROCK:
            region = region_of(request.model.base_url, request.variables)
            keys = None if request.given_token else self._aws.key_pair(request.variables)
            return signed_for_bedrock(request, region, keys)
        if request.model.api == VERTEX:
            location = vertex_location(request)
            token, project = request.given_token, None
            if not token:
                token, project = self._google.token(request.variables, abort)
            return signed_for_vertex(request, location, vertex_project(request, project), token)
        return signed_for_azure(request)


class _Answer:
    """Passes an answer on, Bedrock's frames as events. Errors and gateways that speak plain events pass as they are."""

    def __init__(self, on_head: OnHead, on_bytes: OnBytes) -> None:
        self.status = 0
        self._on_head = on_head
        self._on_bytes = on_bytes
        self._frames: FrameDecoder | None = None

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        if status < 400 and headers.get("content-type", "").startswith(FRAMES):
            self._frames = FrameDecoder()
            headers = {**headers, "content-type": "text/event-stream"}
        self._on_head(status, headers)

    def on_bytes(self, data: bytes) -> None:
        told = self._frames.feed(data) if self._frames else data
        if told:
            self._on_bytes(told)


def token_settings(settings: TransportSettings) -> TransportSettings:
    """A token is a short answer. Metadata servers are never behind a proxy."""
    connect = min(settings.connect_timeout_s or _TOKEN_CONNECT_S, _TOKEN_CONNECT_S)
    return replace(
        settings,
        no_proxy=(*settings.no_proxy, *_METADATA_HOSTS),
        connect_timeout_s=connect,
        answer_timeout_s=None,
        idle_timeout_s=min(settings.idle_timeout_s or _TOKEN_S, _TOKEN_S),
        event_timeout_s=None,
        total_timeout_s=min(settings.total_timeout_s or _TOKEN_S, _TOKEN_S),
    )
