"""Where definitions of subagents are looked for, which of two counts, and what a bad file costs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from actors.task.definition import by_name
from runtime.agent_definitions import BUILT_IN, known_agents, load_agents


class Place:
    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        self.agent = self.home / ".atomic" / "agent"
        for folder in (self.agent, self.project):
            folder.mkdir(parents=True)

    def write(self, path: Path, name: str, description: str = "d") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {name}\ndescription: {description}\n---\nprompt")
        return path

    def load(self, *, trusted: bool = True, cwd: Path | None = None) -> tuple[dict[str, str], list[str]]:
        """Name -> description of all that are not built in, and warnings."""
        where = (str(self.agent), str(cwd or self.project), {"HOME": str(self.home)})
        found, warnings = load_agents(*where, trusted=trusted)
        named = by_name(found)
        return {name: each.description for name, each in named.items() if each.source != "builtin"}, warnings


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_program_brings_agents_of_its_own_and_only_one_of_them_may_edit(place: Place) -> None:
    found, warnings = load_agents(str(place.agent), str(place.project), {"HOME": str(place.home)}, trusted=True)
    assert warnings == [] and len(found) == len(os.listdir(BUILT_IN))
    assert [each.name for each in found if each.tools is None or {"edit", "write"} & set(each.tools)] == ["worker"]
    assert all(each.prompt and each.description for each in found)


def test_in_a_folder_files_are_read_by_name_and_the_last_of_one_name_counts(place: Place) -> None:  # 3.1
    for file in ("b.md", "a.md", "c.md"):
        place.write(place.agent / "agents" / file, "same", file)
    assert place.load()[0] == {"same": "c.md"}


def test_the_stronger_place_wins(place: Place) -> None:
    places = [
        place.home / ".pi" / "agent" / "agents",
        place.agent / "agents",
        place.home / ".agents",
        place.project / ".agents",
        place.project / ".pi" / "agents",
        place.project / ".atomic" / "agents",
    ]
    for number, folder in enumerate(places):
        place.write(folder / "deep" / "er.md", "same", str(number))
        place.write(folder / "own.md", f"own{number}")
        found, warnings = place.load()
        assert (found["same"], warnings) == (str(number), [])
    assert len(place.load()[0]) == 1 + len(places)


def test_an_agent_of_the_program_may_be_replaced(place: Place) -> None:
    place.write(place.agent / "agents" / "mine.md", "scout", "another")
    assert place.load()[0] == {"scout": "another"}


def test_a_project_is_the_nearest_folder_with_something_of_its_own_and_counts_only_when_trusted(place: Place) -> None:
    place.write(place.project / ".atomic" / "agents" / "x.md", "outer")
    below = place.project / "src" / "deep"
    below.mkdir(parents=True)
    assert place.load(cwd=below)[0] == {"outer": "d"}
    assert place.load(cwd=below, trusted=False)[0] == {}
    place.write(below.parent / ".agents" / "y.md", "inner")
    assert place.load(cwd=below)[0] == {"inner": "d"}


def test_the_home_directory_is_no_project(place: Place) -> None:
    place.write(place.home / ".atomic" / "agents" / "x.md", "none")
    work = place.home / "work"
    work.mkdir()
    assert place.load(cwd=work)[0] == {}


def test_a_bad_file_costs_one_warning_and_not_its_neighbours(place: Place) -> None:
    folder = place.agent / "agents"
    place.write(folder / "good.md", "good")
    (folder / "broken.md").write_text("---\nname: [\n---\n")
    (folder / "odd.md").write_text("---\nname: odd\ndescription: d\ndefaultContext: none\n---\n")
    (folder / "notes.md").write_text("no front matter")
    (folder / "half.md").write_text("---\nname: half\n---\n")
    os.mkfifo(folder / "pipe.md")
    found, warnings = place.load()
    assert set(found) == {"good", "odd"}
    assert len(warnings) == 3
    assert all(any(name in line for line in warnings) for name in ("broken.md", "odd.md", "pipe.md"))


def test_links_of_files_are_followed_and_circles_of_folders_end(place: Place) -> None:
    folder = place.agent / "agents"
    real = place.write(place.home / "elsewhere" / "a.md", "linked")
    folder.mkdir()
    (folder / "a.md").symlink_to(real)
    (folder / "loop").symlink_to(folder)
    assert place.load() == ({"linked": "d"}, [])


def test_settings_lie_over_the_agents_of_the_program_alone(place: Place) -> None:
    place.write(place.agent / "agents" / "worker.md", "worker", "mine")
    overrides = {
        "scout": {"tools": "", "model": "m:low", "systemPrompt": "Else.", "inheritProjectContext": "false"},
        "reviewer": {"disabled": "true"},
        "worker": {"disabled": "true", "model": "m"},
    }
    where = (str(place.agent), str(place.project), {"HOME": str(place.home)})
    found = by_name(load_agents(*where, trusted=True, overrides=overrides)[0])
    plain = by_name(load_agents(*where, trusted=True)[0])
    assert (found["scout"].tools, found["scout"].model, found["scout"].prompt) == (None, "m:low", "Else.")
    assert plain["scout"].inherits_project_context and not found["scout"].inherits_project_context
    assert (found["reviewer"].disabled, found["analyst"]) == (True, plain["analyst"])
    assert (found["worker"].disabled, found["worker"].model) == (False, None)


def test_a_file_cannot_disable_its_agent(place: Place) -> None:
    path = place.write(place.agent / "agents" / "x.md", "x")
    path.write_text(path.read_text().replace("description", "disabled: true\ndescription"))
    where = (str(place.agent), str(place.project), {"HOME": str(place.home)})
    assert not by_name(load_agents(*where, trusted=True)[0])["x"].disabled


# -- packages


def known(place: Place, approve: bool | None = True) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Name -> source and description of all that are not built in, and warnings."""
    env = {"HOME": str(place.home), "ATOMIC_CODING_AGENT_DIR": str(place.agent)}
    found = known_agents(str(place.agent), str(place.project), env, approve)
    named = {name: (each.source, each.description) for name, each in by_name(found.definitions).items()}
    return {name: told for name, told in named.items() if told[0] != "builtin"}, list(found.warnings)


