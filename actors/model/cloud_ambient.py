"""What each cloud takes from the environment: the variables it knows, and whether it finds credentials there.

Pure: the environment and the test for a file are parameters. Source: sessions 4.4 ("ambient") and the clouds' own
tools, whose names for variables and files these are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

BEDROCK, VERTEX, AZURE = "bedrock-converse-stream", "google-vertex", "azure-openai-responses"
# The provider ids whose credentials may come from the surroundings, without a key of ours.
AMBIENT_PROVIDERS = frozenset({"amazon-bedrock", "google-vertex"})
VARIABLES = {
    BEDROCK: (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_CONFIG_FILE",
    ),
    VERTEX: (
        "GOOGLE_APPLICATION_CREDENTIALS",
        "ANTHROPIC_VERTEX_PROJECT_ID",
        "GOOGLE_CLOUD_PROJECT",
        "GCLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "CLOUD_ML_REGION",
    ),
    AZURE: ("OPENAI_API_VERSION", "AZURE_OPENAI_API_VERSION", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP"),
}
CLOUD_APIS = frozenset(VARIABLES)
_AWS_SIGNS = (
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


def cloud_variables(api: str, *layers: Mapping[str, str]) -> dict[str, str]:
    """What the layers, later ones on top, say for a cloud; blank is not said."""
    found = {name: layer[name].strip() for layer in layers for name in VARIABLES.get(api, ()) if name in layer}
    return {name: value for name, value in found.items() if value}


def ambient_source(provider: str, env: Mapping[str, str], is_file: Callable[[str], bool]) -> str | None:
    """The variable or the file that lets the cloud's own tools find credentials, None if there is none in sight.
    Nothing is opened and no server is asked, so an instance's metadata server counts only when auth.json has an entry
    for the provider."""
    if provider == "amazon-bedrock":
        return _aws_source(env, is_file)
    return _google_source(env, is_file) if provider == "google-vertex" else None


def _aws_source(env: Mapping[str, str], is_file: Callable[[str], bool]) -> str | None:
    if _is_set(env, "AWS_ACCESS_KEY_ID") and _is_set(env, "AWS_SECRET_ACCESS_KEY"):
        return "AWS_ACCESS_KEY_ID"
    sign = next((name for name in _AWS_SIGNS if _is_set(env, name)), None)
    if sign is not None:
        return sign
    path = env.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(_home(env), ".aws", "credentials")
    return "AWS credentials file" if is_file(path) else None


def _google_source(env: Mapping[str, str], is_file: Callable[[str], bool]) -> str | None:
    if _is_set(env, "GOOGLE_APPLICATION_CREDENTIALS"):
        return "GOOGLE_APPLICATION_CREDENTIALS"
    folder = env.get("CLOUDSDK_CONFIG") or (
        os.path.join(env["APPDATA"], "gcloud") if env.get("APPDATA") else os.path.join(_home(env), ".config", "gcloud")
    )
    found = is_file(os.path.join(folder, "application_default_credentials.json"))
    return "application default credentials" if found else None


def _is_set(env: Mapping[str, str], name: str) -> bool:
    return bool(env.get(name, "").strip())


def _home(env: Mapping[str, str]) -> str:
    return env.get("HOME") or env.get("USERPROFILE") or os.sep
