"""The place where a case is played: throw-away folders, the files and settings that it starts with, the command line.

Owns the root folder of one case. Promises that the agent under test sees no file, key, proxy or setting of the person
who runs the kit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.fault import KitError
from conformance.folders import FOLDERS
from conformance.names import fill, resolve
from conformance.profile import Profile

_SUFFIXES = ("_API_KEY", "_PROXY")  # other providers' keys add models; a proxy would see what is for 127.0.0.1
_LARGE = {"contextWindow": 200_000, "maxTokens": 8000}
SETTINGS: dict[str, Any] = {
    "retry": {"enabled": True, "maxRetries": 2, "baseDelayMs": 50},
    "sessionSummary": {"enabled": False},
    "enableInstallTelemetry": False,
}


def models(url: str) -> dict[str, Any]:
    """The providers of every case: `fa` speaks Anthropic Messages, `fo` Chat Completions, `fr` Responses."""
    anthropic = [
        {"id": "m", **_LARGE, "input": ["text", "image"]},
        {"id": "m2", **_LARGE},
        {"id": "think", **_LARGE, "reasoning": True},
        {"id": "small", "contextWindow": 20_000, "maxTokens": 2000},
    ]
    openai = [{"id": "m", "contextWindow": 128_000, "maxTokens": 8000}]
    return {
        "fa": {"baseUrl": url, "api": "anthropic-messages", "apiKey": "key-of-fa", "models": anthropic},
        "fo": {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "key-of-fo", "models": openai},
        "fr": {"baseUrl": f"{url}/v1", "api": "openai-responses", "apiKey": "key-of-fr", "models": openai},
    }


class Stage:
    """`names` are those that every case knows: its folders, the `url` of the model server, and
    `project`, what the program calls its folder inside of a project."""

    def __init__(self, root: Path, url: str, profile: Profile, start: Mapping[str, Any]) -> None:
        self._profile, self._start = profile, start
        self.cwd = root / "cwd"
        for folder in FOLDERS:
            (root / folder).mkdir()
        self._root = root
        self.names: dict[str, Any] = {folder: str(root / folder) for folder in FOLDERS} | {"url": url}
        self.names["project"] = profile.project
        providers = resolve({**models(url), **start.get("models", {})}, self.names)
        known = {**self.names, "models": providers, "settings": _merged(SETTINGS, start.get("settings", {}))}
        for path, content in profile.files.items():
            self.write(path, {"json": resolve(content, known)})
        for path, content in start.get("files", {}).items():
            self.write(fill(path, self.names), content)

    def path(self, text: str) -> Path:
        """An absolute path, or one below a folder of the stage (`cwd/a.txt`)."""
        return self._root / text

    def write(self, path: str, content: Any, names: Mapping[str, Any] | None = None, *, append: bool = False) -> None:
        """Write `content` as the format describes it: text, lines (objects become JSON), hex or json. KitError for a
        path that leads out of the folders, also by a link."""
        file = self.path(path)
        if not file.resolve().is_relative_to(self._root.resolve()):
            raise KitError(f"{path} is outside of the folders of the case")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab" if append else "wb") as out:
            out.write(_bytes(content, names or self.names))

    def command(self, command: Sequence[str], change: Mapping[str, Any], names: Mapping[str, Any]) -> list[str]:
        """The whole command line; `change` are the fields of a restart, which go over those of the start."""
        start = {**self._start, **change}
        profile, words = self._profile, list(command)
        words += profile.in_memory_args if start.get("in_memory") else profile.args
        known = {**self.names, **names, "provider": start.get("provider", "fa"), "model": start.get("model", "m")}
        if known["model"] is not None:
            words += [fill(word, known) for word in profile.model_args]
        if "session" in start:
            known["session"] = self.path(fill(start["session"], known))
            words += profile.session_args
        return [fill(word, known) for word in (*words, *start.get("args", ()))]

    def environment(self, change: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, str]:
        """This process's environment without keys, proxies and settings, then the profile's, then the case's."""
        env = {name: value for name, value in os.environ.items() if not self._is_private(name.upper())}
        for name, value in {**self._profile.env, **self._start.get("env", {}), **change.get("env", {})}.items():
            env.pop(name, None)
            if value is not None:
                env[name] = fill(value, {**self.names, **names})
        return env

    def _is_private(self, name: str) -> bool:
        return name.startswith(self._profile.unset) or name.endswith(_SUFFIXES)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    inner = {key: _merged(base[key], value) for key, value in over.items() if _both_objects(base.get(key), value)}
    return {**base, **over, **inner}


def _both_objects(one: Any, other: Any) -> bool:
    return isinstance(one, dict) and isinstance(other, dict)


def _bytes(content: Any, names: Mapping[str, Any]) -> bytes:
    if isinstance(content, str):
        return fill(content, names).encode("utf-8", "surrogatepass")
    if isinstance(content, list):
        return b"".join(_line(line, names) + b"\n" for line in content)
    if "hex" in content:
        return bytes.fromhex(content["hex"])
    if "lines" in content:  # without the last LF
        return b"\n".join(_line(line, names) for line in content["lines"])
    if "json" in content:
        return json.dumps(resolve(content["json"], names), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return resolve(content, names).encode() if "$times" in content else _bytes(content["text"], names)


def _line(line: Any, names: Mapping[str, Any]) -> bytes:
    whole = resolve(line, names)
    text = whole if isinstance(whole, str) else json.dumps(whole, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")
