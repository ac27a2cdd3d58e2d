"""The two Python clients of pi's RPC mode on PyPI."""

from __future__ import annotations

from typing import Any

import pytest

Facts = dict[str, Any]
PI_PY_SDK, PI_AGENT = "pi-py-sdk==0.2.1", "pi-agent-python-sdk==0.2.6"
SCRIPTS = {PI_PY_SDK: "pi_py_sdk_client.py", PI_AGENT: "pi_agent_client.py"}


@pytest.fixture(scope="module", params=[PI_PY_SDK, PI_AGENT])
def package(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def facts(package: str, stage: Any) -> Facts:
    """Both take our command in place of `pi` and pass `--rpc-compat pi` on."""
    (stage.cwd / "go").unlink(missing_ok=True)
    command = [stage.python_with(package), stage.client(SCRIPTS[package])]
    return dict(stage.facts(command, {"pi": str(stage.pi), "args": ["--rpc-compat", "pi"]}))


def test_a_prompt_is_answered(package: str, facts: Facts) -> None:
    whole = {"text": "hello there", "stop": "stop", "file": True}
    assert facts["prompt"] == (whole if package == PI_AGENT else "hello there")
    assert facts["deltas"] == ("tool done" if package == PI_AGENT else "hello there")


def test_a_tool_runs(facts: Facts) -> None:
    assert facts["tool"] == {"text": "tool done", "result": "from the tool\n"}


def test_steering_and_follow_up_are_answered_in_their_turn(facts: Facts) -> None:
    assert facts["queue"] == ["steered", "followed"]


def test_abort_keeps_what_came(facts: Facts) -> None:
    assert facts["abort"]["stopReason"] == "aborted"
    assert "half an answer".startswith(facts["abort"]["text"])


def test_a_failed_request_is_tried_again_and_waited_for(package: str, facts: Facts) -> None:
    whole = {"text": "recovered", "willRetry": [True, False]}
    assert facts["retry"] == (whole if package == PI_PY_SDK else "recovered")


def test_a_stream_that_is_left_is_aborted(package: str, facts: Facts) -> None:
    assert facts.get("left") is (False if package == PI_AGENT else None)


def test_shell_requests_run_and_are_cancelled(facts: Facts) -> None:
    assert facts["bash"] == {"output": "out\nerr\n", "exitCode": 3, "cancelled": False, "truncated": False}
    assert facts["abortBash"]["cancelled"] is True


def test_sessions_fork_switch_clone_and_begin_anew(facts: Facts) -> None:
    assert facts["fork"] == {"text": "SAY hello there", "cancelled": False}
    assert facts["forkedAway"] is True
    assert facts["switched"] == facts["clone"] == facts["new"] == {"cancelled": False}
    assert facts["empty"] == 0


def test_a_session_is_exported(facts: Facts) -> None:
    assert facts["export"] is True


def test_models_and_levels_are_chosen(facts: Facts) -> None:
    assert {"m", "m2"} <= set(facts["models"])
    assert (facts["setModel"], facts["cycleModel"]) == ("m2", "m")
    assert "Model not found: fa/nothing" in facts["noModel"]
    assert set(facts["cycleThinking"]) == {"level"}
    assert facts["name"] == "named"


def test_the_blocking_form_works_too(package: str, facts: Facts) -> None:
    assert (facts["sync"], facts.get("syncText")) == (
        ("agent_end", "in step") if package == PI_PY_SDK else ("in step", None)
    )


def test_a_client_that_asks_for_the_version_of_pi_has_to_be_told_not_to(package: str, facts: Facts) -> None:
    if package == PI_AGENT:
        assert "allow_unknown_version=True" in facts["version"]


def test_the_client_stops_it_without_having_to_kill(facts: Facts) -> None:
    assert facts["stop"] < 1
