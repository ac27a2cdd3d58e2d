"""Google: access tokens from application default credentials.

google-auth knows the kinds of credentials; this lends it our transport, so that proxy, CA file, time-outs and abort
are those of every request, and owns the tokens until they expire. Blocking, for pump threads. Errors hold neither a
token nor what a file or a server said, except a server's error code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from actors.model.cloud_packages import imported
from actors.model.prompt import HttpRequest
from actors.model.transport_contract import Abort, Aborted, TransportError

if TYPE_CHECKING:
    from actors.model.cloud_request import Sender

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_CODE = re.compile(r"[a-z]+(?:_[a-z]+)+")


class GoogleTokens:
    """Used from many pumps at once: credentials are renewed before they are put here, and never changed after."""

    def __init__(self, transport: Sender) -> None:
        self._transport = transport
        self._held: dict[str, tuple[Any, str | None]] = {}

    def token(self, variables: dict[str, str], abort: Abort) -> tuple[str, str | None]:
        """A token and the project that the credentials are of, if they tell. Raises TransportError."""
        path = variables.get("GOOGLE_APPLICATION_CREDENTIALS", "")
        credentials, project = self._held.get(path) or (None, None)
        if credentials is None or not credentials.valid:
            credentials, project = self._held[path] = self._renewed(path, abort)
        return str(credentials.token), project

    def forget(self, variables: dict[str, str]) -> None:
        """Google refused the token: the next request asks for another."""
        self._held.pop(variables.get("GOOGLE_APPLICATION_CREDENTIALS", ""), None)

    def _renewed(self, path: str, abort: Abort) -> tuple[Any, str | None]:
        auth = imported("google.auth", "vertex", "Vertex")
        errors = imported("google.auth.exceptions", "vertex", "Vertex")
        ask = _Asking(self._transport, abort, errors.TransportError)
        try:
            if path:
                credentials, project = auth.load_credentials_from_file(path, scopes=[SCOPE], request=ask)
            else:
                credentials, project = auth.default(scopes=[SCOPE], request=ask)
            credentials.refresh(ask)
        except TransportError:
            raise
        except Exception as error:  # google-auth's own, or what a malformed file leads to
            raise TransportError(_told(error)) from None
        return credentials, project


class _Asking:
    """What google-auth takes for a HTTP library."""

    def __init__(self, transport: Sender, abort: Abort, failure: type[Exception]) -> None:
        self._transport = transport
        self._abort = abort
        self._failure = failure

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: object = None,
        **_: object,
    ) -> _Answer:
        data = body.encode() if isinstance(body, str) else body or b""
        told = tuple((name.lower(), str(value)) for name, value in (headers or {}).items())
        answer = _Answer()
        try:
            request = HttpRequest(url, told, data)
            self._transport.stream(lambda: request, self._abort, answer.on_head, answer.on_bytes, method=method)
        except Aborted:
            raise
        except TransportError as error:
            raise self._failure(str(error)) from None
        return answer


class _Answer:
    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.data = b""

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, headers

    def on_bytes(self, data: bytes) -> None:
        self.data += data


def _told(error: Exception) -> str:
    said = str(error.args[0]) if error.args else ""
    if type(error).__name__ == "TransportError":  # ours, by way of google-auth
        return said
    if type(error).__name__ == "DefaultCredentialsError" and "were not found" in said:
        return "No Google credentials found for Vertex: set GOOGLE_APPLICATION_CREDENTIALS, or run: gcloud auth" + (
            " application-default login"
        )
    code = _CODE.match(said)
    return f"The Google credentials cannot be used ({type(error).__name__}{f': {code[0]}' if code else ''})"
