"""The settings about requests to providers, against a real server: how often it is asked, how long it is waited for."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from email.utils import formatdate
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, Reply, drop, error, hang, hang_before_head, text
from tests.e2e.conftest import models

Start = Callable[..., Agent]
Record = dict[str, Any]
SOON = {"retry-after-ms": "1"}


def settings(provider: dict[str, Any], retries: int = 0, **more: Any) -> dict[str, Any]:
    return {"retry": {"enabled": retries > 0, "maxRetries": retries, "baseDelayMs": 1, "provider": provider}, **more}


def failure(a: Agent) -> str:
    """What a prompt fails with."""
    return str(last_reply(a.prompt("go"))["errorMessage"])


def last_reply(records: list[Record]) -> Record:
    ends = [record["message"] for record in records if record["type"] == "message_end"]
    return [message for message in ends if message["role"] == "assistant"][-1]


@pytest.mark.parametrize("provider", ["fa", "fo", "fr"])
def test_a_request_that_was_refused_for_now_is_sent_again_without_a_word(
    agent: Start, server: ModelServer, home: Any, provider: str
) -> None:
    home.write_settings(settings({"maxRetries": 2}))
    server.script(error(429, headers=SOON), error(400, headers={**SOON, "x-should-retry": "true"}), text("hello you"))
    with agent(provider=provider) as a:
        told = a.prompt("go")
    assert last_reply(told)["content"][0]["text"] == "hello you"
    deltas = [each["assistantMessageEvent"].get("delta") for each in told if each["type"] == "message_update"]
    assert "".join(filter(None, deltas)) == "hello you"
    assert {"auto_retry_start", "auto_retry_end"} & {record["type"] for record in told} == set()
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("failing", "requests"),
    [
        (error(503, headers=SOON), 6),
        (error(503, headers={**SOON, "x-should-retry": "false"}), 2),
        (error(400), 1),
        (drop(2), 2),
    ],
    ids=["for now", "not again", "for good", "in the middle"],
)
def test_each_try_of_a_run_has_its_own_attempts(
    agent: Start, server: ModelServer, home: Any, failing: Reply, requests: int
) -> None:
    home.write_settings(settings({"maxRetries": 2}, retries=1))
    server.script(*[failing] * 9)
    with agent() as a:
        told = a.prompt("go")
        assert last_reply(told)["stopReason"] == "error"
    tries = 1 if requests == 1 else 2
    assert [record["type"] for record in told].count("auto_retry_start") == tries - 1
    assert len(server.requests) == requests


@pytest.mark.parametrize("asked", [{"retry-after": "7"}, {"retry-after-ms": "6500"}, {"retry-after": "date"}])
def test_a_longer_wait_than_allowed_fails_at_once(
    agent: Start, server: ModelServer, home: Any, asked: dict[str, str]
) -> None:
    home.write_settings(settings({"maxRetries": 2, "maxRetryDelayMs": 5000}))
    in_a_week = formatdate(time.time() + 604_800, usegmt=True)
    headers = {name: in_a_week if told == "date" else told for name, told in asked.items()}
    server.script(error(429, headers=headers, message="slow down"))
    with agent() as a:
        text_ = failure(a)
    asked_s = "604800|604799|604798" if "date" in asked.values() else "7"
    assert re.match(rf"Server requested ({asked_s})s retry delay \(max: 5s\)\. 429 ", text_) and "slow down" in text_
    assert len(server.requests) == 1


def test_an_abort_does_not_wait_for_the_next_attempt(agent: Start, server: ModelServer, home: Any) -> None:
    home.write_settings(settings({"maxRetries": 1, "maxRetryDelayMs": 0}))
    server.script(error(429, headers={"retry-after": "3600"}), text("too late"))
    with agent() as a:
        a.request("prompt", message="go")
        assert server.wait_for_requests(1)[0].ended.wait()
        assert a.request("abort")["success"]
        a.wait({"type": "agent_settled"})
        assert last_reply(a.records)["stopReason"] == "aborted"
    assert len(server.requests) == 1


def test_a_server_that_hangs_up_without_an_answer_is_asked_again(agent: Start, home: Any) -> None:
    home.write_settings(settings({"maxRetries": 1}))
    asked: list[bytes] = []

    def hang_up(listener: socket.socket) -> None:
        while True:
            with suppress(OSError), listener.accept()[0] as client:
                asked.append(client.recv(4))
                continue
            return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=hang_up, args=(listener,))
        thread.start()
        home.write_models(models(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        with agent() as a:
            assert failure(a).startswith("Connection lost: ")
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    assert asked == [b"POST", b"POST"]


NO_EVENT = "without a new event (stream deadline exceeded)"


@pytest.mark.parametrize(
    ("content", "reply", "expected"),
    [
        ({"httpIdleTimeoutMs": 200}, hang_before_head(), "Request timed out after 200ms without an answer"),
        ({"httpIdleTimeoutMs": "200ms"}, hang("so"), f"timed out after 200ms {NO_EVENT}"),
        ({"httpTotalTimeoutMs": "200"}, hang("so"), "Request timed out after 200ms (127.0.0.1:"),
        ({"streamDeadlineMs": "0.2s"}, hang("so"), f"timed out after 200ms {NO_EVENT}"),
        ({"streamDeadlineMs": 200, "httpIdleTimeoutMs": "disabled"}, hang_before_head(), f"after 200ms {NO_EVENT}"),
        (settings({"timeoutMs": 200}), hang_before_head(), "Request timed out after 200ms without an answer"),
        (
            settings({"timeoutMs": "200ms"}, httpIdleTimeoutMs=100, streamDeadlineMs="disabled"),
            hang("so"),
            f"after 100ms {NO_EVENT}",
        ),
    ],
    ids=["idle head", "idle body", "total", "event body", "event head", "answer", "answer is over"],
)
def test_each_limit_of_time_ends_a_request_that_goes_silent(
    agent: Start, server: ModelServer, home: Any, content: dict[str, Any], reply: Reply, expected: str
) -> None:
    home.write_settings({**settings({}), **content})
    server.script(reply)
    with agent() as a:
        records = a.prompt("go")
    assert expected in last_reply(records)["errorMessage"]
    assert last_reply(records)["stopReason"] == "error"
    assert "auto_retry_start" not in {record["type"] for record in records}, "retry.enabled is false"


@pytest.mark.skipif(sys.platform != "linux", reason="a full accept queue answers differently elsewhere")
def test_certificates_and_the_time_for_a_connection_are_the_settings(agent: Start, home: Any) -> None:
    home.write_settings({**settings({}), "httpConnectTimeoutMs": "100ms", "caFile": "/no/such.pem"})
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        for _ in range(4):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        home.write_models(models(f"http://127.0.0.1:{full.getsockname()[1]}"))
        with agent() as a:
            assert failure(a).startswith("Connection timed out after 100ms (")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        home.write_models(models(f"https://127.0.0.1:{listener.getsockname()[1]}"))
        with agent() as a:
            assert failure(a) == "The CA file '/no/such.pem' cannot be used: No such file or directory"
