"""Bedrock, Vertex and Azure over real sockets: what a server must find in the request, and what comes of its answer."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from binascii import crc32
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from actors.model.cloud_ambient import ambient_source, cloud_variables
from actors.model.cloud_request import CloudCredential
from actors.model.cloud_signing import azure_address
from actors.model.dialects import build_request, http_error_text, reader_for
from actors.model.prompt import ModelPrompt, RequestOptions, ToolSpec
from actors.model.transport import Abort, Aborted, Transport, TransportError, TransportSettings
from protocol.messages import AssistantMessage, TextContent, UserMessage
from protocol.model import Model

pytest.importorskip("boto3", reason="needs the extra bedrock")
pytest.importorskip("google.auth", reason="needs the extra vertex")
# google-auth warns of what it is lent a file for: one that the user's own variable names.
pytestmark = pytest.mark.filterwarnings("ignore:The load_credentials_from_file method:DeprecationWarning")

OK = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s"
FRAMES = b"application/vnd.amazon.eventstream"
EVENTS = b"text/event-stream"
SECRET = "s3cr3t/access+key"
SIGNING = {"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-west-1"}
TOOL = ToolSpec("bash", "Runs a command", {"type": "object", "properties": {}})
PROMPT = ModelPrompt("be brief", (UserMessage("häß \ud800", 1),), (TOOL,))
Serving = Callable[[Callable[[Any], None]], Any]

ANSWER = [
    {"type": "message_start", "message": {"id": "msg_1", "model": "claude", "usage": {"input_tokens": 7}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hällo"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]
RESPONSE = [
    {"type": "response.created", "response": {"id": "r1", "model": "gpt"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m1"}},
    {"type": "response.output_text.delta", "output_index": 0, "delta": "hällo"},
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "hällo"}]},
    },
    {"type": "response.completed", "response": {"id": "r1", "status": "completed", "output": []}},
]


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def frame(payload: bytes, **headers: str) -> bytes:
    """One frame of AWS's event stream encoding: prelude, its sum, headers, payload, the sum of all."""
    told = b"".join(
        bytes([len(name)]) + name + b"\x07" + len(value).to_bytes(2, "big") + value
        for name, value in ((f":{key.replace('_', '-')}".encode(), text.encode()) for key, text in headers.items())
    )
    prelude = (16 + len(told) + len(payload)).to_bytes(4, "big") + len(told).to_bytes(4, "big")
    whole = prelude + crc32(prelude).to_bytes(4, "big") + told + payload
    return whole + crc32(whole).to_bytes(4, "big")


def event_frame(event: dict[str, Any]) -> bytes:
    from base64 import b64encode

    payload = json.dumps({"bytes": b64encode(json.dumps(event).encode()).decode()}).encode()
    return frame(payload, event_type="chunk", content_type="application/json", message_type="event")


class Asked:
    """What a server has read, and what it answers: (head fields, body) by request."""

    def __init__(self) -> None:
        self.requests: SimpleQueue[tuple[str, str, dict[str, str], bytes]] = SimpleQueue()

    def read(self, connection: Any) -> bool:
        found = connection.request()
        if found is None:
            return False
        first, *lines = found[0].decode().split("\r\n")
        method, target, _ = first.split(" ")
        pairs = (line.partition(": ") for line in lines)
        self.requests.put((method, target, {name.lower(): value for name, _, value in pairs}, found[1]))
        return True

    def answering(self, kind: bytes, body: bytes) -> Callable[[Any], None]:
        def serve(connection: Any) -> None:
            while self.read(connection):
                connection.send(OK % (kind, len(body), body))

        return serve


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine: what its owner has for real clouds must not be found, nor its metadata server asked."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-aws"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-aws-config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


@pytest.fixture
def transport() -> Iterator[Transport]:
    made = Transport(TransportSettings(connect_timeout_s=5))
    yield made
    made.close()


def ask(transport: Transport, model: Model, credential: CloudCredential, abort: Abort | None = None) -> Any:
    """The final message, as a ModelCall would make it."""
    reader, status, raw = reader_for(model, 5), [200], bytearray()

    def on_bytes(data: bytes) -> None:
        raw.extend(data)
        if status[-1] < 400:
            reader.feed(data)

    transport.stream(
        lambda: build_request(model, PROMPT, RequestOptions(), credential),
        abort or Abort(),
        lambda code, _: status.append(code),
        on_bytes,
    )
    return reader.fail(http_error_text(model.api, status[-1], bytes(raw))) if status[-1] >= 400 else reader.end()


