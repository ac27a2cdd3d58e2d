"""Credentials: which providers can be asked, where each key comes from, and the key itself when a request needs it.

Owns the order of the sources. Promises that asking whether a provider is configured runs no command, that a stored
credential owns its provider, and that no secret is in a repr or an error text. Source: sessions 4.3 and 4.4.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from actors.model.cloud_ambient import AMBIENT_PROVIDERS, CLOUD_APIS, ambient_source, cloud_variables
from runtime.config_values import UnresolvedValue, is_command, missing_variables, resolve_value, shown, variable_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.model.prompt import Credential
    from protocol.model import Model
    from runtime.models import ProviderConfig
    from runtime.stored_credentials import StoredCredential

KEYLESS_PROVIDERS = frozenset({"scripted"})
BEARER_VARIABLE = "ANTHROPIC_AUTH_TOKEN"
BEARER_VARIABLES = frozenset({BEARER_VARIABLE, "AZURE_OPENAI_AD_TOKEN"})
ENVIRONMENT_KEYS = {
    "anthropic": (BEARER_VARIABLE, "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "github-copilot": ("COPILOT_GITHUB_TOKEN",),
    "huggingface": ("HF_TOKEN",),
    "groq": ("GROQ_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "amazon-bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "azure-openai-responses": ("AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY"),
}


class CredentialError(ValueError):
    """A request cannot be authenticated; the text is meant for the user and names no secret."""


class NoCredential(CredentialError):
    """No source has anything for the provider."""


class AuthStatus(Struct, frozen=True):
    """`source` is runtime, stored, models_json_key, models_json_command or environment; `label` names variables."""

    configured: bool
    source: str | None = None
    label: str | None = None


class Credentials:
    """The credentials of this process, a value. `run_command` runs one shell command and answers its output or None;
    `resolve` calls it, so that belongs into a pump. `is_file` looks whether a cloud's credentials file is there."""

    __slots__ = ("_env", "_is_file", "_providers", "_run_command", "_run_stored_command", "_runtime_keys", "_stored")

    def __init__(
        self,
        env: Mapping[str, str],
        providers: Mapping[str, ProviderConfig],
        stored: Mapping[str, StoredCredential],
        run_command: Callable[[str], str | None],
        runtime_keys: Mapping[str, str] | None = None,
        run_stored_command: Callable[[str], str | None] | None = None,
        is_file: Callable[[str], bool] = os.path.isfile,
    ) -> None:
        self._env = env
        self._providers = providers
        self._stored = stored
        self._run_command = run_command
        self._run_stored_command = run_stored_command or cache(run_command)  # for the life of the process, failures too
        self._runtime_keys = runtime_keys or {}
        self._is_file = is_file

    def __repr__(self) -> str:
        return f"Credentials(stored={sorted(self._stored)}, providers={sorted(self._providers)})"

    def renewed(
        self, providers: Mapping[str, ProviderConfig], stored: Mapping[str, StoredCredential] | None
    ) -> Credentials:
        """After the files were read again; without `stored` auth.json could not be. What stored commands have answered
        is kept."""
        return self._with(providers, self._stored if stored is None else stored, self._runtime_keys)

    def with_runtime_key(self, provider: str, key: str | None) -> Credentials:
        """With the key of `--api-key` for a provider, or without one."""
        others = {name: value for name, value in self._runtime_keys.items() if name != provider}
        return self._with(self._providers, self._stored, {**others, **({provider: key} if key else {})})

    def _with(
        self,
        providers: Mapping[str, ProviderConfig],
        stored: Mapping[str, StoredCredential],
        runtime_keys: Mapping[str, str],
    ) -> Credentials:
        return Credentials(
            self._env, providers, stored, self._run_command, runtime_keys, self._run_stored_command, self._is_file
        )

    def is_configured(self, provider: str) -> bool:
        return self.status(provider).configured

    def status(self, provider: str) -> AuthStatus:
        """Without running commands: a command counts as configured."""
        if self._runtime_keys.get(provider):
            return AuthStatus(True, "runtime")
        if stored := self._stored.get(provider):
            return AuthStatus(True, "stored") if self._is_usable(provider, stored) else AuthStatus(False)
        config = self._providers.get(provider)
        if config and config.api_key:
            return self._config_status(config.api_key)
        if names := self._variables(provider, self._env):
            return AuthStatus(True, "environment", names[0])
        if source := ambient_source(provider, self._env, self._is_file):
            return AuthStatus(True, "environment", source)
        return AuthStatus(provider in KEYLESS_PROVIDERS)

    def resolve(self, provider: str, model: Model) -> Credential:
        """What a request to `model` carries. Raises CredentialError. May run commands."""
        from actors.model.prompt import Credential

        config = self._providers.get(provider)
        try:
            api_key, bearer = self._key(provider, config, model)
            headers = self._headers(config, model) if config else {}
        except UnresolvedValue as error:
            raise CredentialError(str(error)) from None
        if config and config.auth_header and api_key:
            headers = {"Authorization": f"Bearer {api_key}", **headers}
        if model.api in CLOUD_APIS:
            return self._cloud_credential(provider, model.api, Credential(api_key, bearer, tuple(headers.items())))
        return Credential(api_key=api_key, bearer=bearer, headers=tuple(headers.items()))

    def _cloud_credential(self, provider: str, api: str, found: Credential) -> Credential:
        from actors.model.cloud_request import CloudCredential

        stored = self._stored.get(provider)
        variables = cloud_variables(api, self._env, stored.env if stored else {})
        return CloudCredential(found.api_key, found.bearer, found.headers, variables)

    def _key(self, provider: str, config: ProviderConfig | None, model: Model) -> tuple[str, str]:
        """API key and bearer token, at most one of them filled."""
        what = f'API key for provider "{provider}"'
        if key := self._runtime_keys.get(provider):
            return key, ""
        if stored := self._stored.get(provider):
            return self._stored_key(provider, stored, what, keyless=_needs_no_key(provider, model))
        if config and config.api_key:
            return resolve_value(config.api_key, what, self._env, self._run_command), ""
        return self._variable_key(provider, self._env, keyless=_needs_no_key(provider, model))

    def _stored_key(self, provider: str, stored: StoredCredential, what: str, *, keyless: bool) -> tuple[str, str]:
        if stored.type != "api_key":
            raise CredentialError(
                f'Stored credential of provider "{provider}" has type {shown(stored.type)}, which is not supported;'
                " allowed: api_key"
            )
        if stored.key is None:
            return self._variable_key(provider, stored.env, keyless=keyless)
        return resolve_value(stored.key, what, {**self._env, **stored.env}, self._run_stored_command), ""

    def _variable_key(self, provider: str, env: Mapping[str, str], *, keyless: bool) -> tuple[str, str]:
        names = self._variables(provider, env)
        if not names:
            if keyless:
                return "", ""
            raise NoCredential(f"No API key for provider: {provider}")
        value = env[names[0]].strip()
        return ("", value) if names[0] in BEARER_VARIABLES else (value, "")

    def _headers(self, config: ProviderConfig, model: Model) -> dict[str, str]:
        values = {**config.headers, **config.model_headers.get(model.id, {})}
        return {
            name: resolve_value(value, f'header "{name}" for provider "{config.id}"', self._env, self._run_command)
            for name, value in values.items()
        }

    def _is_usable(self, provider: str, stored: StoredCredential) -> bool:
        if stored.type != "api_key":
            return False
        if stored.key is None:
            return provider in AMBIENT_PROVIDERS or bool(self._variables(provider, stored.env))
        return not missing_variables(stored.key, {**self._env, **stored.env})

    def _config_status(self, value: str) -> AuthStatus:
        if is_command(value):
            return AuthStatus(True, "models_json_command")
        if missing_variables(value, self._env):
            return AuthStatus(False)
        names = variable_names(value)
        return AuthStatus(True, "environment", ", ".join(names)) if names else AuthStatus(True, "models_json_key")

    @staticmethod
    def _variables(provider: str, env: Mapping[str, str]) -> list[str]:
        return [name for name in ENVIRONMENT_KEYS.get(provider, ()) if env.get(name, "").strip()]


def _needs_no_key(provider: str, model: Model) -> bool:
    return model.api in KEYLESS_PROVIDERS or (provider in AMBIENT_PROVIDERS and model.api in CLOUD_APIS)


def no_api_key_text(provider: str) -> str:
    """Why a prompt is refused. The placeholder model's provider is `unknown`. Source: rpc 2.1, sessions 4.7."""
    subject = "the selected model" if provider == "unknown" else provider
    if provider in AMBIENT_PROVIDERS:
        return (
            f"No API key found for {subject}.\n\n"
            "Set the variables of its cloud, log in with the cloud's own tool, or give the provider an entry in"
            " auth.json; docs/cloud.md shows them."
        )
    variables = ENVIRONMENT_KEYS.get(provider, ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"))
    return (
        f"No API key found for {subject}.\n\n"
        f"Set {' or '.join(variables)}, store a key in auth.json, or give the provider an apiKey in models.json."
        " Both files are in the agent directory; docs/configuration.md shows them."
    )
