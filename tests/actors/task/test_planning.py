"""What a call of `subagent` reads before it launches: each folder once for all its agents."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from actors.mail import AgentPlan, AgentsPlanned, ToolCallMail, ToolPlace, ToolRequest
from actors.probe import Probe
from actors.task.checkout import WorktreeRoot
from actors.task.definition import KnownAgents
from actors.task.planning import AgentPlanner, look
from actors.tool.table import builtin_tools
from protocol.messages import ToolCall
from runtime.threads import start_pump
from tests.actors.task.agents import agent, parent

KNOWN = KnownAgents((agent("scout"), agent("worker")))


class Folders:
    """A port that reads; what it was asked is kept in order. It cannot read `broken`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def read(self, cwd: str) -> str:
        self.asked.append(cwd)
        if cwd.endswith("broken"):
            raise OSError("it cannot be read")
        return f"what is in {cwd}"


def planned(folders: Folders, arguments: dict[str, Any]) -> tuple[AgentPlan, ...]:
    call: Probe[ToolCallMail] = Probe()
    root = WorktreeRoot("/project", "0" * 40, "/project", "", "/worktrees")
    planner = AgentPlanner(
        start_pump, lambda cwd: KNOWN, _no_change, lambda cwd: root, lambda: "r1", folders.read, lambda path: True
    )
    tool = builtin_tools()["subagent"]
    request = ToolRequest(
        1, tool, ToolCall("c1", "subagent", arguments), ToolPlace("/project", "s", {}, False), parent=parent()
    )
    planner.start(request, call)
    answer = call.of(AgentsPlanned)
    assert all(isinstance(plan, AgentPlan) for plan in answer.plans)
    return tuple(answer.plans)


def _no_change(change: Any) -> Any:
    raise AssertionError


def tasks(*folders: str) -> dict[str, Any]:
    return {"tasks": [{"agent": "scout", "task": "t", "cwd": folder} for folder in folders]}


def test_each_folder_is_read_once_whoever_works_there() -> None:
    folders = Folders()
    found = planned(folders, tasks("a", "b", "a", "/project/b", "a"))
    assert folders.asked == ["/project/a", "/project/b"]
    assert [plan.folder for plan in found] == [f"what is in /project/{name}" for name in "ababa"]
    assert found[0].folder is found[4].folder


def test_a_folder_that_cannot_be_read_is_left_to_its_agent_alone() -> None:
    folders = Folders()
    found = planned(folders, tasks("a", "broken", "broken"))
    assert [plan.folder for plan in found] == ["what is in /project/a", None, None]
    assert folders.asked == ["/project/a", "/project/broken"]


def test_a_worktree_is_read_when_it_is_there() -> None:
    folders = Folders()
    found = planned(folders, {"tasks": [{"agent": "scout", "task": "t"}] * 2, "worktree": True})
    assert folders.asked == []
    assert [plan.folder for plan in found] == [None, None]


def test_a_list_has_a_line_for_each_agent_and_what_is_shown_of_one_stands_as_in_a_file() -> None:
    known = KnownAgents((replace(agent("a"), description="two\n lines", tools=("read", "ls")), agent("b")), ())

    def told(**arguments: Any) -> list[str]:
        return look(lambda _: known, arguments, "/").content[0].text.split("\n")  # type: ignore[union-attr]

    listed = told(action="list")
    assert len(listed) == 2 and listed[0].endswith(": two lines")
    shown = told(action="get", agent="a")
    assert {"tools: read, ls", "disabled: false", "interactive: true"} <= set(shown)
