"""`--rpc-compat pi`: what clients of pi read beyond the contract, and that nobody else is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, error, gate, text


@pytest.fixture
def pi(agent: Callable[..., Agent]) -> Callable[..., Agent]:
    """An agent with the flag."""

    def start(*args: str) -> Agent:
        return agent("--rpc-compat", "pi", *args)

    return start


def dispositions(agent: Agent, *ids: str) -> list[Any]:
    return [agent.responses(id_)[0].get("data") for id_ in ids]


def test_each_accepted_message_tells_whether_it_started_or_was_queued(
    pi: Callable[..., Agent], server: ModelServer
) -> None:
    reply = gate("one", "two")
    server.script(reply, text("a"), text("b"), text("c"))
    agent = pi()
    agent.send("prompt", id="1", message="go")
    reply.reached.wait()
    agent.send("steer", id="2", message="steer")
    agent.send("follow_up", id="3", message="later")
    agent.request("prompt", id="4", message="also", streamingBehavior="followUp")
    reply.open()
    agent.wait({"type": "agent_settled"})
    queued = {"disposition": "queued"}
    assert dispositions(agent, "1", "2", "3", "4") == [{"disposition": "started"}, queued, queued, queued]


def test_a_paused_prompt_is_queued_and_a_refused_one_tells_nothing(
    pi: Callable[..., Agent], server: ModelServer
) -> None:
    reply = gate("one", "two")
    server.script(reply)
    agent = pi()
    agent.request("pause_queued_messages", id="1")
    assert agent.request("prompt", id="2", message="held")["data"] == {"disposition": "queued"}
    assert agent.request("clear_queue", id="3")["data"] == {"steering": ["held"], "followUp": []}
    agent.request("resume_queued_messages", id="4")
    agent.send("prompt", id="5", message="go")
    reply.reached.wait()
    refused = agent.request("prompt", id="6", message="now")
    assert (refused["success"], "data" in refused) == (False, False)
    reply.open()
    agent.wait({"type": "agent_settled"})


def will_retry(agent: Agent) -> list[Any]:
    return [record.get("willRetry", "absent") for record in agent.records if record["type"] == "agent_end"]


def test_agent_end_tells_whether_the_request_is_made_again(pi: Callable[..., Agent], server: ModelServer) -> None:
    server.script(error(529), text("good"), error(529), error(529), error(529))
    agent = pi()
    agent.prompt("again")
    assert will_retry(agent) == [True, False]
    agent.prompt("in vain")
    assert will_retry(agent)[2:] == [True, True, False]


def test_agent_end_of_a_request_that_is_never_made_again_says_so(pi: Callable[..., Agent], server: ModelServer) -> None:
    server.script(error(400, message="bad request"), error(529))
    agent = pi()
    agent.prompt("refused for good")
    agent.request("set_auto_retry", id="off", enabled=False)
    agent.prompt("not retried")
    assert will_retry(agent) == [False, False]


def test_a_fallback_model_counts_as_trying_again(pi: Callable[..., Agent], server: ModelServer, home: Any) -> None:
    home.write_settings({"fallbackModels": ["fa/m2"]})
    server.script(error(401, message="no"), text("from the other"))
    agent = pi()
    agent.prompt("fall back")
    assert will_retry(agent) == [True, False]
    assert [record["to"] for record in agent.records if record["type"] == "model_fallback_start"] == ["fa/m2:off"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--mode", "rpc", "--rpc-compat", "other"], 'Invalid --rpc-compat: "other"; allowed: pi'),
        (["--mode", "json", "--rpc-compat", "pi", "hi"], "--rpc-compat needs --mode rpc"),
    ],
)
def test_the_flag_is_refused_where_it_means_nothing(
    run: Callable[..., tuple[int, str, str]], flags: list[str], says: str
) -> None:
    assert run(*flags) == (1, "", f"atomic: {says}\n")


def test_without_the_flag_neither_is_told(agent: Callable[..., Agent], server: ModelServer) -> None:
    server.script(error(529), text("good"))
    plain = agent()
    plain.send("prompt", id="1", message="go")
    plain.wait({"type": "agent_settled"})
    assert plain.request("steer", id="2", message="later").keys() == {"type", "id", "command", "success"}
    assert dispositions(plain, "1") == [None]
    assert will_retry(plain) == ["absent", "absent"]
