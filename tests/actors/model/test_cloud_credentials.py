"""Where the clouds' credentials come from, and that a model of a cloud can be had through the files of a user."""

from __future__ import annotations

from typing import Any

import pytest

from actors.model.cloud_request import CloudCredential
from protocol.model import Model
from runtime.credentials import AuthStatus, CredentialError, Credentials, no_api_key_text
from runtime.models import LoadedModels, merge_models
from runtime.stored_credentials import StoredCredential

BEDROCK, VERTEX, AZURE = "amazon-bedrock", "google-vertex", "azure-openai-responses"
APIS = {BEDROCK: "bedrock-converse-stream", VERTEX: "google-vertex", AZURE: "azure-openai-responses"}
PAIR = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s3cr3t"}


def loaded(provider: str, **more: Any) -> tuple[LoadedModels, Model]:
    entry = {"api": APIS[provider], "baseUrl": "https://cloud.example", "models": [{"id": "m"}], **more}
    models = merge_models({"providers": {provider: entry}}, scripted=False)
    assert models.warnings == []
    return models, next(model for model in models.models if model.provider == provider)


def found(provider: str, env: dict[str, str], stored: StoredCredential | None = None, **more: Any) -> Any:
    """The status, and what a request carries: (key, bearer, variables), or the refusal's text."""
    models, model = loaded(provider, **more)
    entries = {provider: stored} if stored else {}
    credentials = Credentials(env, models.providers, entries, lambda _: None, is_file=lambda path: False)
    try:
        credential = credentials.resolve(provider, model)
    except CredentialError as error:
        return credentials.status(provider), str(error)
    assert isinstance(credential, CloudCredential)
    assert "s3cr3t" not in repr(credential)
    return credentials.status(provider), (credential.api_key, credential.bearer, credential.variables)


def test_an_aws_key_pair_is_enough_for_bedrock() -> None:
    status, credential = found(BEDROCK, {**PAIR, "AWS_REGION": "eu-west-1", "HOME": "/home/me"})
    assert status == AuthStatus(True, "environment", "AWS_ACCESS_KEY_ID")
    assert credential == ("", "", {**PAIR, "AWS_REGION": "eu-west-1"})


def test_a_bedrock_api_key_comes_before_a_key_pair() -> None:
    status, credential = found(BEDROCK, {**PAIR, "AWS_BEARER_TOKEN_BEDROCK": "bk"})
    assert status == AuthStatus(True, "environment", "AWS_BEARER_TOKEN_BEDROCK")
    assert credential == ("bk", "", PAIR)


def test_an_entry_of_auth_json_without_a_key_says_that_the_surroundings_count_and_adds_to_them() -> None:
    entry = StoredCredential("api_key", env={"AWS_PROFILE": "work"})
    status, credential = found(BEDROCK, {"AWS_REGION": "a", "AWS_PROFILE": "home"}, entry)
    assert (status, credential) == (AuthStatus(True, "stored"), ("", "", {"AWS_REGION": "a", "AWS_PROFILE": "work"}))
    assert found(VERTEX, {}, StoredCredential("api_key"))[0] == AuthStatus(True, "stored")


def test_an_entry_with_a_key_is_that_key() -> None:
    assert found(VERTEX, {}, StoredCredential("api_key", "ya29"))[1] == ("ya29", "", {})


def test_a_key_of_models_json_serves_a_cloud() -> None:
    status, credential = found(VERTEX, {"TOKEN": "ya29", "CLOUD_ML_REGION": "global"}, apiKey="$TOKEN")
    assert status == AuthStatus(True, "environment", "TOKEN")
    assert credential == ("ya29", "", {"CLOUD_ML_REGION": "global"})


def test_an_entra_token_is_a_bearer_token_and_comes_before_the_key() -> None:
    keys = {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_AD_TOKEN": "entra", "OPENAI_API_VERSION": "preview"}
    status, credential = found(AZURE, keys)
    assert status == AuthStatus(True, "environment", "AZURE_OPENAI_AD_TOKEN")
    assert credential == ("", "entra", {"OPENAI_API_VERSION": "preview"})
    assert found(AZURE, {"AZURE_OPENAI_API_KEY": "k"})[1] == ("k", "", {})


def test_azure_without_key_or_token_is_refused() -> None:
    assert found(AZURE, PAIR) == (AuthStatus(False), f"No API key for provider: {AZURE}")


@pytest.mark.parametrize("provider", [BEDROCK, VERTEX])
def test_a_cloud_without_anything_in_sight_is_not_configured(provider: str) -> None:
    assert found(provider, {"HOME": "/home/me"})[0] == AuthStatus(False)
    assert no_api_key_text(provider).startswith(f"No API key found for {provider}.\n\n")
    assert "docs/cloud.md" in no_api_key_text(provider)
