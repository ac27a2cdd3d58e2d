"""What a repository knows of one of its worktrees: the record of it, and the branches and commits that were made there.

Blocking: for pumps. Removes nothing of a repository but a record that points back to the worktree in question.
Source: `tasks.md` 3.3.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from actors.task.git import Git, GitFailed

SHOWN_NAMES = 10
_REFS = ("for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags", "refs/stash")


def remove_tree(git: Git, tree: str, record: str | None = None) -> None:
    """By git, which forgets it then; what git refuses is removed nevertheless. `record` is the one that it had when it
    was made. Raises `OSError`."""
    kept_by_git = record_of(tree)
    if kept_by_git is not None:
        with contextlib.suppress(GitFailed):
            git.run(os.path.dirname(tree), "--git-dir", kept_by_git, "worktree", "remove", "--force", "--force", tree)
    if os.path.lexists(tree):
        shutil.rmtree(tree)
    for known in {kept_by_git, record} - {None}:
        if known is not None and _is_about(known, tree):
            shutil.rmtree(known)


def record_of(tree: str) -> str | None:
    """The folder `.git/worktrees/NAME` of its repository, which the file `.git` in the worktree names."""
    try:
        named = _text(os.path.join(tree, ".git")).removeprefix("gitdir: ")
        points_back = os.path.samefile(os.path.dirname(_text(os.path.join(named, "gitdir"))), tree)
    except OSError:
        return None
    return named if points_back else None


def references(git: Git, repository: str) -> frozenset[str]:
    """Full names of its branches and tags, and the stash. Raises `GitFailed`."""
    return frozenset(git.run(repository, *_REFS).splitlines())


def made_since(git: Git, repository: str, before: frozenset[str]) -> Iterator[str]:
    """One line, if there are references that were not there `before`. Raises `GitFailed`."""
    new = sorted(references(git, repository) - before)
    if new:
        yield f"New in the repository since it began, and kept: {named(new)}"


def loose_commits(git: Git, repository: str, record: str, base: str) -> Iterator[str]:
    """One line, if commits of the worktree end with it, since no reference leads to them. Raises `GitFailed`."""
    if not os.path.isdir(record):
        return
    head = git.run(repository, "--git-dir", record, "rev-parse", "--verify", "HEAD^{commit}").strip()
    if head != base and not git.run(repository, "for-each-ref", "--count=1", "--contains", head):
        yield f"Its commits are in no branch. The last one is {head}; git keeps it until it cleans up."


def named(names: list[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def _is_about(record: str, tree: str) -> bool:
    try:
        there = os.path.dirname(_text(os.path.join(record, "gitdir")))
    except OSError:
        return False
    return os.path.realpath(there) == os.path.realpath(tree)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().strip()
