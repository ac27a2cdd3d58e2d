"""Every key of settings.json does something: two runs of the program, one without settings and one with all of them.

The table says where a key is seen and what is seen there. What cannot be shown beside the others has a test of its own,
which the second table names.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, error, text, tool, tools
from runtime.setting_keys import KEYS, PATH_LISTS, UNUSED
from tests.e2e.conftest import ROOT, Home, program

SETTINGS: dict[str, Any] = {
    "steeringMode": "all",
    "followUpMode": "all",
    "defaultProvider": "fa",
    "defaultModel": "second",
    "defaultThinkingLevel": "high",
    "modelThinkingLevels": {"fa/third": "low"},
    "thinkingBudgets": {"high": 3000},
    "defaultTools": ["read", "bash", "search", "no such tool", 7],
    "cacheRetention": "none",
    "sessionDir": "~/kept",
    "shellPath": "/bin/sh",
    "shellCommandPrefix": "BEFORE=prefix",
    "retry": {"maxRetries": 7, "baseDelayMs": 60_000},
    "search": {"contextBefore": 0, "contextAfter": 1},
    "httpProxy": "http://127.0.0.1:9",
    "defaultProjectTrust": "always",
    "skills": ["../more-skills"],
    "prompts": ["../more-prompts"],
}


class Effect(NamedTuple):
    """What is seen without the key, and with it."""

    without: Any
    with_it: Any


EFFECTS = {
    "steeringMode": Effect("one-at-a-time", "all"),
    "followUpMode": Effect("one-at-a-time", "all"),
    "defaultProvider": Effect("first", "second"),
    "defaultModel": Effect("first", "second"),
    "defaultThinkingLevel": Effect("medium", "high"),
    "modelThinkingLevels": Effect("medium", "low"),
    "thinkingBudgets": Effect(8192, 3000),
    "defaultTools": Effect(
        ["bash", "edit", "find", "intercom", "kill", "read", "search", "subagent", "write"], ["bash", "read", "search"]
    ),
    "cacheRetention": Effect(True, False),
    "sessionDir": Effect("agent", "home"),
    "shellPath": Effect("bash", "sh"),
    "shellCommandPrefix": Effect("none", "prefix"),
    "retry.maxRetries": Effect(3, 7),
    "retry.baseDelayMs": Effect(2000, 60_000),
    "search.contextBefore": Effect(" 1:a", "*2:hit"),
    "search.contextAfter": Effect(" 5:e", " 3:c"),
    "httpProxy": Effect("", "http://127.0.0.1:9"),
    "defaultProjectTrust": Effect(False, True),
    "skills": Effect(False, True),
    "prompts": Effect(False, True),
}

ELSEWHERE = {
    "queueMode": "tests/runtime/test_settings.py::test_older_names_still_count_and_yield_to_the_newer",
    "retry.maxDelayMs": "tests/runtime/test_settings.py::test_older_names_still_count_and_yield_to_the_newer",
    "fallbackModels": "tests/e2e/test_contract_gaps.py::test_another_model_takes_over_and_the_first_one_comes_back",
    "tasks.wait.kind": "tests/e2e/test_tasks.py::test_settings_say_how_long_a_command_is_waited_for",
    "tasks.wait.commandBudgetMs": "tests/e2e/test_tasks.py::test_settings_say_how_long_a_command_is_waited_for",
    "tasks.wait.agentBudgetMs": "tests/e2e/test_tasks.py::test_settings_say_how_long_a_command_is_waited_for",
    "tasks.keys": "tests/e2e/test_inspector.py::test_configured_keys_come_from_the_settings",
    "subagents.concurrency": "tests/e2e/test_subagents.py::test_settings_change_and_disable_agents_and_lower_limits",
    "subagents.maxTasks": "tests/e2e/test_subagents.py::test_settings_change_and_disable_agents_and_lower_limits",
    **dict.fromkeys(
        ("subagents.worktreeHook", "subagents.worktreeHookTimeoutMs"),
        "tests/e2e/test_subagent_worktrees.py"
        "::test_a_hook_of_the_settings_prepares_each_worktree_or_the_agent_does_not_begin",
    ),
    "subagents.agentOverrides": (
        "tests/e2e/test_subagents.py::test_settings_change_and_disable_agents_and_lower_limits"
    ),
    "enabledModels": "tests/e2e/test_models.py::test_a_scope_of_one_is_nothing_to_cycle_through",
    "retry.enabled": "tests/e2e/test_request_settings.py::test_each_limit_of_time_ends_a_request_that_goes_silent",
    "retry.provider.timeoutMs": (
        "tests/e2e/test_request_settings.py::test_each_limit_of_time_ends_a_request_that_goes_silent"
    ),
    "retry.provider.maxRetries": (
        "tests/e2e/test_request_settings.py::test_a_request_that_was_refused_for_now_is_sent_again_without_a_word"
    ),
    "retry.provider.maxRetryDelayMs": (
        "tests/e2e/test_request_settings.py::test_a_longer_wait_than_allowed_fails_at_once"
    ),
    "caFile": "tests/e2e/test_request_settings.py::test_certificates_and_the_time_for_a_connection_are_the_settings",
    "httpConnectTimeoutMs": (
        "tests/e2e/test_request_settings.py::test_certificates_and_the_time_for_a_connection_are_the_settings"
    ),
    "httpIdleTimeoutMs": "tests/e2e/test_request_settings.py::test_each_limit_of_time_ends_a_request_that_goes_silent",
    "httpTotalTimeoutMs": "tests/e2e/test_request_settings.py::test_each_limit_of_time_ends_a_request_that_goes_silent",
    "streamDeadlineMs": "tests/e2e/test_request_settings.py::test_each_limit_of_time_ends_a_request_that_goes_silent",
    "images.blockImages": (
        "tests/e2e/test_commands.py::test_without_resizing_images_stay_as_they_are_and_blocked_ones_are_not_sent"
    ),
    "images.autoResize": (
        "tests/e2e/test_commands.py::test_without_resizing_images_stay_as_they_are_and_blocked_ones_are_not_sent"
    ),
}
# They are about compaction and summaries, which have their own tests.
SECTIONS_ELSEWHERE = ("compaction", "branchSummary", "sessionSummary")


def observed(root: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Plays one conversation and says what was seen, by key."""
    with ModelServer() as server:
        home = prepared(root, server.url, settings)
        calls = [
            ("bash", {"command": "echo $0; echo ${BEFORE:-none}; echo $HTTP_PROXY"}),
            ("search", {"pattern": "hit"}),
        ]
        server.script(tools([tool(name, arguments) for name, arguments in calls]), text("done"), error(503))
        environment = {**home.environment(), "PYTHONPATH": str(ROOT)}
        with Agent([*program(), "--mode", "rpc"], cwd=home.cwd, env=environment) as a:
            return conversation(a, server)