def refusal(transport: Transport, model: Model, credential: CloudCredential) -> str:
    with pytest.raises(TransportError) as caught:
        ask(transport, model, credential)
    return str(caught.value)


def text(message: AssistantMessage) -> str:
    return "".join(block.text for block in message.content if isinstance(block, TextContent))


# ---- Bedrock


@pytest.fixture
def bedrock(model_of: Callable[..., Model]) -> Callable[..., Model]:
    def make(url: str, **changes: Any) -> Model:
        fields = {"id": "eu.anthropic.claude-x-v1:0", "provider": "amazon-bedrock", "base_url": url, **changes}
        return model_of("bedrock-converse-stream", **fields)

    return make


def signature_of(url: str, target: str, headers: dict[str, str], body: bytes, key: str, token: str | None) -> str:
    """The Authorization header that botocore makes for this request, from the headers that it says are signed."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    names = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    region = headers["authorization"].split("/")[2]
    signed = {name: headers[name] for name in names if name not in ("host", "x-amz-date", "x-amz-security-token")}
    request = AWSRequest("POST", url + target, headers=signed, data=body)
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials("AKIDTEST", key, token), "bedrock", region)
    request.headers["X-Amz-Date"] = headers["x-amz-date"]
    if token:
        request.headers["X-Amz-Security-Token"] = token
    canonical = signer.canonical_request(request)
    return str(signer.signature(signer.string_to_sign(request, canonical), request))


@pytest.mark.parametrize("token", [None, "session-token"])
def test_bedrock_gets_a_request_whose_signature_is_right_for_every_header_and_byte(
    transport: Transport, serving: Serving, asked: Asked, bedrock: Any, token: str | None
) -> None:
    server = serving(asked.answering(FRAMES, b"".join(map(event_frame, ANSWER))))
    variables = {**SIGNING, **({"AWS_SESSION_TOKEN": token} if token else {})}
    message = ask(transport, bedrock(server.url), CloudCredential(variables=variables))
    assert (text(message), message.stop_reason, message.usage.output) == ("hällo", "stop", 3)
    method, target, headers, body = asked.requests.get(timeout=10)
    assert (method, target) == ("POST", "/model/eu.anthropic.claude-x-v1:0/invoke-with-response-stream")
    authorization = headers["authorization"]
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=AKIDTEST/")
    assert authorization.split(",")[0].endswith("/eu-west-1/bedrock/aws4_request")
    assert headers.get("x-amz-security-token") == token
    signed = authorization.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "x-amz-date", "content-type"} <= set(signed) <= set(headers)
    expected = signature_of(server.url, target, headers, body, SECRET, token)
    assert authorization.rpartition("Signature=")[2] == expected
    assert expected != signature_of(server.url, target, headers, body + b" ", SECRET, token)


def test_bedrock_is_asked_what_anthropic_is_asked_less_what_it_refuses(
    transport: Transport, serving: Serving, asked: Asked, bedrock: Any
) -> None:
    server = serving(asked.answering(FRAMES, b"".join(map(event_frame, ANSWER))))
    ask(transport, bedrock(server.url), CloudCredential(variables=SIGNING))
    body = json.loads(asked.requests.get(timeout=10)[3])
    assert body["messages"][0]["content"][0]["text"] == "häß \ufffd"
    assert "anthropic_version" in body and "model" not in body and "stream" not in body
    assert "eager_input_streaming" not in body["tools"][0]
    assert "fine-grained-tool-streaming-2025-05-14" in body["anthropic_beta"]


def test_a_bedrock_api_key_travels_as_bearer_and_nothing_is_signed(
    transport: Transport, serving: Serving, asked: Asked, bedrock: Any
) -> None:
    server = serving(asked.answering(FRAMES, b"".join(map(event_frame, ANSWER))))
    assert text(ask(transport, bedrock(server.url), CloudCredential("bedrock-key", variables=SIGNING))) == "hällo"
    headers = asked.requests.get(timeout=10)[2]
    assert headers["authorization"] == "Bearer bedrock-key"
    assert "x-amz-date" not in headers


def test_a_profile_of_the_aws_files_signs_and_tells_its_region(
    transport: Transport, serving: Serving, asked: Asked, bedrock: Any, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text(f"[work]\naws_access_key_id = AKIDTEST\naws_secret_access_key = {SECRET}\n")
    (tmp_path / "config").write_text("[profile work]\nregion = ap-south-1\n")
    server = serving(asked.answering(FRAMES, b"".join(map(event_frame, ANSWER))))
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "keys"), "AWS_CONFIG_FILE": str(tmp_path / "config")}
    ask(transport, bedrock(server.url), CloudCredential(variables={"AWS_PROFILE": "work", **files}))
    _, target, headers, body = asked.requests.get(timeout=10)
    assert "/ap-south-1/bedrock/" in headers["authorization"]
    expected = signature_of(server.url, target, headers, body, SECRET, None)
    assert headers["authorization"].rpartition("Signature=")[2] == expected


def test_a_refused_profile_is_read_again(
    transport: Transport, serving: Serving, asked: Asked, bedrock: Any, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"[default]\naws_access_key_id = OLD\naws_secret_access_key = {SECRET}\n")
    variables = {"AWS_SHARED_CREDENTIALS_FILE": str(keys), "AWS_REGION": "eu-west-1"}

    def serve(connection: Any) -> None:
        while asked.read(connection):
            body = b'{"message":"The security token included in the request is expired"}'
            connection.send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

    model = bedrock(serving(serve).url)
    refused = ask(transport, model, CloudCredential(variables=variables))
    assert refused.error_message.startswith('403 {"message":"The security token')
    keys.write_text(f"[default]\naws_access_key_id = NEW\naws_secret_access_key = {SECRET}\n")
    ask(transport, model, CloudCredential(variables=variables))
    used = [asked.requests.get(timeout=10)[2]["authorization"].partition("Credential=")[2][:3] for _ in range(2)]
    assert used == ["OLD", "NEW"]


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_frames_are_read_in_any_chunking(size: int) -> None:
    from actors.model.cloud_frames import FrameDecoder

    decoder, raw = FrameDecoder(), b"".join(map(event_frame, ANSWER))
    read = b"".join(decoder.feed(raw[at : at + size]) for at in range(0, len(raw), size))
    assert [json.loads(part.partition(b"data: ")[2]) for part in read.split(b"\n\n")[:-1]] == ANSWER


def test_an_exception_frame_is_the_error_of_the_reply(
    transport: Transport, serving: Serving, asked: Asked, bedrock: Any
) -> None:
    said = frame(b'{"message":"Too many tokens"}', exception_type="throttlingException", message_type="exception")
    server = serving(asked.answering(FRAMES, event_frame(ANSWER[0]) + said))
    message = ask(transport, bedrock(server.url), CloudCredential(variables=SIGNING))
    assert message.stop_reason == "error"
    assert "throttlingException" in message.error_message and "Too many tokens" in message.error_message


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_frame_that_repeats_a_secret_of_the_request_is_told_without_it(
    transport: Transport, serving: Serving, asked: Asked, bedrock: Any, size: int
) -> None:
    token = "session/token+0123"
    said = event_frame({"type": "error", "error": {"message": f"expired: {token}"}})
    written = [{**ANSWER[2], "delta": {"type": "text_delta", "text": token}}]
    raw = b"".join(map(event_frame, [*ANSWER[:2], *written])) + said

    def serve(connection: Any) -> None:
        asked.read(connection)
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (FRAMES, len(raw)))
        for at in range(0, len(raw), size):
            connection.send(raw[at : at + size])

    model = bedrock(serving(serve).url)
    message = ask(transport, model, CloudCredential(variables={**SIGNING, "AWS_SESSION_TOKEN": token}))
    assert "expired: ***" in message.error_message and token not in message.error_message
    assert text(message) == token


@pytest.mark.parametrize("damage", ["sum", "length"])
def test_a_damaged_frame_is_an_error_and_not_a_gap(
    transport: Transport, serving: Serving, asked: Asked, bedrock: Any, damage: str
) -> None:
    raw = bytearray(b"".join(map(event_frame, ANSWER)))
    raw[-1 if damage == "sum" else 0] ^= 0xFF
    server = serving(asked.answering(FRAMES, bytes(raw)))
    assert "a frame that cannot be read" in refusal(transport, bedrock(server.url), CloudCredential(variables=SIGNING))


def test_a_cut_frame_stream_is_an_early_end(transport: Transport, serving: Serving, asked: Asked, bedrock: Any) -> None:
    raw = b"".join(map(event_frame, ANSWER))
    server = serving(asked.answering(FRAMES, raw[:-40]))
    message = ask(transport, bedrock(server.url), CloudCredential(variables=SIGNING))
    assert message.error_message == "Anthropic stream ended before message_stop"


def test_what_bedrock_lacks_is_said_without_a_secret(transport: Transport, bedrock: Any, tmp_path: Path) -> None:
    model = bedrock("http://127.0.0.1:9")
    pair = {name: value for name, value in SIGNING.items() if name != "AWS_REGION"}
    assert refusal(transport, model, CloudCredential(variables=pair)).startswith("Bedrock needs a region: set AWS_REG")
    region = {"AWS_REGION": "eu-west-1"}
    assert "No AWS credentials found" in refusal(transport, model, CloudCredential(variables=region))
    profile = CloudCredential(variables={**region, "AWS_PROFILE": "gone"})
    assert "profile 'gone' cannot be used (ProfileNotFound)" in refusal(transport, model, profile)
    (tmp_path / "no-aws").write_text(f"[default\n{SECRET}")
    broken = refusal(transport, model, CloudCredential(variables=region))
    assert "cannot be used (ConfigParseError)" in broken and SECRET not in broken


def test_the_region_of_the_address_wins() -> None:
    from actors.model.cloud_aws import region_of

    assert region_of("https://bedrock-runtime.us-gov-west-1.amazonaws.com", SIGNING) == "us-gov-west-1"
    assert region_of("https://vpce-1.bedrock-runtime.eu-central-1.vpce.amazonaws.com", SIGNING) == "eu-central-1"
    assert region_of("https://bedrock-runtime.{region}.amazonaws.com", SIGNING) == "eu-west-1"


# ---- Vertex


@pytest.fixture
def vertex(model_of: Callable[..., Model]) -> Callable[..., Model]:
    def make(url: str, **changes: Any) -> Model:
        return model_of("google-vertex", id="claude-x@20260101", provider="google-vertex", base_url=url, **changes)

    return make


LOCATED = {"GOOGLE_CLOUD_LOCATION": "us-east5"}


@pytest.fixture(scope="module")
def private_key() -> tuple[str, str]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def account(tmp_path: Path, token_uri: str, private: str) -> dict[str, str]:
    """A service account's file, and the variable that names it."""
    told = {
        "type": "service_account",
        "project_id": "proj-1",
        "private_key_id": "k1",
        "private_key": private,
        "client_email": "bot@proj-1.iam.gserviceaccount.com",
        "token_uri": token_uri,
    }
    (tmp_path / "sa.json").write_text(json.dumps(told))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "sa.json"), **LOCATED}


