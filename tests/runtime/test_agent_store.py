"""Definitions that the tool writes, changes and removes: where they land, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from actors.task.definition import AgentChange, by_name
from actors.tool.table import ToolFailure
from runtime.agent_definitions import load_agents
from runtime.agent_store import change_agent

NEW = {"name": "mine", "description": "does: it", "systemPrompt": "Do it.\n", "tools": ["read", "ls"]}


class Place:
    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        self.agent = self.home / ".atomic" / "agent"
        for folder in (self.agent, self.project):
            folder.mkdir(parents=True)

    def change(
        self, action: Any, agent: str = "", /, scope: Any = "both", *, trusted: bool = True, **config: Any
    ) -> Path:
        where = config.pop("cwd", self.project)
        change = AgentChange(action, agent, scope, str(where), config)
        return Path(change_agent(change, str(self.agent), {"HOME": str(self.home)}, trusted=trusted).path)

    def refused(self, action: Any, agent: str = "", /, scope: Any = "both", **config: Any) -> str:
        with pytest.raises(ToolFailure) as refused:
            self.change(action, agent, scope, **config)
        return str(refused.value)

    def load(self) -> dict[str, Any]:
        env = {"HOME": str(self.home)}
        return by_name(load_agents(str(self.agent), str(self.project), env, trusted=True)[0])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_new_agent_is_the_users_unless_the_project_is_named(place: Place) -> None:
    assert place.change("create", **NEW) == place.agent / "agents" / "mine.md"
    mine = place.load()["mine"]
    assert (mine.source, mine.description, mine.prompt, mine.tools) == ("user", "does: it", "Do it.", ("read", "ls"))
    assert place.change("create", "", "project", **NEW) == place.project / ".atomic" / "agents" / "mine.md"
    assert place.load()["mine"].source == "project"


def test_a_projects_new_agent_lies_where_the_projects_others_are(place: Place) -> None:
    (place.project / ".agents").mkdir()
    below = place.project / "src"
    below.mkdir()
    made = place.change("create", "", "project", cwd=below, package="tools.db", **NEW)
    assert made == place.project / ".atomic" / "agents" / "tools.db.mine.md"
    assert "tools.db.mine" in place.load()


def test_a_change_keeps_what_it_does_not_name(place: Place) -> None:
    path = place.agent / "agents" / "deep" / "odd name.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: mine\ndescription: d\nx-colour: red # kept\nmodel: m\n---\nPrompt.\n")
    os.chmod(path, 0o640)
    assert place.change("update", "mine", description="new", inheritSkills=True, model=None, skills=["a", "b"]) == path
    head = "---\nname: mine\ndescription: new\nx-colour: red # kept\ninheritSkills: true\nskills: a, b\n---\nPrompt.\n"
    assert path.read_text() == head
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["odd name.md"]


def test_bytes_that_are_no_text_stay(place: Place) -> None:
    path = place.change("create", **NEW)
    path.write_bytes(path.read_bytes() + b"\xff\xfe\n")
    place.change("update", "mine", description="other")
    assert path.read_bytes().endswith(b"Do it.\n\xff\xfe\n")


def test_the_agent_that_counts_in_the_scope_is_changed(place: Place) -> None:
    user, project = place.change("create", **NEW), place.change("create", "", "project", **NEW)
    assert place.change("update", "mine", description="x") == project
    assert place.change("update", "mine", "user", description="y") == user
    assert place.change("delete", "mine") == project
    assert place.change("delete", "mine") == user
    assert place.refused("delete", "mine") == "Unknown agent: mine"


def test_of_a_link_the_file_is_changed_and_the_link_removed(place: Place) -> None:
    real = place.home / "elsewhere.md"
    path = place.change("create", **NEW)
    path.rename(real)
    path.symlink_to(real)
    place.change("update", "mine", description="other")
    assert path.is_symlink() and "other" in real.read_text()
    place.change("delete", "mine")
    assert real.exists() and not path.is_symlink()


def test_those_of_the_program_are_not_for_changing_and_may_be_replaced(place: Place) -> None:
    before = place.load()["scout"]
    for action in ("update", "delete"):
        told = place.refused(action, "scout")
        assert told.startswith("Agent scout comes with the program") and "subagents.agentOverrides" in told
    place.change("create", name="scout", description="mine")
    assert place.load()["scout"].source == "user"
    place.change("delete", "scout")
    assert place.load()["scout"] == before


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "/etc/x", "a\\b", "a.b", ".hidden", "-x", "a b", "ä", "x\0", "a" * 65, "x\n"],
)
@pytest.mark.parametrize("field", ["name", "package"])
def test_a_name_leads_nowhere(place: Place, name: str, field: str) -> None:
    if (field, name) == ("package", "a.b"):
        return
    told = place.refused("create", **{**NEW, field: name})
    assert told.startswith(f"config.{field} must be letters") and "got " in told
    assert [path.name for path in place.agent.rglob("*")] == []


@pytest.mark.parametrize(
    ("action", "agent", "config", "text"),
    [
        ("create", "", NEW, "Agent mine exists already: "),
        ("create", "", {**NEW, "name": "taken"}, "taken.md exists already, and is no agent of that name"),
        ("create", "", {**NEW, "name": "new", "tools": ["a,b"]}, "config.tools must hold names without commas"),
        (
            "create",
            "",
            {**NEW, "name": "new", "description": " "},
            "config.name and config.description must not be blank",
        ),
        ("create", "", {**NEW, "name": "new", "description": "\ud800"}, "config.description must be valid Unicode"),
        ("create", "", {**NEW, "name": "new", "systemPrompt": "\udc80"}, "config.systemPrompt must be valid Unicode"),
        ("update", "mine", {"name": "other"}, "config.name cannot be changed"),
        ("update", "mine", {"description": None}, "config.name and config.description must not be blank"),
        ("update", "nobody", {"model": "m"}, "Unknown agent: nobody"),
        ("delete", "nobody", {}, "Unknown agent: nobody"),
    ],
)
def test_what_cannot_be_is_told_and_changes_nothing(
    place: Place, action: str, agent: str, config: dict[str, Any], text: str
) -> None:
    place.change("create", **NEW)
    (place.agent / "agents" / "taken.md").write_text("notes")
    before = {path: path.read_bytes() for path in place.agent.rglob("*.md")}
    assert text in place.refused(action, agent, **config)
    assert {path: path.read_bytes() for path in place.agent.rglob("*.md")} == before


def test_an_untrusted_project_and_the_home_directory_get_none(place: Place) -> None:
    assert "is not trusted" in place.refused("create", "", "project", trusted=False, **NEW)
    assert "is the home directory" in place.refused("create", "", "project", cwd=place.home, **NEW)
    place.change("create", "", "project", **NEW)
    assert place.refused("delete", "mine", trusted=False) == "Unknown agent: mine"


def test_a_folder_that_cannot_be_written_is_told(place: Place) -> None:
    (place.agent / "agents").write_text("a file")
    assert "agents'" in place.refused("create", **NEW)
