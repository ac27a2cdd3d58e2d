"""A call of `subagent` made into plans, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from actors.mail import AgentPlan, AgentRefusal, ParentView
from actors.task.checkout import WorktreeRoot
from actors.task.definition import KnownAgents
from actors.task.delegation import boundary, plans, task_text
from actors.tool.table import ToolFailure
from tests.actors.task.agents import agent, parent, plan

NOT_SAVED = "Forked subagent context requires a persisted parent session."
NO_LEAF = "Forked subagent context requires a current leaf to fork from."
KNOWN = KnownAgents(
    (
        agent("scout", tools=("read", "write", "subagent")),
        agent("worker", context="fork"),
        agent("both"),
        agent("off", disabled=True),
    )
)


def made(arguments: dict[str, Any], of: ParentView | None = None, folders: str = "") -> tuple[Any, ...]:
    return plans(arguments, KNOWN, of or parent(), "/project", "r1", lambda path: path.startswith(f"/project{folders}"))


def one(of: ParentView | None = None, /, **arguments: Any) -> AgentPlan:
    (found,) = made({"agent": "both", "task": "t", **arguments}, of)
    assert isinstance(found, AgentPlan), found
    return found


def refusal(of: ParentView | None = None, /, **arguments: Any) -> AgentRefusal:
    (found,) = made({"agent": "both", "task": "t", **arguments}, of)
    assert isinstance(found, AgentRefusal), found
    return found


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "Provide exactly one mode. Agents: both, scout, worker"),
        ({"agent": "both", "tasks": []}, "Provide exactly one mode. Agents: both, scout, worker"),
        ({"agent": "nobody"}, "Unknown agent: nobody"),
        ({"tasks": [{"agent": "both", "task": "x"}, {"agent": "no", "task": "x"}]}, "Unknown agent: no (task 2)"),
        ({"tasks": [{"agent": "both", "task": "x", "count": 26}] * 2}, "Max 50 tasks"),
        ({"agent": "off"}, "Agent is disabled by the settings: off"),
        (
            {"tasks": [{"agent": "both", "task": "x"}, {"agent": "off", "task": "x"}]},
            "Agent is disabled by the settings: off (task 2)",
        ),
        ({"agent": "both", "outputMode": "file-only"}, "outputMode file-only needs output, the file to save to"),
        (
            {"tasks": [{"agent": "both", "task": "x", "output": "a"}, {"agent": "both", "task": "y", "output": "./a"}]},
            "output must differ: tasks 1 and 2 would both save to /project/a",
        ),
        (
            {"tasks": [{"agent": "both", "task": "x", "output": "a", "count": 2}]},
            "output must differ: tasks 1 and 2 would both save to /project/a",
        ),
        ({"agent": "both", "output": "a\0b"}, "Invalid params: path must not contain a NUL character, got 'a\\x00b'"),
        ({"tasks": []}, "tasks must have at least 1 entry"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused_as_a_whole(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ToolFailure) as refused:
        made(arguments)
    assert str(refused.value) == text


def test_the_settings_may_allow_fewer_tasks_in_a_call() -> None:
    few = KnownAgents(KNOWN.definitions, max_tasks=2)
    call = {"tasks": [{"agent": "both", "task": "x", "count": 3}]}
    with pytest.raises(ToolFailure, match=r"^Max 2 tasks$"):
        plans(call, few, parent(), "/project", "r1", lambda path: True)


def test_tasks_are_counted_and_keep_their_order() -> None:
    found = made({"tasks": [{"agent": "both", "task": "x", "count": 2}, {"agent": "scout", "task": "y"}]})
    assert [(each.index, each.agent.name, each.task) for each in found] == [
        (0, "both", "x"),
        (1, "both", "x"),
        (2, "scout", "y"),
    ]
    assert one().index is None


def test_a_child_has_its_parents_tools_narrowed_and_never_those_of_tasks() -> None:
    assert one().tools == ("read", "bash", "contact_supervisor")
    # it names subagent, and may look with it
    assert one(agent="scout", context="fresh").tools == ("read", "subagent", "contact_supervisor")


def test_a_child_may_speak_to_its_parent_unless_its_definition_says_otherwise() -> None:
    alone = KnownAgents((agent("mute", interactive=False, tools=("read", "contact_supervisor", "intercom")),))
    parents = parent(tools=("read", "bash", "kill", "subagent", "intercom"))
    (mute,) = plans({"agent": "mute", "task": "x"}, alone, parents, "/project", "r", lambda _: True)
    assert isinstance(mute, AgentPlan) and mute.tools == ("read",)
    told = (
        "You are a subagent: another agent works with the user and has given you one task. You cannot start subagents"
    )
    assert boundary(mute).startswith(told) and boundary(one(parents)).startswith(told)
    assert "nobody answers questions" in boundary(mute)
    assert "contact_supervisor" in boundary(one(parents))


def test_if_one_agent_forks_all_of_the_call_do_unless_it_says_otherwise() -> None:
    both = {"tasks": [{"agent": "both", "task": "x"}, {"agent": "worker", "task": "x"}]}
    assert [each.context for each in made(both)] == ["fork", "fork"]
    assert [each.context for each in made({**both, "context": "fresh"})] == ["fresh", "fresh"]
    assert one().context == "fresh"


@pytest.mark.parametrize(
    ("fields", "text"),
    [({"path": None, "is_saved": False}, NOT_SAVED), ({"is_saved": False}, NOT_SAVED), ({"branch": ()}, NO_LEAF)],
)
def test_a_fork_without_a_history_to_fork_is_refused_and_never_made_fresh(fields: Any, text: str) -> None:
    assert refusal(parent(**fields), context="fork").message == text
    assert one(parent(**fields)).context == "fresh"


def test_a_missing_folder_refuses_its_slot_alone() -> None:
    found = made({"tasks": [{"agent": "both", "task": "x", "cwd": "../gone"}, {"agent": "both", "task": "x"}]})
    assert found[0].code == "InvalidCwd" and "does not exist: /gone" in found[0].message
    assert isinstance(found[1], AgentPlan)


def test_the_folder_of_a_task_is_relative_to_that_of_the_call() -> None:
    (found,) = made({"tasks": [{"agent": "both", "task": "x", "cwd": "deep"}]})
    assert found.cwd == "/project/deep"
    assert one().cwd == "/project"


def test_without_any_model_no_child_starts() -> None:
    found = refusal(parent(model=None), model="x/none")
    assert found.code == "RunnerUnavailable" and "x/none: no model of that name" in found.message


def test_the_others_take_over_in_their_order() -> None:
    found = one(parent("b/two", "c/three"), model="b/two:low")
    assert (found.model.id, found.level, found.fallback_models) == ("two", "low", ("a/own:high",))


def test_what_a_task_says_comes_before_what_the_call_says_and_that_before_the_definition() -> None:
    (found,) = made({"reads": ["a"], "model": "a/own:low", "tasks": [{"agent": "both", "task": "x", "reads": False}]})
    assert (found.reads, found.level) == ((), "low")
    assert one(reads=["a"]).reads == ("a",)


def test_answers_are_kept_unless_they_are_not_wanted_or_there_is_no_folder_for_them() -> None:
    assert one().artifacts and not one(artifacts=False).artifacts
    assert not one(parent(path=None)).artifacts
    assert one(output="a.md", outputMode="file-only").output == "/project/a.md"
    assert (one().max_lines, one().max_bytes) == (5000, 204_800)
    assert (one(maxOutput={"lines": 3}).max_lines, one(maxOutput={"bytes": 9}).max_bytes) == (3, 9)


def test_a_file_of_the_definition_is_enough_for_an_answer_that_goes_to_a_file_alone() -> None:
    known = KnownAgents((agent("filed", output="a.md"),))
    call = {"tasks": [{"agent": "filed", "task": "x", "outputMode": "file-only"}]}
    (found,) = plans(call, known, parent(), "/project", "r1", lambda path: True)
    assert isinstance(found, AgentPlan) and (found.output, found.only_file) == ("/project/a.md", True)


def test_null_counts_as_left_out_and_numbers_may_be_text() -> None:
    task = {"agent": "both", "task": "x", "count": "2.0", "model": None, "cwd": None, "reads": None}
    found = made({"tasks": [task], "model": "a/own:low", "maxOutput": {"lines": "7", "bytes": None}})
    assert [(each.level, each.max_lines, each.max_bytes, each.cwd) for each in found] == [
        ("low", 7, 204_800, "/project")
    ] * 2


def test_a_worktree_is_of_the_call_and_the_answer_is_not_in_it() -> None:
    root = WorktreeRoot("/project", "c0ffee", "/project/sub", "sub/", "/w")
    call = {"tasks": [{"agent": "both", "task": "x", "count": 2}]}
    found = plans(call, KNOWN, parent(), "/project/sub", "0123abcd", lambda path: True, root)
    assert [each.cwd for each in found if isinstance(each, AgentPlan)] == [
        f"/w/0123abcd-{index}/tree/sub" for index in range(2)
    ]
    (single,) = plans({"agent": "both", "output": "a"}, KNOWN, parent(), "/project/sub", "r", lambda path: True, root)
    assert isinstance(single, AgentPlan)
    assert (single.cwd, single.output) == ("/w/r-0/tree/sub", "/project/sub/a")
    assert "worktree of your own" in task_text(single)


def test_a_child_is_told_what_to_read_and_that_a_history_is_not_its_own() -> None:
    assert task_text(plan()) == "find x"
    text = task_text(plan(context="fork", reads=("a", "b")))
    assert text.startswith("The conversation before this message is for reference only")
    assert text.endswith("Read these files first: a, b\n\nfind x")