def test_vertex_gets_a_token_of_the_service_account_at_the_place_of_its_project(
    transport: Transport, serving: Serving, vertex: Any, tmp_path: Path, private_key: tuple[str, str]
) -> None:
    from urllib.parse import parse_qs

    from google.auth import jwt

    issuer, provider = Asked(), Asked()
    grant = b'{"access_token":"ya29.token","expires_in":3600,"token_type":"Bearer"}'
    tokens = serving(issuer.answering(b"application/json", grant))
    server = serving(provider.answering(EVENTS, sse(*ANSWER)))
    credential = CloudCredential(variables=account(tmp_path, tokens.url + "/token", private_key[0]))
    for _ in range(2):
        assert text(ask(transport, vertex(server.url), credential)) == "hällo"
    method, target, _, form = issuer.requests.get(timeout=10)
    assertion = parse_qs(form.decode())["assertion"][0]
    claims = jwt.decode(assertion, certs=private_key[1], audience="https://oauth2.googleapis.com/token")
    assert (method, target, claims["iss"]) == ("POST", "/token", "bot@proj-1.iam.gserviceaccount.com")
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert issuer.requests.empty()  # the second request used the first one's token
    _, target, headers, body = provider.requests.get(timeout=10)
    where = "/v1/projects/proj-1/locations/us-east5/publishers/anthropic/models/claude-x@20260101:streamRawPredict"
    assert (target, headers["authorization"]) == (where, "Bearer ya29.token")
    asked_for = json.loads(body)
    assert asked_for["stream"] is True and "anthropic_version" in asked_for and "model" not in asked_for


