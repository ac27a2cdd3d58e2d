"""The clouds' SDKs as signers: each makes and signs a request, and hands it over where it would have sent it.

So addresses, headers and signatures are the SDKs', while sockets, proxy, time-outs, abort and error texts are those
of every other request. An SDK is imported by the first request to its cloud, which takes 0.5 to 3 s.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from actors.model.cloud_packages import imported
from actors.model.prompt import HttpRequest
from actors.model.transport_contract import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.model.cloud_aws import KeyPair
    from actors.model.cloud_request import CloudRequest

# The transport sends its own of these, with the same values where they are signed.
_OURS = ("host", "connection", "content-length", "accept-encoding")
_HEADERS = {"user-agent": "atomic", "accept-encoding": "identity"}
_VERTEX_HOST = re.compile(r"https?://([a-z]+(?:-[a-z]+\d+)?)-aiplatform\.googleapis\.com", re.IGNORECASE)
_UNDATED = ("v1", "preview", "latest")


def signed_for_bedrock(request: CloudRequest, region: str, keys: KeyPair | None) -> HttpRequest:
    """With SigV4 by `keys`, or without them with the user's Bedrock API key as bearer token."""
    imported("boto3", "bedrock", "Bedrock")

    def make(http: Any) -> Any:
        from anthropic import AnthropicBedrock

        # A key is given so that the SDK looks for none, and taken back before it would be used.
        base_url = _own_address(request) or f"https://bedrock-runtime.{region}.amazonaws.com"
        client = AnthropicBedrock(
            api_key=request.given_token or "none", aws_region=region, base_url=base_url, http_client=http, max_retries=0
        )
        if keys is not None:
            client.api_key = None
            client.aws_access_key, client.aws_secret_key, client.aws_session_token = keys
        return client

    return _signed("/v1/messages", request, make)


def signed_for_vertex(request: CloudRequest, location: str, project: str, token: str) -> HttpRequest:
    def make(http: Any) -> Any:
        from anthropic import AnthropicVertex

        base_url = _own_address(request)
        if base_url is not None and not re.search(r"/v\d\w*$", base_url):
            base_url += "/v1"
        return AnthropicVertex(
            region=location,
            project_id=project,
            access_token=token,
            base_url=base_url,
            http_client=http,
            max_retries=0,
        )

    return _signed("/v1/messages", request, make)


def signed_for_azure(request: CloudRequest) -> HttpRequest:
    """With the `api-key` header, or with a bearer token where the credential has one."""
    given, headers = request.credential, dict(request.headers)
    scheme, _, told = headers.get("authorization", "").partition(" ")
    token = given.bearer or (told if scheme.lower() == "bearer" else "")
    variables = request.variables
    version = variables.get("OPENAI_API_VERSION") or variables.get("AZURE_OPENAI_API_VERSION") or "v1"

    def make(http: Any) -> Any:
        from openai import AzureOpenAI

        return AzureOpenAI(
            api_key=None if token else given.api_key or headers.get("api-key"),
            azure_ad_token=token or None,
            api_version=version,
            base_url=azure_address(request.model.base_url, version),
            http_client=http,
            max_retries=0,
        )

    return _signed("/responses", request, make)


def azure_address(base_url: str, version: str) -> str:
    """A resource's bare host gets the path of its API: `/openai/v1` for the versions without a date, else `/openai`.
    A path that the user gave stays."""
    base = base_url.partition("?")[0].rstrip("/")
    if base.count("/") > 2:
        return base
    return f"{base}/openai/v1" if version in _UNDATED else f"{base}/openai"


def vertex_location(request: CloudRequest) -> str:
    """Raises TransportError."""
    named = _VERTEX_HOST.match(request.model.base_url)
    variables = request.variables
    location = named[1] if named else variables.get("GOOGLE_CLOUD_LOCATION") or variables.get("CLOUD_ML_REGION")
    if not location:
        raise TransportError("Vertex needs a location: set GOOGLE_CLOUD_LOCATION, for example to us-east5 or global")
    return location


def vertex_project(request: CloudRequest, known: str | None) -> str:
    """The variables win over the project that the credentials are of. Raises TransportError."""
    names = ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
    project = next((value for name in names if (value := request.variables.get(name))), known)
    if not project:
        raise TransportError("Vertex needs a project: set GOOGLE_CLOUD_PROJECT")
    return project


def _own_address(request: CloudRequest) -> str | None:
    """None where the base URL leaves the region open (`https://{region}-...`): then the cloud's own is meant."""
    base = request.model.base_url.rstrip("/")
    return None if not base or "{" in base else base


def _signed(path: str, request: CloudRequest, make: Callable[[Any], Any]) -> HttpRequest:
    import httpx2
    import msgspec

    seen: list[httpx2.Request] = []

    def keep(made: httpx2.Request) -> httpx2.Response:
        seen.append(made)
        return httpx2.Response(200, content=b"{}", request=made)

    try:
        with httpx2.Client(transport=httpx2.MockTransport(keep), trust_env=False) as http:
            options = {"headers": {**_HEADERS, **dict(request.headers)}}
            make(http).post(path, cast_to=httpx2.Response, body=msgspec.json.decode(request.body), options=options)
    except Exception as error:  # the SDKs' own; their texts may quote what they were given
        raise TransportError(f"The request to {request.model.api} cannot be made ({type(error).__name__})") from None
    made = seen[-1]
    headers = ((name.lower(), value) for name, value in made.headers.items())
    return HttpRequest(str(made.url), tuple(pair for pair in headers if pair[0] not in _OURS), made.read())
