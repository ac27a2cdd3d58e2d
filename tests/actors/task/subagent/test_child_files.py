"""The files of a child: where they lie, what they begin with, and what becomes of a folder that cannot be written."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from actors.mail import AgentPlan, ArtifactsWritten, ChildOpened, ChildRefused
from actors.probe import Probe
from actors.session.file import Stamps
from actors.session.surroundings import Surroundings
from actors.task.checkout import CheckoutPlan, WorktreeRoot
from actors.task.git import Git
from actors.task.subagent.child_files import ChildFiles
from actors.task.worktree import Worktrees
from tests.actors.task.agents import agent, entry, parent, plan

STAMPS = Stamps(lambda: 1, lambda: "01890000-0000-7000-8000-000000000000", lambda: "u")
BARE = Surroundings(lambda model, level: "")


def files(fails: Exception | None = None) -> ChildFiles:
    def surroundings(plan: AgentPlan) -> Surroundings:
        if fails is not None:
            raise fails
        return BARE

    worktrees = Worktrees("/nowhere", Git(os.environ), lambda: 0.0)
    return ChildFiles(lambda name, work: work(), STAMPS, surroundings, worktrees)


def opened(of: AgentPlan, fails: Exception | None = None) -> Any:
    to = Probe[Any]()
    files(fails).open(of, to)
    (told,) = to.drain()
    return told


def of(folder: Path, **fields: Any) -> AgentPlan:
    saved = parent(path=str(folder / "p.jsonl"), branch=(entry("u", None), entry("v", "u")))
    return plan(**{"parent": saved, "cwd": str(folder), **fields})


def test_a_fresh_child_has_a_file_of_its_own_that_names_its_parent_and_no_list_shows(tmp_path: Path) -> None:
    told = opened(of(tmp_path, index=3))
    assert isinstance(told, ChildOpened) and told.opened.entries == []
    told.opened.journal.append(entry("x", None).raw)
    told.opened.journal.close()
    (path,) = (tmp_path / "subagents" / "p").iterdir()
    assert json.loads(path.read_text().splitlines()[0])["parentSession"] == str(tmp_path / "p.jsonl")
    (kept,) = told.artifacts
    assert Path(kept) == tmp_path / "subagent-artifacts" / "r1_scout_3_input.md"
    assert Path(kept).read_text() == "find x"
    assert stat.S_IMODE(Path(kept).stat().st_mode) == 0o600


def test_a_forked_child_begins_with_the_branch_on_disk(tmp_path: Path) -> None:
    told = opened(of(tmp_path, context="fork"))
    assert [each.head.id for each in told.opened.entries] == ["u", "v"]
    (path,) = (tmp_path / "subagents").rglob("*.jsonl")
    assert len(path.read_text().splitlines()) == 3
    told.opened.journal.close()


def test_a_parent_in_memory_has_its_children_in_memory(tmp_path: Path) -> None:
    told = opened(of(tmp_path, parent=parent(path=None, is_saved=False), artifacts=False))
    assert told.opened.journal.path is None and told.artifacts == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("context", "text"),
    [("fork", "Failed to create forked subagent session: "), ("fresh", "Failed to create subagent session: ")],
)
def test_what_cannot_be_made_is_refused_by_name(tmp_path: Path, context: Any, text: str) -> None:
    (tmp_path / "subagents").write_text("in the way")
    told = opened(of(tmp_path, context=context))
    assert isinstance(told, ChildRefused) and told.error.startswith(text) and "subagents" in told.error


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "subagent-artifacts").write_text("in the way")
    kept = tmp_path / "subagent-artifacts" / "r1_scout_input.md"
    assert opened(of(tmp_path)) == ChildRefused(f"Failed to create subagent session: {kept}: Not a directory")


def test_no_fault_leaves_the_subagent_waiting(tmp_path: Path) -> None:
    assert opened(of(tmp_path), KeyError("secret")) == ChildRefused("Failed to create subagent session: KeyError")


def test_the_answer_and_the_facts_are_kept_and_the_file_that_was_asked_for(tmp_path: Path) -> None:
    to = Probe[Any]()
    wanted = of(tmp_path, agent=agent("../up/a b"), output=str(tmp_path / "new" / "answer.md"))
    files().keep(wanted, "the answer", {"agent": "x"}, None, to)
    (told,) = to.drain()
    folder = tmp_path / "subagent-artifacts"
    assert told.paths == tuple(str(folder / f"r1_.._up_a_b_{what}") for what in ("output.md", "meta.json"))
    assert Path(told.paths[0]).read_text() == "the answer"
    assert json.loads(Path(told.paths[1]).read_text()) == {"agent": "x"}
    assert told.saved_to == wanted.output and Path(told.saved_to).read_text() == "the answer"


@pytest.mark.parametrize("name", ["n" * 400, "é" * 400, "x" + "認" * 400])
def test_the_files_of_an_agent_with_a_long_name_have_shorter_ones(tmp_path: Path, name: str) -> None:
    told = opened(of(tmp_path, agent=agent(name), index=49))
    assert isinstance(told, ChildOpened)
    told.opened.journal.close()
    (kept,) = told.artifacts
    assert Path(kept).exists() and f"r1_{name[:30]}" in kept and kept.endswith("_49_input.md")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    to = Probe[Any]()
    files().keep(of(tmp_path, output=str(tmp_path)), "the answer", {}, None, to)
    (told,) = to.drain()
    assert isinstance(told, ArtifactsWritten)
    assert told.saved_to is None and told.error is not None and str(tmp_path) in told.error
    assert len(told.paths) == 2


def test_a_name_that_no_file_can_have_is_told_and_the_rest_is_kept(tmp_path: Path) -> None:
    for name in ("a\0b", "a\ud800"):
        to = Probe[Any]()
        files().keep(of(tmp_path, output=str(tmp_path / name)), "the answer", {}, None, to)
        (told,) = to.drain()
        assert isinstance(told, ArtifactsWritten)
        assert len(told.paths) == 2 and told.saved_to is None and "output: " in str(told.error)


def test_without_a_worktree_that_was_asked_for_there_is_no_child(tmp_path: Path) -> None:
    root = WorktreeRoot(str(tmp_path), "HEAD", str(tmp_path), "", str(tmp_path))
    told = opened(of(tmp_path, checkout=CheckoutPlan(root, str(tmp_path / "0123abcd-0"))))
    assert isinstance(told, ChildRefused) and "Failed to create subagent session: git worktree: " in told.error
    assert list(tmp_path.iterdir()) == []
