"""The RpcClient that the npm packages of pi ship, in its old and its present form."""

from __future__ import annotations

from typing import Any

import pytest

Facts = dict[str, Any]
OLD, NEW = "@mariozechner/pi-coding-agent@0.73.1", "@earendil-works/pi-coding-agent@1.6.0"


@pytest.fixture(scope="module", params=[OLD, NEW])
def package(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def facts(package: str, stage: Any) -> Facts:
    """The present client reads `data.disposition` of every prompt, so it needs `--rpc-compat pi`."""
    (stage.cwd / "go").unlink(missing_ok=True)
    flags = ["--rpc-compat", "pi"] if package == NEW else []
    given = {"agent": stage.atomic(), "launcher": str(stage.client("launch.mjs")), "args": flags}
    command = [stage.node / "node", stage.client("rpc_client.mjs"), stage.npm_package(package)]
    return dict(stage.facts(command, given))


def test_a_prompt_is_answered(facts: Facts) -> None:
    assert (facts["prompt"], facts["waited"]) in (("hello there", "agent_end"), ("hello there", "agent_settled"))


def test_a_tool_runs(facts: Facts) -> None:
    assert facts["tool"] == {"text": "tool done", "result": "from the tool\n"}


def test_steering_and_follow_up_are_answered_in_their_turn(facts: Facts) -> None:
    assert facts["queue"] == ["steered", "followed"]


def test_abort_keeps_what_came(facts: Facts) -> None:
    assert facts["abort"]["stopReason"] == "aborted"
    assert facts["abort"]["content"][0]["text"] == "half an answer"


def test_a_failed_request_is_tried_again(facts: Facts) -> None:
    assert facts["retry"]["text"] == "recovered"


def test_dispositions_and_will_retry_are_told_to_those_that_asked(package: str, facts: Facts) -> None:
    told = [facts[f"{name}isposition"] for name in ("d", "steerD", "followUpD", "retryD")]
    asked = package == NEW
    assert told == (["started", "queued", "queued", "started"] if asked else [None] * 4)
    assert facts["retry"]["willRetry"] == ([True, False] if asked else [None, None])
    assert ("willRetry" in facts["agentEnd"]) == asked


def test_shell_requests_run_and_are_cancelled(facts: Facts) -> None:
    assert facts["bash"] == {"output": "out\nerr\n", "exitCode": 3, "cancelled": False, "truncated": False}
    assert facts["abortBash"]["cancelled"] is True


def test_sessions_fork_switch_clone_and_begin_anew(facts: Facts) -> None:
    assert facts["fork"] == {"text": "SAY hello there", "cancelled": False}
    assert facts["forkedAway"] is True
    assert facts["switched"] == facts["clone"] == facts["new"] == {"cancelled": False}
    assert facts["cloned"] > 10
    assert facts["empty"] == 0


def test_a_session_is_exported(facts: Facts) -> None:
    assert facts["export"] is True


def test_models_and_levels_are_chosen(facts: Facts) -> None:
    assert {"m", "m2"} <= set(facts["models"])
    assert facts["setModel"] == "m2"
    assert facts["cycleModel"] == "m"
    assert facts["noModel"] == {"refused": "Model not found: fa/nothing"}
    assert facts["setThinking"] is None
    assert set(facts["cycleThinking"]) == {"level"}


def test_the_rest_of_what_the_client_offers_is_answered(package: str, facts: Facts) -> None:
    assert facts["modes"] == facts["retrySwitch"] == [None, None]
    assert facts["compaction"][0] is None
    assert facts["commands"] is True
    assert facts["name"] == "named"
    assert facts["stats"]["userMessages"] == 8
    if package == NEW:
        assert "high" in facts["levels"]
        assert facts["clearQueue"] == {"steering": [], "followUp": []}
        assert facts["entries"] > 10
        assert facts["tree"] == 1


def test_the_client_stops_it_without_having_to_kill(facts: Facts) -> None:
    assert facts["stop"] < 1000
    assert facts["stderr"] == ""