def prepared(root: Path, url: str, settings: dict[str, Any]) -> Home:
    root.mkdir()
    home = Home(root, url)
    ids = ("first", "second", "third")
    models = [{"id": id_, "reasoning": True, "contextWindow": 200_000, "maxTokens": 20_000} for id_ in ids]
    provider = {"baseUrl": url, "api": "anthropic-messages", "apiKey": "k", "models": models}
    home.write_models({"providers": {"fa": provider}})
    (home.agent_dir / "settings.json").write_text(json.dumps(settings))
    (home.cwd / "AGENTS.md").write_text("The project speaks.")
    (home.cwd / "file").write_text("a\nhit\nc\nd\ne\nf\n")
    for folder in ("more-skills", "more-prompts"):
        (root / folder).mkdir()
    (root / "more-skills" / "extra.md").write_text("---\nname: extra\ndescription: d\n---\nx")
    (root / "more-prompts" / "other.md").write_text("x")
    return home


def conversation(a: Agent, server: ModelServer) -> dict[str, Any]:
    state = a.request("get_state")["data"]
    a.prompt("go")
    body = server.requests[0].body
    results = [each["message"] for each in a.records if each["type"] == "message_end"]
    shell, found = ("".join(m["content"][0]["text"]) for m in results if m["role"] == "toolResult")
    shell_name, prefix, proxy, *_ = [*shell.splitlines(), ""]
    rows = found.splitlines()[1:]
    a.request("prompt", message="again")
    retry = a.wait({"type": "auto_retry_start"})
    a.request("abort_retry")
    commands = {each["name"] for each in a.request("get_commands")["data"]["commands"]}
    a.request("set_model", provider="fa", modelId="third")
    third = a.request("get_state")["data"]["thinkingLevel"]
    return {
        "steeringMode": state["steeringMode"],
        "followUpMode": state["followUpMode"],
        "defaultProvider": state["model"]["id"],
        "defaultModel": state["model"]["id"],
        "defaultThinkingLevel": state["thinkingLevel"],
        "modelThinkingLevels": third,
        "thinkingBudgets": body["thinking"]["budget_tokens"],
        "defaultTools": sorted(each["name"] for each in body["tools"]),
        "cacheRetention": "cache_control" in json.dumps(body),
        "sessionDir": "home" if "/home/kept/" in state["sessionFile"] else "agent",
        "shellPath": Path(shell_name).name,
        "shellCommandPrefix": prefix,
        "retry.maxRetries": retry["maxAttempts"],
        "retry.baseDelayMs": retry["delayMs"],
        "search.contextBefore": rows[0],
        "search.contextAfter": rows[-1],
        "httpProxy": proxy,
        "defaultProjectTrust": "The project speaks." in json.dumps(body["system"]),
        "skills": "skill:extra" in commands,
        "prompts": "other" in commands,
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    root = tmp_path_factory.mktemp("effects")
    yield observed(root / "without", {}), observed(root / "with", SETTINGS)


@pytest.mark.parametrize("key", EFFECTS)
def test_a_key_has_its_effect(runs: tuple[dict[str, Any], dict[str, Any]], key: str) -> None:
    without, with_it = runs
    assert Effect(without[key], with_it[key]) == EFFECTS[key]
    assert without[key] != with_it[key]


def dotted() -> set[str]:
    return {".".join(key.path) for key in KEYS if key.path[0] not in SECTIONS_ELSEWHERE} | PATH_LISTS


def test_no_key_is_left_out() -> None:
    assert EFFECTS.keys() | ELSEWHERE.keys() == dotted()
    assert EFFECTS.keys() & ELSEWHERE.keys() == set()


@pytest.mark.parametrize("key", ELSEWHERE)
def test_the_tests_that_show_the_others_are_there_and_use_them(key: str) -> None:
    file, _, name = ELSEWHERE[key].partition("::")
    source = (ROOT / file).read_text(encoding="utf-8")
    assert name in {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert f'"{key.rpartition(".")[2]}"' in source


def test_the_documentation_names_every_key_and_none_that_is_not_there() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = page.partition("\n## settings.json\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name.strip(" `") for row in rows for name in row.split(",")}
    named = {name for name in named if name.partition(".")[0] not in SECTIONS_ELSEWHERE}
    known, older = dotted(), {"queueMode", "retry.maxDelayMs"}
    assert known - older <= named
    assert {name for name in named if name in UNUSED} == UNUSED, "each with the reason why it does nothing here"
    assert named - known - UNUSED == set()
