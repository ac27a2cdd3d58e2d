"""Worktrees whose agents leave more than a patch holds: it is never lost, and the result names it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from actors.task.checkout import Changes
from actors.task.worktree import GONE, SETTLING_S
from tests.actors.task.test_worktree import Repo, hooked, left_behind


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def after(repo: Repo, script: str, *, of: str = ".") -> tuple[Changes, Path]:
    """What comes of an agent that runs a script in its worktree."""
    checkout, cwd = repo.open(of=repo.top / of)
    repo.run(script, cwd)
    return checkout.finish(str(repo.home.parent / "p")), cwd


HIDDEN = {
    "a repository": ("git init -q d; cd d; echo precious > q; git add .; git commit -qm x", "d/", "d/q"),
    "one below": (
        "mkdir -p e; git init -q e/d; cd e/d; echo precious > q; git add .; git commit -qm x",
        "e/d/",
        "e/d/q",
    ),
    "what git never takes": ("mkdir -p d/.git; echo precious > d/.git/q", "d/", "d/.git/q"),
    "a worktree within": ("git worktree add -q zz; echo precious > zz/q", "zz/", "zz/q"),
    "the shared exclude": ("echo q >> $(git rev-parse --git-path info/exclude); echo precious > q", "q", "q"),
    "an own .gitignore": ("echo q >> .gitignore; echo precious > q", "q", "q"),
    "a .gitignore that hides itself": ("mkdir d; echo '*' > d/.gitignore; echo precious > d/q", "d/q", "d/q"),
    "a file of excludes": ("echo q > ../x; git config core.excludesFile $PWD/../x; echo precious > q", "q", "q"),
    "a committed .gitignore": ("echo q > .gitignore; git add .; git commit -qm x; echo precious > q", "q", "q"),
    "a name of two lines": ("echo 'q*' >> .gitignore; echo precious > 'q\n\"'", 'q\n"', 'q\n"'),
}


@pytest.mark.parametrize("how", HIDDEN)
def test_what_the_patch_does_not_hold_stays_with_the_worktree(repo: Repo, how: str) -> None:
    script, named, path = HIDDEN[how]
    changes, cwd = after(repo, script, of="sub")
    assert f"so its worktree stays: {cwd.parent} (" in changes.text and f"sub/{named}" in changes.text
    assert "all of them" not in changes.text
    repo.open(1)[0].remove()
    assert (cwd / path).read_text() == "precious\n"


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_marks_that_hide_changes_hide_none(repo: Repo, mark: str) -> None:
    script = f"git update-index {mark} a.txt sub/b.txt; echo more >> a.txt; rm sub/b.txt"
    changes, _ = after(repo, script)
    assert "2 files changed" in changes.text and "+more" in changes.text and "all of them" in changes.text
    assert repo.is_clean() and os.listdir(repo.home) == []


def test_what_a_sparse_checkout_leaves_out_is_no_change(repo: Repo) -> None:
    changes, _ = after(repo, "git sparse-checkout set --no-cone /a.txt; test ! -e sub; echo more >> a.txt")
    assert "1 file changed" in changes.text
    assert repo.is_clean()


def test_what_was_ignored_from_the_beginning_goes(repo: Repo) -> None:
    (repo.top / "sub" / ".gitignore").write_text("*.o\n!k.o\r\n")
    repo.commit()
    (repo.top / ".git" / "info").mkdir(exist_ok=True)
    (repo.top / ".git" / "info" / "exclude").write_text("mine")
    users = repo.home.parent / ".config" / "git" / "ignore"
    users.parent.mkdir(parents=True)
    users.write_text("*~")
    script = "mkdir -p built/x; touch built/x/y sub/x.o mine a~ ; git init -q built/d; echo x >> a.txt"
    changes, _ = after(repo, script)
    assert "1 file changed" in changes.text and "all of them" in changes.text and os.listdir(repo.home) == []


def test_what_a_hook_names_goes_too(repo: Repo) -> None:
    script = "git init -q deps; echo x > deps/x; echo deps2 > .gitignore; mkdir deps2; touch deps2/x; "
    repo.worktrees = hooked(repo, script + """echo '{"ignore": ["./deps/", "deps2", ".gitignore"]}'""")
    changes, _ = after(repo, "true")
    assert changes.text == "No changes in its worktree." and os.listdir(repo.home) == []


@pytest.mark.parametrize(
    ("script", "stays"),
    [
        ("true", False),
        ("echo x > m/new", True),
        ("echo x >> m/a.txt", True),
        ("cd m; git update-index --assume-unchanged a.txt; echo x >> a.txt", True),
        ("cd m; echo x >> a.txt; git stash -q", True),
        ("cd m; git checkout -qb other; git commit -q --allow-empty -m x; git checkout -q -", True),
    ],
)
def test_a_submodule_stays_only_if_it_was_worked_in(repo: Repo, script: str, stays: bool) -> None:
    other = Repo(repo.home.parent / "other")
    allowed = "git -c protocol.file.allow=always submodule --quiet"
    repo.run(f"{allowed} add {other.top} m", repo.top)
    repo.commit()
    changes, cwd = after(repo, f"{allowed} update --init; {script}")
    assert ("so its worktree stays" in changes.text) == cwd.exists() == stays


def test_a_worktree_that_its_agent_removed_is_gone_also_for_git(repo: Repo) -> None:
    for index, script in enumerate(('rm -rf "$PWD"', "rm -rf ./* .git .gitignore", 'rm -rf "${PWD%/tree}"')):
        checkout, cwd = repo.open(index)
        repo.run(script, cwd)
        changes = checkout.finish(str(repo.home.parent / "p"))
        assert (changes.text, changes.patch) == (GONE, None)
        assert repo.is_clean() and (not repo.home.exists() or os.listdir(repo.home) == [])
    changes, _ = after(repo, f'rm -rf "$PWD"; cd {repo.top}; git worktree prune --expire=now')
    assert changes.text == GONE


def test_one_that_was_moved_away_is_found_where_it_lies(repo: Repo) -> None:
    changes, cwd = after(repo, "echo precious > q; cd ..; mv tree moved")
    assert changes.text.startswith(GONE) and f"which stays: {cwd.parent} (moved)" in changes.text
    assert (cwd.parent / "moved" / "q").read_text() == "precious\n"


def test_one_that_leads_elsewhere_is_not_touched(repo: Repo) -> None:
    changes, cwd = after(repo, f"cd ..; rm -rf tree; ln -s {repo.top} tree; touch {repo.top}/new")
    assert f"could not be compared, and stays: {cwd}" in changes.text
    assert repo.git("status", "--porcelain") == "?? new\n"


def test_branches_and_worktrees_that_an_agent_makes_stay_and_are_named(repo: Repo) -> None:
    script = "git checkout -qb evil; echo more >> a.txt; git commit -qam x; git tag mark; git worktree add -q ../zz"
    changes, cwd = after(repo, script)
    assert "+more" in changes.text and not cwd.exists()
    assert (
        "[New in the repository since it began, and kept: refs/heads/evil, refs/heads/zz, refs/tags/mark]"
        in changes.text
    )
    assert f"which stays: {cwd.parent} (zz)" in changes.text and "in no branch" not in changes.text
    assert repo.git("show", "evil:a.txt") == "one\nmore\n"
    assert repo.git("status", "--porcelain", cwd=cwd.parent / "zz") == ""
    repo.open(1)[0].remove()
    assert (cwd.parent / "zz" / "a.txt").exists()


@pytest.mark.parametrize("end", ["true", 'rm -rf "$PWD"'])
def test_the_last_of_commits_without_a_branch_is_named(repo: Repo, end: str) -> None:
    checkout, cwd = repo.open()
    (cwd / "a.txt").write_text("more\n")
    repo.commit(cwd)
    last = repo.git("rev-parse", "HEAD", cwd=cwd).strip()
    repo.run(end, cwd)
    assert f"in no branch. The last one is {last};" in checkout.finish(str(repo.home.parent / "p")).text
    assert repo.is_clean() and repo.git("show", f"{last}:a.txt") == "more\n"


def test_what_lies_beside_one_of_a_killed_program_stays(repo: Repo) -> None:
    cwd = left_behind(repo)
    repo.run("git worktree add -q ../zz", cwd)
    os.utime(cwd.parent, (0, 0))
    repo.worktrees = repo.seen_at(SETTLING_S * 1000)
    repo.open(1)[0].remove()
    assert not cwd.exists() and (cwd.parent / "zz" / "a.txt").exists()
    shutil.rmtree(cwd.parent)