def test_a_token_that_vertex_refuses_is_not_used_again(
    transport: Transport, serving: Serving, vertex: Any, tmp_path: Path, private_key: tuple[str, str]
) -> None:
    issuer = Asked()
    grant = b'{"access_token":"ya29.token","expires_in":3600}'
    tokens = serving(issuer.answering(b"application/json", grant))

    def refuse(connection: Any) -> None:
        while connection.request():
            connection.send(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno")

    model = vertex(serving(refuse).url)
    credential = CloudCredential(variables=account(tmp_path, tokens.url, private_key[0]))
    assert [ask(transport, model, credential).error_message for _ in range(2)] == ["401 no", "401 no"]
    assert issuer.requests.qsize() == 2


def test_the_users_own_login_is_renewed_by_way_of_the_proxy_of_the_settings(
    serving: Serving, asked: Asked, vertex: Any, tmp_path: Path
) -> None:
    def refuse(connection: Any) -> None:
        asked.read(connection)
        connection.send(b"HTTP/1.1 403 Not here\r\ncontent-length: 0\r\n\r\n")

    told = {"type": "authorized_user", "client_id": "c", "client_secret": "s3cr3t", "refresh_token": "rt"}
    (tmp_path / "application_default_credentials.json").write_text(json.dumps(told))
    transport = Transport(TransportSettings(proxy=serving(refuse).url))
    error = refusal(transport, vertex("http://127.0.0.1:9"), CloudCredential(variables=LOCATED))
    assert asked.requests.get(timeout=10)[:2] == ("CONNECT", "oauth2.googleapis.com:443")
    assert error.endswith("the proxy refused to connect to oauth2.googleapis.com:443 (403 Not here)")
    transport.close()


def test_a_given_token_is_used_as_it_is(transport: Transport, serving: Serving, asked: Asked, vertex: Any) -> None:
    server = serving(asked.answering(EVENTS, sse(*ANSWER)))
    credential = CloudCredential("given", variables={**LOCATED, "GCLOUD_PROJECT": "p3"})
    assert text(ask(transport, vertex(server.url + "/v1"), credential)) == "hällo"
    _, target, headers, _ = asked.requests.get(timeout=10)
    assert headers["authorization"] == "Bearer given" and target.startswith("/v1/projects/p3/")


def test_what_google_refuses_is_said_by_its_code_alone(
    transport: Transport, serving: Serving, vertex: Any, tmp_path: Path, private_key: tuple[str, str]
) -> None:
    def refuse(connection: Any) -> None:
        while connection.request():
            body = b'{"error":"invalid_grant","error_description":"leaked s3cr3t"}'
            connection.send(b"HTTP/1.1 400 Bad Request\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

    variables = account(tmp_path, serving(refuse).url, private_key[0])
    error = refusal(transport, vertex("http://127.0.0.1:9"), CloudCredential(variables=variables))
    assert error == "The Google credentials cannot be used (RefreshError: invalid_grant)"
    (tmp_path / "sa.json").write_text('{"type":"service_account","private_key":"s3cr3t"}')
    error = refusal(transport, vertex("http://127.0.0.1:9"), CloudCredential(variables=variables))
    assert error.startswith("The Google credentials cannot be used (") and "s3cr3t" not in error


def test_without_google_credentials_the_way_to_them_is_said(transport: Transport, vertex: Any) -> None:
    error = refusal(transport, vertex("http://127.0.0.1:9"), CloudCredential(variables=LOCATED))
    assert error.startswith("No Google credentials found for Vertex: set GOOGLE_APPLICATION_CREDENTIALS")
    error = refusal(transport, vertex("http://127.0.0.1:9"), CloudCredential("given"))
    assert error.startswith("Vertex needs a location: set GOOGLE_CLOUD_LOCATION")
    error = refusal(transport, vertex("http://127.0.0.1:9"), CloudCredential("given", variables=LOCATED))
    assert error == "Vertex needs a project: set GOOGLE_CLOUD_PROJECT"


# ---- Azure


@pytest.fixture
def azure(model_of: Callable[..., Model]) -> Callable[..., Model]:
    def make(url: str, **changes: Any) -> Model:
        return model_of("azure-openai-responses", id="gpt", provider="azure-openai-responses", base_url=url, **changes)

    return make


def test_azure_gets_its_key_header_and_version_and_the_name_of_the_deployment(
    transport: Transport, serving: Serving, asked: Asked, azure: Any
) -> None:
    server = serving(asked.answering(EVENTS, sse(*RESPONSE)))
    variables = {"OPENAI_API_VERSION": "2025-04-01-preview", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "x=y, gpt=our-gpt"}
    message = ask(transport, azure(server.url), CloudCredential("azure-key", variables=variables))
    assert (text(message), message.stop_reason, message.api) == ("hällo", "stop", "azure-openai-responses")
    method, target, headers, body = asked.requests.get(timeout=10)
    assert (method, target) == ("POST", "/openai/responses?api-version=2025-04-01-preview")
    assert headers["api-key"] == "azure-key" and "authorization" not in headers
    assert (json.loads(body)["model"], json.loads(body)["stream"]) == ("our-gpt", True)


@pytest.mark.parametrize(
    "credential",
    [CloudCredential(bearer="entra"), CloudCredential("entra", headers=(("Authorization", "Bearer entra"),))],
)
def test_an_entra_token_travels_as_bearer_and_no_key_beside_it(
    transport: Transport, serving: Serving, asked: Asked, azure: Any, credential: CloudCredential
) -> None:
    server = serving(asked.answering(EVENTS, sse(*RESPONSE)))
    ask(transport, azure(server.url), credential)
    _, target, headers, _ = asked.requests.get(timeout=10)
    assert target == "/openai/v1/responses?api-version=v1"
    assert headers["authorization"] == "Bearer entra" and "api-key" not in headers


def test_an_error_of_azure_reads_like_one_of_openai(transport: Transport, serving: Serving, azure: Any) -> None:
    def refuse(connection: Any) -> None:
        connection.request()
        body = b'{"error":{"code":"DeploymentNotFound","message":"no such deployment"}}'
        connection.send(b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

    message = ask(transport, azure(serving(refuse).url), CloudCredential("k"))
    assert message.error_message == "OpenAI API error (404): no such deployment (DeploymentNotFound)"


def test_a_path_that_the_user_gave_stays() -> None:
    assert azure_address("https://r.openai.azure.com/", "v1") == "https://r.openai.azure.com/openai/v1"
    assert azure_address("https://r.openai.azure.com", "2025-04-01-preview") == "https://r.openai.azure.com/openai"
    assert azure_address("https://gw.example/team/openai/", "v1") == "https://gw.example/team/openai"


# ---- all of them


APIS = ("bedrock-converse-stream", "google-vertex", "azure-openai-responses")


def credential_for(api: str) -> CloudCredential:
    if api == APIS[0]:
        return CloudCredential(variables=SIGNING)
    return CloudCredential("key-s3cr3t", variables={**LOCATED, "GOOGLE_CLOUD_PROJECT": "p"})


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("phase", ["head", "body"])
def test_an_abort_ends_a_request_at_once(
    transport: Transport, serving: Serving, model_of: Callable[..., Model], asked: Asked, api: str, phase: str
) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        if phase == "body":
            connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        asked.requests.put(("", "", {}, b""))
        connection.wait_for_client_to_leave()

    abort, ended = Abort(), SimpleQueue[Any]()
    model = model_of(api, base_url=serving(serve).url)

    def run() -> None:
        try:
            ended.put(ask(transport, model, credential_for(api), abort))
        except TransportError as error:
            ended.put((error, time.monotonic()))

    threading.Thread(target=run, daemon=True).start()
    asked.requests.get(timeout=20)
    fired = time.monotonic()
    abort.fire()
    error, at = ended.get(timeout=10)
    assert isinstance(error, Aborted) and at - fired < 1


def test_an_abort_ends_the_wait_for_a_token(
    transport: Transport, serving: Serving, vertex: Any, tmp_path: Path, private_key: tuple[str, str]
) -> None:
    abort = Abort()

    def serve(connection: Any) -> None:
        connection.request()
        abort.fire()
        connection.wait_for_client_to_leave()

    variables = account(tmp_path, serving(serve).url, private_key[0])
    with pytest.raises(Aborted):
        ask(transport, vertex("http://127.0.0.1:9"), CloudCredential(variables=variables), abort)


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_is_not_there_is_named_and_no_secret_is(
    transport: Transport, model_of: Callable[..., Model], api: str
) -> None:
    credential = credential_for(api)
    model = model_of(api, base_url="http://127.0.0.1:9")
    assert refusal(transport, model, credential) == "Connection refused by 127.0.0.1:9"
    shown = repr(credential) + repr(build_request(model, PROMPT, RequestOptions(), credential))
    assert "AKIDTEST" not in shown and SECRET not in shown and "key-s3cr3t" not in shown


@pytest.mark.parametrize("api", APIS)
def test_a_proxy_of_the_settings_is_asked(
    serving: Serving, model_of: Callable[..., Model], asked: Asked, api: str
) -> None:
    kind, body = (FRAMES, b"".join(map(event_frame, ANSWER))) if api == APIS[0] else (EVENTS, sse(*ANSWER))
    if api == APIS[2]:
        body = sse(*RESPONSE)
    proxy = serving(asked.answering(kind, body))
    transport = Transport(TransportSettings(proxy=proxy.url))
    try:
        message = ask(transport, model_of(api, base_url="http://cloud.example"), credential_for(api))
    finally:
        transport.close()
    assert text(message) == "hällo"
    assert asked.requests.get(timeout=10)[1].startswith("http://cloud.example/")


def test_loading_the_dialects_loads_no_sdk() -> None:
    code = (
        "import sys, actors.model.dialects, actors.model.cloud_anthropic, actors.model.cloud_azure,"
        "actors.model.cloud_source, actors.model.transport;"
        "print(sorted({'anthropic', 'openai', 'botocore', 'boto3', 'google', 'httpx2'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_missing_extra_is_one_line_that_names_it() -> None:
    """In a process that finds neither boto3 nor google-auth, as after a plain install."""
    code = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('boto3', 'botocore') or name == 'google.auth':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "from actors.model.cloud_packages import imported\n"
        "for told in (('botocore.session', 'bedrock', 'Bedrock'), ('google.auth', 'vertex', 'Vertex')):\n"
        "    try:\n"
        "        imported(*told)\n"
        "    except Exception as error:\n"
        "        print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "Bedrock needs the package boto3, which is not installed; run: pip install 'atomic-runtime[bedrock]'",
        "Vertex needs the package google-auth, which is not installed; run: pip install 'atomic-runtime[vertex]'",
    ]


# ---- what the surroundings hold


def test_credentials_in_sight_are_told_by_variable_or_file() -> None:
    def nothing(path: str) -> bool:
        return False

    assert ambient_source("amazon-bedrock", SIGNING, nothing) == "AWS_ACCESS_KEY_ID"
    assert ambient_source("amazon-bedrock", {"AWS_ACCESS_KEY_ID": "half"}, nothing) is None
    assert ambient_source("amazon-bedrock", {"AWS_PROFILE": "p"}, nothing) == "AWS_PROFILE"
    home = {"HOME": "/home/me"}
    here = {"/home/me/.aws/credentials", "/home/me/.config/gcloud/application_default_credentials.json"}
    assert ambient_source("amazon-bedrock", home, here.__contains__) == "AWS credentials file"
    assert ambient_source("google-vertex", home, here.__contains__) == "application default credentials"
    assert ambient_source("google-vertex", home, nothing) is None
    assert ambient_source("openai", SIGNING, here.__contains__) is None


def test_a_later_layer_of_variables_wins_and_strangers_stay_out() -> None:
    env = {"AWS_REGION": "a", "AWS_PROFILE": " ", "OPENAI_API_KEY": "k"}
    assert cloud_variables("bedrock-converse-stream", env, {"AWS_REGION": "b"}) == {"AWS_REGION": "b"}
