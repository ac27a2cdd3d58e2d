"""Takes secrets out of a recording: the same value stands for the same secret, and none can be read back.

Owns which fields hold secrets, and which texts were seen to be secrets: what stood in such a field, and what is in a
variable of the environment that is named like one, is masked wherever it comes again, also inside longer texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from conformance.model_server import masked

_FIELD = re.compile(
    r"^(credential|credentials|headers)$|api_?-?key|secret|password|passphrase|authorization|cookie|bearer"
    r"|^(access|refresh|id)?_?-?token$",
    re.IGNORECASE,
)
_MEMBER = re.compile(rb'("((?:[^"\\]|\\.)*)"\s*:\s*)("((?:[^"\\]|\\.)*)"?)')
_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
_SHORTEST = 6  # a text shorter than that would be found in too much that is none


class Mask:
    """Grows as it sees secrets: give it what was said in the order in which it was said."""

    def __init__(self, environment: Mapping[str, str] | None = None, command: Iterable[str] = ()) -> None:
        self._known: dict[str, str] = {}
        self._logins: set[str] = set()  # dialogs of a login: what is typed there is secret
        for name, value in (environment or {}).items():
            if _VARIABLE.search(name.upper()):
                self._learn(value)
        words = list(command)
        for flag, value in pairwise(words):
            if flag.startswith("--") and _FIELD.search(flag[2:]):
                self._learn(value)

    def value(self, value: Any) -> Any:
        """A JSON value without secrets."""
        if isinstance(value, dict) and str(value.get("method")).startswith("oauth_"):
            self._logins.add(str(value.get("id")))
        typed = isinstance(value, dict) and value.get("type") == "extension_ui_response"
        if typed and str(value.get("id")) in self._logins and "value" in value:
            value = {**value, "value": self._without_fields(value["value"], secret=True)}
        return self._shown(self._without_fields(value, secret=False))

    def text(self, text: str) -> str:
        """A text without the secrets that are known by now."""
        for secret, shown in self._known.items():
            text = text.replace(secret, shown)
        return text

    def raw(self, data: bytes) -> bytes:
        """What is no JSON that can be read, but may have been meant as such."""
        data = _MEMBER.sub(self._masked_member, data)
        for secret, shown in self._known.items():
            data = data.replace(secret.encode("utf-8", "surrogatepass"), shown.encode())
        return data

    def _masked_member(self, member: re.Match[bytes]) -> bytes:
        if not _FIELD.search(member[2].decode("utf-8", "replace")):
            return member[0]
        self._learn(member[4].decode("utf-8", "replace"))
        return member[1] + b'"***"'

    def _without_fields(self, value: Any, *, secret: bool) -> Any:
        if isinstance(value, dict):
            return {
                key: self._without_fields(item, secret=(secret and key != "type") or bool(_FIELD.search(key)))
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._without_fields(item, secret=secret) for item in value]
        if not secret or value is None or isinstance(value, bool) or value == "":
            return value
        self._learn(str(value))
        return masked(str(value))

    def _shown(self, value: Any) -> Any:
        if not self._known:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._shown(item) for key, item in value.items()}
        return [self._shown(item) for item in value] if isinstance(value, list) else value

    def _learn(self, secret: str) -> None:
        if len(secret) >= _SHORTEST and not secret.startswith("***"):
            self._known[secret] = masked(secret)
