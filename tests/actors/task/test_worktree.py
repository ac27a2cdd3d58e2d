"""Worktrees of subagents on real repositories: what is refused, what comes back, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from actors.session.journal import lock
from actors.task.checkout import CheckoutPlan
from actors.task.git import Git, GitFailed
from actors.task.worktree import LOCK, NO_REPOSITORY, NOT_CLEAN, SETTLING_S, Checkout, Worktrees
from actors.task.worktree_hook import LIMIT_BYTES, Halt, Hook, HookFailed
from actors.tool.table import ToolFailure


class Repo:
    """A repository with one commit, and a folder for worktrees. `now` is far ahead: what is left is old."""

    def __init__(self, root: Path) -> None:
        self.top, self.home = root / "repo", root / "worktrees"
        self.environ = {**os.environ, "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
        (self.top / "sub").mkdir(parents=True)
        (self.top / "a.txt").write_text("one\n")
        (self.top / "sub" / "b.txt").write_text("two\n")
        (self.top / ".gitignore").write_text("built/\n")
        self.git("init", "--quiet")
        self.commit()
        self.worktrees = self.seen_at(SETTLING_S * 1000)
        self.halt = Halt()

    def seen_at(self, ahead: float) -> Worktrees:
        return Worktrees(str(self.home), Git(self.environ), lambda: os.stat(self.top).st_mtime + ahead)

    def git(self, *words: str, cwd: Path | None = None) -> str:
        identity = ("-c", "user.name=x", "-c", "user.email=x@x")
        run = ["git", *identity, *words]
        return subprocess.run(
            run, cwd=cwd or self.top, env=self.environ, check=True, stdout=subprocess.PIPE
        ).stdout.decode()

    def run(self, script: str, cwd: Path) -> None:
        """As an agent would, in a shell that ends at the first failure."""
        people = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        subprocess.run(
            ["sh", "-ec", script], cwd=cwd, env={**self.environ, **people}, check=True, stderr=subprocess.PIPE
        )

    def commit(self, cwd: Path | None = None) -> None:
        self.git("add", "--all", cwd=cwd)
        self.git("commit", "--quiet", "-m", "x", cwd=cwd)

    def open(self, index: int = 0, of: Path | None = None) -> tuple[Checkout, Path]:
        root = self.worktrees.root(str(of or self.top))
        plan = CheckoutPlan(root, os.path.join(root.home, f"0123abcd-{index}"))
        return self.worktrees.open(plan, self.halt), Path(plan.cwd)

    def is_clean(self) -> bool:
        """As if there had never been a worktree."""
        records = self.top / ".git" / "worktrees"
        known = self.git("worktree", "list").splitlines()
        return (
            not self.git("status", "--porcelain")
            and len(known) == 1
            and not (records.exists() and any(records.iterdir()))
        )


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def refusal(repo: Repo, cwd: Path) -> str:
    with pytest.raises(ToolFailure) as refused:
        repo.worktrees.root(str(cwd))
    return str(refused.value)


def test_a_tree_that_is_not_clean_is_refused_in_the_words_of_the_specification() -> None:  # 3.3
    assert NOT_CLEAN == "worktree isolation requires a clean git working tree. Commit or stash changes first."


def test_only_a_clean_working_tree_with_a_commit_is_taken(repo: Repo, tmp_path: Path) -> None:
    assert refusal(repo, tmp_path) == NO_REPOSITORY.format(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    repo.git("init", "--quiet", cwd=empty)
    assert refusal(repo, empty) == NO_REPOSITORY.format(empty)
    (repo.top / "new").write_text("x")
    assert refusal(repo, repo.top / "sub") == NOT_CLEAN
    (repo.top / "new").unlink()
    (repo.top / "a.txt").write_text("changed\n")
    assert refusal(repo, repo.top) == NOT_CLEAN
    repo.git("add", "--all")
    assert refusal(repo, repo.top) == NOT_CLEAN
    repo.commit()
    assert repo.worktrees.root(str(repo.top / "sub")).prefix == "sub/"


def test_without_git_that_is_told(repo: Repo) -> None:
    repo.environ["PATH"] = "/nowhere"
    with pytest.raises(ToolFailure, match="git is not installed"):
        repo.seen_at(0).root(str(repo.top))


def test_what_git_says_besides_is_told(repo: Repo, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    repo.git("init", "--quiet", "--bare", str(bare))
    assert refusal(repo, bare) == "worktree isolation: git rev-parse: fatal: this operation must be run in a work tree"
    assert refusal(repo, tmp_path / "gone") == f"worktree isolation: {tmp_path}/gone is not there"


def test_variables_that_lead_elsewhere_are_not_handed_on(repo: Repo) -> None:
    repo.environ |= {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index"}
    assert repo.seen_at(0).root(str(repo.top)).repository == str(repo.top)


def test_what_was_changed_comes_back_and_applies(repo: Repo, tmp_path: Path) -> None:
    checkout, cwd = repo.open(of=repo.top / "sub")
    assert cwd.name == "sub" and (cwd / "b.txt").read_text() == "two\n"
    (cwd / "b.txt").write_text("two\nthree\n")
    (cwd / "new.bin").write_bytes(bytes(range(256)))
    (cwd.parent / "a.txt").unlink()
    (cwd.parent / "built").mkdir()
    (cwd.parent / "built" / "x").write_text("ignored")
    assert not repo.git("status", "--porcelain")  # the project itself is as it was
    patch = tmp_path / "kept" / "changes.patch"
    changes = checkout.finish(str(patch))
    assert changes.patch == str(patch) and patch.stat().st_mode & 0o777 == 0o600
    assert "3 files changed" in changes.text and "+three" in changes.text and str(patch) in changes.text
    assert "ignored" not in changes.text
    assert repo.is_clean() and os.listdir(repo.home) == []
    repo.git("apply", str(patch))
    assert (repo.top / "sub" / "new.bin").read_bytes() == bytes(range(256))
    assert not (repo.top / "a.txt").exists()


def test_commits_of_the_agent_are_changes_too_and_a_large_one_is_only_in_the_file(repo: Repo, tmp_path: Path) -> None:
    checkout, cwd = repo.open()
    (cwd / "a.txt").write_text("".join(f"line {number}\n" for number in range(5000)))
    repo.commit(cwd)
    changes = checkout.finish(str(tmp_path / "p"))
    assert "1 file changed" in changes.text and "line 4000" not in changes.text and len(changes.text) < 1000
    assert "line 4000" in (tmp_path / "p").read_text()
    assert repo.is_clean()


def test_without_a_change_there_is_no_patch(repo: Repo, tmp_path: Path) -> None:
    checkout, _ = repo.open()
    changes = checkout.finish(str(tmp_path / "p"))
    assert (changes.text, changes.patch) == ("No changes in its worktree.", None)
    assert not (tmp_path / "p").exists() and repo.is_clean()


def test_each_has_its_own_and_one_that_ends_leaves_the_others(repo: Repo, tmp_path: Path) -> None:
    opened = [repo.open(index) for index in range(3)]
    for number, (_, cwd) in enumerate(opened):
        (cwd / "a.txt").write_text(f"{number}\n")
    told = [checkout.finish(str(tmp_path / f"p{number}")).text for number, (checkout, _) in enumerate(opened)]
    assert all(f"+{number}" in text for number, text in enumerate(told))
    assert repo.is_clean()


def test_work_that_cannot_be_compared_stays_and_is_never_pruned(repo: Repo, tmp_path: Path) -> None:
    checkout, cwd = repo.open()
    (cwd / "a.txt").write_text("work\n")
    (cwd / ".git").unlink()
    changes = checkout.finish(str(tmp_path / "p"))
    assert changes.patch is None and f"stays: {cwd}" in changes.text
    repo.open(1)[0].remove()
    assert (cwd / "a.txt").read_text() == "work\n"


def test_one_that_is_taken_or_cannot_be_made_leaves_nothing(repo: Repo) -> None:
    checkout, _ = repo.open()
    with pytest.raises(FileExistsError):
        repo.open()
    checkout.remove()
    root = repo.worktrees.root(str(repo.top))
    (repo.top / ".git" / "worktrees").write_text("in the way")
    with pytest.raises(GitFailed, match="git worktree: "):
        repo.worktrees.open(CheckoutPlan(root, os.path.join(root.home, "0123abcd-7")), repo.halt)
    assert os.listdir(repo.home) == []


def left_behind(repo: Repo) -> Path:
    """A worktree of a program that was killed: the lock is free."""
    checkout, cwd = repo.open()
    os.close(checkout.lock)
    return cwd


def test_what_a_killed_program_left_goes_with_the_next_one(repo: Repo) -> None:
    cwd = left_behind(repo)
    checkout, _ = repo.open(1)
    assert not cwd.parent.exists()
    checkout.remove()
    assert repo.is_clean()


def test_what_is_in_use_or_young_or_not_ours_stays(repo: Repo) -> None:
    cwd = left_behind(repo)
    fd = os.open(cwd.parent / LOCK, os.O_RDWR)
    assert lock(fd)
    others = [repo.home / name for name in ("notes", "0123abcd-x", "0123abcd-1.patch", "00123abcd-1")]
    for other in others:
        other.mkdir()
        (other / LOCK).write_text("")
    repo.open(1)[0].remove()
    assert cwd.exists()
    os.close(fd)
    repo.worktrees = repo.seen_at(0)
    repo.open(2)[0].remove()
    assert cwd.exists()
    repo.worktrees = repo.seen_at(SETTLING_S * 1000)
    repo.open(3)[0].remove()
    assert not cwd.exists() and all(other.exists() for other in others)


def test_patches_that_lie_beside_the_worktrees_go_after_a_week(repo: Repo) -> None:
    repo.home.mkdir()
    patches = [repo.home / f"{number}123abcd-0.patch" for number in range(2)]
    for patch in patches:
        patch.write_text("x")
    os.utime(patches[0], (0, 0))
    repo.worktrees = repo.seen_at(0)
    repo.open()[0].remove()
    assert [patch.exists() for patch in patches] == [False, True]


def test_a_record_that_does_not_point_back_is_left_alone(repo: Repo, tmp_path: Path) -> None:
    victim = tmp_path / "worktrees-of-others" / "worktrees" / "x"
    victim.mkdir(parents=True)
    (victim / "gitdir").write_text("/elsewhere/.git\n")
    cwd = left_behind(repo)
    (cwd / ".git").write_text(f"gitdir: {victim}\n")
    repo.open(1)[0].remove()
    assert not cwd.exists() and (victim / "gitdir").exists()


def test_a_worktree_of_a_worktree(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    checkout, cwd = repo.open(of=tmp_path / "linked")
    (cwd / "a.txt").write_text("x\n")
    assert "1 file changed" in checkout.finish(str(tmp_path / "p")).text
    assert len(repo.git("worktree", "list").splitlines()) == 2


def test_hooks_of_the_repository_do_not_run(repo: Repo, tmp_path: Path) -> None:
    hook = repo.top / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    repo.open()[0].remove()
    assert not (tmp_path / "ran").exists()


def hooked(repo: Repo, script: str, timeout_ms: int = 30_000) -> Worktrees:
    """The hook lies in the repository, unknown to git."""
    path = repo.top / ".git" / "prepare"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    hook = Hook(".git/prepare", timeout_ms)
    return Worktrees(str(repo.home), Git(repo.environ), lambda: 0.0, hook)


def test_a_hook_prepares_the_worktree_and_what_it_brings_is_no_change(repo: Repo, tmp_path: Path) -> None:
    script = f"cat > {tmp_path}/given; pwd > {tmp_path}/where; mkdir deps; touch deps/x 'odd *'; "
    repo.worktrees = hooked(repo, script + """echo '{"ignore": ["deps", "odd *"], "more": 1}'""")
    checkout, cwd = repo.open(of=repo.top / "sub")
    tree = cwd.parent
    assert json.loads((tmp_path / "given").read_text()) == {
        "repository": str(repo.top),
        "worktree": str(tree),
        "cwd": str(cwd),
        "commit": repo.git("rev-parse", "HEAD").strip(),
    }
    assert (tmp_path / "where").read_text().strip() == str(tree)
    assert (tree / "deps" / "x").exists()
    (tree / "odd one").write_text("x")
    changes = checkout.finish(str(tmp_path / "p"))
    assert "odd one" in changes.text and "1 file changed" in changes.text
    assert repo.is_clean()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo no >&2; exit 3", "it ended with 3: no"),
        ("echo hello", "it must print a JSON object, got 'hello\\n'"),
        ("echo '[]'", "it must print a JSON object, got '[]\\n'"),
        ("true", "it must print a JSON object, got ''"),
        ("""echo '{"ignore": ["../x"]}'""", "ignore must be an array of paths in the worktree"),
        ("""echo '{"ignore": ["/x"]}'""", "ignore must be an array of paths in the worktree"),
        ("""echo '{"ignore": "x"}'""", "ignore must be an array of paths in the worktree"),
        ("sleep 349 & wait", "it did not end within 0.3 seconds"),
        ("yes", f"it printed more than {LIMIT_BYTES} bytes"),
        ("yes >&2", f"it printed more than {LIMIT_BYTES} bytes"),
    ],
)
def test_a_worktree_that_a_hook_cannot_prepare_is_not_used(repo: Repo, script: str, told: str) -> None:
    repo.worktrees = hooked(repo, script, 300 if "sleep" in script else 30_000)
    with pytest.raises(HookFailed) as failed:
        repo.open()
    assert str(failed.value) == f"worktree hook .git/prepare: {told}"
    assert repo.is_clean() and os.listdir(repo.home) == []


@pytest.mark.parametrize("script", ["sleep 349", "trap '' TERM; sleep 349 & wait", "setsid sleep 349 & wait"])
def test_a_hook_ends_when_nobody_wants_its_worktree_any_more(repo: Repo, tmp_path: Path, script: str) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    repo.worktrees = hooked(repo, f"echo $$ > {started}; {script}")
    stopper = threading.Thread(target=lambda: (started.read_text(), repo.halt.call()))
    stopper.start()
    with pytest.raises(HookFailed, match="it was stopped"):
        repo.open()
    stopper.join()
    assert repo.is_clean() and os.listdir(repo.home) == []


def test_a_hook_is_over_when_it_has_ended_whatever_it_has_left(repo: Repo, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    repo.worktrees = hooked(repo, f"sleep 349 & echo $! > {pid}; echo '{{}}'")
    checkout, _ = repo.open()
    os.kill(int(pid.read_text()), signal.SIGKILL)  # it was there
    checkout.remove()


def test_a_hook_that_is_not_there_is_told(repo: Repo) -> None:
    repo.worktrees = hooked(repo, "true")
    (repo.top / ".git" / "prepare").unlink()
    with pytest.raises(HookFailed, match=r"^worktree hook .git/prepare: No such file or directory$"):
        repo.open()
    assert repo.is_clean()


def test_the_plan_lies_in_the_folder_of_the_call(repo: Repo) -> None:
    root: Any = repo.worktrees.root(str(repo.top / "sub"))
    assert CheckoutPlan(root, "/w/r-1").cwd == "/w/r-1/tree/sub"
