"""What the session of a child is given: no tasks, the tools of its plan, and the model that was decided for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from actors.probe import Probe
from actors.session.actor import Session
from actors.session.services import Services
from actors.session.surroundings import Surroundings
from actors.task.definition import KnownAgents
from actors.task.subagent.services import CHILD_KEY, child_services
from actors.tool.schema import check_arguments
from actors.tool.subagent import looking_tool
from actors.tool.table import ToolFailure, builtin_tools
from tests.actors.session.test_session import MODES, Bench
from tests.actors.task.agents import model, parent, plan

DELEGATION = "Subagent delegation is not available inside a subagent."


def given(folder: Path, road: Any, **fields: Any) -> Services:
    services = replace(Bench(folder)._services(), tools=builtin_tools(), name="the parent's", pi_compat=True)
    surroundings = Surroundings(lambda *_: "")
    return child_services(services, plan(**fields), surroundings, road, lambda *_: Probe(), lambda _: KnownAgents(()))


def test_a_child_owns_no_tasks_and_all_that_it_says_goes_one_way(tmp_path: Path) -> None:  # 2.3, row 77
    road: Any = Probe()
    found = given(tmp_path, road)
    assert found.start_task_desk is None
    assert found.writer is found.desk is found.shells is road
    assert (found.name, found.pi_compat) == (None, False)


def test_a_child_knows_the_models_of_its_parent_and_begins_with_the_one_that_was_decided(tmp_path: Path) -> None:
    its_parent = parent("b/two")
    found = given(tmp_path, Probe(), parent=its_parent, model=model("b/two"), level="low")
    assert found.catalog is its_parent.catalog and found.defaults is its_parent.defaults
    assert found.place is not None and found.place.key == "b/two:low"


def test_a_fork_whose_file_stores_another_model_runs_on_the_one_that_was_decided(tmp_path: Path) -> None:  # row 83
    said = Bench(tmp_path)
    said.prompt()
    said.reply()
    history, opened = said.session.history, said.session.opened
    history.append("model_change", provider="c", modelId="three")
    services = given(tmp_path, Probe(), model=model("b/two"), level="low")
    services = replace(services, start_queue=lambda *_: Probe(), catalog=said.catalog)
    session = Session(CHILD_KEY, replace(opened, entries=history.tree.entries), services, MODES)
    session.me = Probe()
    session.begin()
    assert session.setting.model == model("b/two") and session.setting.level == "low"
    *_, last = [entry.raw for entry in session.history.tree.entries if entry.head.type == "model_change"]
    assert b'"modelId":"two"' in last, "and its file says so from here on"


def test_a_child_has_the_tools_of_its_plan_and_may_only_look_at_agents(tmp_path: Path) -> None:  # 3.2, row 77
    found = given(tmp_path, Probe(), tools=("read", "subagent", "contact_supervisor"))
    assert list(found.tools) == ["read", "subagent", "contact_supervisor"]
    assert found.absent_tools == {"subagent": DELEGATION}
    assert set(given(tmp_path, Probe(), tools=("read",)).tools) == {"read"}


@pytest.mark.parametrize("action", ["list", "get", "status"])
def test_looking_at_agents_is_let_through(action: str) -> None:
    looking = looking_tool(lambda _: KnownAgents(()))
    assert check_arguments(looking, {"action": action, **({"agent": "x"} if action == "get" else {})}) is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"agent": "scout", "task": "x"},
        {"tasks": [{"agent": "scout", "task": "x"}]},
        {"action": "kill", "id": "t"},
        {"action": "wait", "id": "t"},
        {"action": "create", "config": {"name": "x", "description": "d"}},
        {"action": "delete", "agent": "x"},
        {},
    ],
)
def test_whatever_starts_stops_or_changes_an_agent_is_refused_with_one_text(arguments: dict[str, Any]) -> None:
    assert check_arguments(looking_tool(lambda _: KnownAgents(())), arguments) == DELEGATION
    with pytest.raises(ToolFailure, match=rf"^{DELEGATION}$"):
        builtin_tools()["subagent"].run(None, arguments)  # type: ignore[arg-type]
