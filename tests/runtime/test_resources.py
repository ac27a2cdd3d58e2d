"""Context files, prompt files and trust: what is found, in which order, and what an untrusted project may bring."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from runtime.resources import is_trusted, load_resources


class Tree:
    """A home with an agent directory, and a project two folders deep."""

    def __init__(self, root: Path) -> None:
        self.root, self.agent = root, root / "home" / "agent"
        self.outer, self.cwd = root / "outer", root / "outer" / "project"
        self.agent.mkdir(parents=True)
        self.cwd.mkdir(parents=True)
        self.env = {"HOME": str(root / "home")}

    def put(self, folder: Path, name: str, text: str = "") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text or f"{folder.name}/{name}", "utf-8")
        return folder / name

    def texts(self, *, trusted: bool = True, context_files: bool = True) -> list[str]:
        found = load_resources(str(self.agent), str(self.cwd), self.env, trusted=trusted, context_files=context_files)
        assert found.warnings == ()
        return [file.text for file in found.context_files]

    def trusted(self, approve: bool | None = None) -> bool:
        return is_trusted(str(self.agent), str(self.cwd), self.env, approve)[0]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_files_go_from_the_agent_directory_over_the_root_down_to_the_working_directory(tree: Tree) -> None:
    tree.put(tree.cwd, "CLAUDE.md")
    tree.put(tree.outer, "AGENTS.md")
    tree.put(tree.agent, "AGENTS.md")
    assert tree.texts() == ["agent/AGENTS.md", "outer/AGENTS.md", "project/CLAUDE.md"]


def test_each_folder_gives_its_first_candidate(tree: Tree) -> None:
    for name in ("CLAUDE.md", "AGENTS.md", "AGENTS.override.md"):
        tree.put(tree.cwd, name)
    assert tree.texts() == ["project/AGENTS.override.md"]


def test_a_directory_of_that_name_is_passed_over(tree: Tree) -> None:
    (tree.cwd / "AGENTS.md").mkdir()
    tree.put(tree.cwd, "CLAUDE.md")
    assert tree.texts() == ["project/CLAUDE.md"]


@pytest.mark.skipif(os.name == "nt", reason="FIFOs of POSIX")
def test_a_fifo_of_that_name_does_not_block(tree: Tree) -> None:
    os.mkfifo(tree.cwd / "AGENTS.md")
    tree.put(tree.cwd, "CLAUDE.md")
    assert tree.texts() == ["project/CLAUDE.md"]


def test_a_file_is_read_once_even_when_the_project_is_the_agent_directory(tree: Tree) -> None:
    tree.put(tree.agent, "AGENTS.md")
    tree.cwd = tree.agent
    assert tree.texts() == ["agent/AGENTS.md"]


def test_an_untrusted_project_leaves_the_users_own_file(tree: Tree) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    tree.put(tree.agent, "AGENTS.md")
    assert tree.texts(trusted=False) == ["agent/AGENTS.md"]


def test_no_context_files_means_none_at_all(tree: Tree) -> None:
    tree.put(tree.agent, "AGENTS.md")
    assert tree.texts(context_files=False) == []


def test_bytes_that_are_no_text_and_a_mark_at_the_beginning_are_read_anyway(tree: Tree) -> None:
    (tree.cwd / "AGENTS.md").write_bytes(b"\xef\xbb\xbfab\xffc")
    assert tree.texts() == ["ab\ufffdc"]


def test_the_file_of_a_nested_worktree_hides_that_of_its_main_checkout(tree: Tree) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
    tree.put(tree.outer, "AGENTS.md", "main")
    for arguments in (
        ["init", "-q"],
        ["add", "AGENTS.md"],
        ["commit", "-qm", "x"],
        ["worktree", "add", "-q", "trees/w"],
    ):
        subprocess.run([*git, *arguments], cwd=tree.outer, check=True, capture_output=True)
    tree.cwd = tree.outer / "trees" / "w"
    tree.put(tree.cwd, "AGENTS.md", "worktree")
    tree.put(tree.root, "AGENTS.md", "above")
    assert tree.texts() == ["above", "worktree"]


def test_prompt_files_of_a_trusted_project_win_over_the_users(tree: Tree) -> None:
    tree.put(tree.cwd / ".pi", "SYSTEM.md")
    tree.put(tree.agent, "SYSTEM.md")
    tree.put(tree.agent, "APPEND_SYSTEM.md")
    place = (str(tree.agent), str(tree.cwd), tree.env)
    assert load_resources(*place, trusted=True).system_prompt == ".pi/SYSTEM.md"
    assert load_resources(*place, trusted=False).system_prompt == "agent/SYSTEM.md"
    assert load_resources(*place, trusted=False).append_system_prompt == "agent/APPEND_SYSTEM.md"
    tree.put(tree.cwd / ".atomic", "SYSTEM.md")
    assert load_resources(*place, trusted=True).system_prompt == ".atomic/SYSTEM.md"


# ---- trust


def test_a_project_that_brings_nothing_is_trusted(tree: Tree) -> None:
    assert tree.trusted()


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", ".atomic/settings.json", ".pi/x", ".agents/skills/s"])
def test_a_project_that_brings_something_is_not_trusted_when_nobody_can_be_asked(tree: Tree, name: str) -> None:
    path = tree.cwd / name
    tree.put(path.parent, path.name)
    assert not tree.trusted()
    assert tree.trusted(approve=True)


def test_a_context_file_above_counts_too(tree: Tree) -> None:
    tree.put(tree.outer, "AGENTS.md")
    assert not tree.trusted()


def test_the_flag_outranks_what_was_recorded(tree: Tree) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    tree.put(tree.agent, "trust.json", json.dumps({str(tree.cwd): True}))
    assert tree.trusted()
    assert not tree.trusted(approve=False)


def test_the_nearest_recorded_folder_decides(tree: Tree) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    outer, cwd = os.path.realpath(tree.outer), os.path.realpath(tree.cwd)
    tree.put(tree.agent, "trust.json", json.dumps({outer: True}))
    assert tree.trusted()
    tree.put(tree.agent, "trust.json", json.dumps({outer: True, cwd: False}))
    assert not tree.trusted()


def test_a_recorded_decision_outranks_the_users_default(tree: Tree) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    tree.put(tree.agent, "settings.json", '{"defaultProjectTrust": "always"}')
    assert tree.trusted()
    tree.put(tree.agent, "trust.json", json.dumps({os.path.realpath(tree.cwd): False}))
    assert not tree.trusted()


def test_a_project_cannot_trust_itself(tree: Tree) -> None:
    tree.put(tree.cwd / ".atomic", "settings.json", '{"defaultProjectTrust": "always"}')
    assert not tree.trusted()


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_broken_trust_json_trusts_nobody_and_says_so(tree: Tree, content: str) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    tree.put(tree.agent, "trust.json", content)
    trusted, warnings = is_trusted(str(tree.agent), str(tree.cwd), tree.env, None)
    assert (trusted, len(warnings)) == (False, 1)
    assert "trust.json" in warnings[0]


@pytest.mark.parametrize("value", ["false", "true", None, 0, 1, [], {}])
def test_a_value_that_is_no_boolean_denies_its_folder_and_is_named(tree: Tree, value: object) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    tree.put(tree.agent, "settings.json", '{"defaultProjectTrust": "always"}')
    tree.put(tree.agent, "trust.json", json.dumps({"/": True, str(tree.cwd): value}))
    trusted, (line,) = is_trusted(str(tree.agent), str(tree.cwd), tree.env, None)
    assert not trusted
    assert f'"{tree.cwd}" is {json.dumps(value)}; allowed: true or false' in line


SPELLINGS = ["{cwd}/", "{cwd}//", "{outer}/./project", "{outer}/x/../project", "{root}/link", "{root}/link/", "~/link"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_folder_is_meant_however_it_is_spelt(tree: Tree, spelling: str) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    for link in (tree.root / "link", tree.root / "home" / "link"):
        link.symlink_to(tree.cwd)
    key = spelling.format(cwd=tree.cwd, outer=tree.outer, root=tree.root)
    tree.put(tree.agent, "trust.json", json.dumps({str(tree.outer): True, key: False}))
    assert not tree.trusted()
    tree.put(tree.agent, "trust.json", json.dumps({str(tree.outer): False, key: True}))
    assert tree.trusted()


def test_of_two_decisions_on_one_folder_the_denial_counts(tree: Tree) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    for keys in ((str(tree.cwd), f"{tree.cwd}/"), (f"{tree.cwd}/", str(tree.cwd))):
        tree.put(tree.agent, "trust.json", json.dumps({keys[0]: False, keys[1]: True}))
        assert not tree.trusted()


@pytest.mark.parametrize("key", ["", ".", "project", "/a\0b", "/\ud800"])
def test_what_is_no_absolute_path_is_named_and_decides_nothing(tree: Tree, key: str) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    tree.put(tree.agent, "trust.json", json.dumps({key: True}))
    trusted, (line,) = is_trusted(str(tree.agent), str(tree.cwd), tree.env, None)
    assert not trusted
    assert line.endswith(" is no absolute path; it is ignored")
    line.encode()


@pytest.mark.parametrize("content", ["{", "[]", "pipe"])
def test_a_trust_json_that_makes_no_sense_outranks_always(tree: Tree, content: str) -> None:
    tree.put(tree.cwd, "AGENTS.md")
    tree.put(tree.agent, "settings.json", '{"defaultProjectTrust": "always"}')
    if content == "pipe":
        os.mkfifo(tree.agent / "trust.json")
    else:
        tree.put(tree.agent, "trust.json", content)
    assert not tree.trusted()


def test_the_home_directory_is_not_a_project_because_the_agent_lives_there(tree: Tree) -> None:
    tree.put(tree.root / "home" / ".atomic" / "agent", "settings.json", "{}")
    (tree.root / "home" / ".agents" / "skills").mkdir(parents=True)
    tree.cwd = tree.root / "home"
    assert tree.trusted()