def settings(folder: Path, *packages: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"packages": packages}))


def test_packages_that_are_folders_bring_agents_and_others_are_passed_over(place: Place) -> None:
    settings(place.agent, "../kit", "~/more", {"source": str(place.project / "own")}, "npm:@x/kit", "git:y", "kit", 7)
    place.write(place.agent.parent / "kit" / "agents" / "a.md", "a")
    place.write(place.agent.parent / "kit" / "agents" / "deep" / "b.md", "b")
    place.write(place.agent.parent / "kit" / "c.md", "c")
    place.write(place.home / "more" / "agents" / "d.md", "d")
    place.write(place.project / "own" / "agents" / "e.md", "e")
    place.write(place.agent / "kit" / "agents" / "f.md", "f")
    found, warnings = known(place)
    assert (sorted(found), warnings) == (["a", "b", "d", "e"], [])
    assert {source for source, _ in found.values()} == {"user"}


def test_packages_are_weaker_than_what_their_scope_has_and_a_later_one_wins(place: Place) -> None:
    settings(place.agent, "/nowhere/else", str(place.home / "one"), str(place.home / "two"))
    settings(place.project / ".atomic", str(place.home / "three"))
    for strength, folder in enumerate(
        (
            place.home / "one" / "agents",
            place.home / "two" / "agents",
            place.agent / "agents",
            place.home / "three" / "agents",
            place.project / ".atomic" / "agents",
        )
    ):
        place.write(folder / "x.md", "x", str(strength))
        source = "project" if strength > 2 else "user"
        assert known(place)[0]["x"] == (source, str(strength)), folder
    assert known(place)[1] == [
        f"/nowhere/else was named as a package in {place.agent / 'settings.json'}, but is no folder"
    ]


def test_a_project_that_is_not_trusted_brings_no_packages(place: Place) -> None:
    settings(place.project / ".atomic", str(place.home / "kit"))
    place.write(place.home / "kit" / "agents" / "a.md", "a")
    assert sorted(known(place, approve=False)[0]) == []
    assert sorted(known(place, approve=True)[0]) == ["a"]
