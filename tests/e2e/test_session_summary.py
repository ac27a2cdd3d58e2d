"""The line about a session, over the wire and in the file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from conformance.driver import Agent
from conformance.model_server import ModelServer, hang, text
from tests.e2e.conftest import Home

Start = Callable[..., Agent]
ON = {"sessionSummary": {"enabled": True}}


def entries(a: Agent) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = a.request("get_entries")["data"]["entries"]
    return found


def written_line(a: Agent) -> dict[str, Any]:
    """The newest entry, once it is the line: no event tells of it."""
    deadline = time.monotonic() + 20
    while (newest := entries(a)[-1])["type"] != "session_summary":
        assert time.monotonic() < deadline
    return newest


def test_by_default_a_turn_is_one_request(agent: Start, server: ModelServer, home: Home) -> None:
    (home.agent_dir / "settings.json").write_text("{}")
    with agent() as a:
        a.prompt("SAY one")
        a.prompt("SAY two")
    assert len(server.requests) == 2


def test_when_it_is_on_each_turn_writes_a_line(agent: Start, server: ModelServer, home: Home) -> None:
    home.write_settings(ON)
    server.script(text("hello"), text("Greeting\nin one word"))
    with agent() as a:
        a.prompt("hi")
        server.wait_for_requests(2)
        assert "[User]: hi" in json.dumps(server.requests[1].body)
        line = written_line(a)
        assert line["summary"] == "Greeting in one word" and line["parentId"] == line["summarizedThroughId"]
        assert [m["role"] for m in a.request("get_messages")["data"]["messages"]] == ["user", "assistant"]


def test_the_end_of_input_does_not_wait_for_it(agent: Start, server: ModelServer, home: Home) -> None:
    home.write_settings(ON)
    server.script(text("hello"), hang())
    with agent() as a:
        a.prompt("hi")
        server.wait_for_requests(2)
        a.close_stdin()
        assert a.wait_exit(deadline=4.0) == 0
    (path,) = home.session_files()
    assert b"session_summary" not in path.read_bytes()


def test_a_prompt_ends_it(agent: Start, server: ModelServer, home: Home) -> None:
    home.write_settings(ON)
    server.script(text("hello"), hang(), text("again"), text("Line"))
    with agent() as a:
        a.prompt("hi")
        server.wait_for_requests(2)
        a.prompt("more")
        server.wait_for_requests(4)
        assert a.request("get_last_assistant_text")["data"]["text"] == "again"


def test_without_a_client_there_is_none(
    run: Callable[..., tuple[int, str, str]], server: ModelServer, home: Home
) -> None:
    home.write_settings(ON)
    code, out, _ = run("-p", "SAY hello")
    assert (code, out) == (0, "hello\n")
    assert len(server.requests) == 1
