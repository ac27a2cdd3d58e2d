"""A git worktree for each subagent of a call that asks for it: made before the child begins, compared and removed once
when nothing of the child is left.

Blocking: for pumps. Owns the folder in which worktrees lie. A lock shows that one of them is in use, so that what a
program left that was killed is removed later, by whoever makes the next one. Work that could not be compared is never
removed. Source: `tasks.md` 3.3.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator

from actors.session.journal import lock
from actors.task.checkout import TREE, Changes, CheckoutPlan, WorktreeRoot
from actors.task.git import Git, GitFailed
from actors.task.housekeeping import ARTIFACTS_S
from actors.task.worktree_hook import Hook, run_hook
from actors.tool.table import ToolFailure

NO_REPOSITORY = "worktree isolation requires a git repository with a commit, and {} is in none."
NOT_CLEAN = "worktree isolation requires a clean git working tree. Commit or stash changes first."
NAME = r"[0-9a-f]{8}-\d+"
LOCK = "lock"
SETTLING_S = 600
"""So long one that is being made is left alone: it is not locked from its first moment on."""
SHOWN_BYTES = 8192
_NONE = ("not a git repository", "Needed a single revision")
_DIFF = ("--cached", "--no-color", "--no-ext-diff", "--no-textconv")


class Worktrees:
    """`home` is a folder of the user's own. `now` is seconds since 1970, like the times of files. `hook` prepares what
    was made."""

    def __init__(self, home: str, git: Git, now: Callable[[], float], hook: Hook | None = None) -> None:
        self._hook = hook
        self._home = home
        self._git = git
        self._now = now

    def root(self, cwd: str) -> WorktreeRoot:
        """Raises `ToolFailure`."""
        try:
            top, prefix = self._git.run(cwd, "rev-parse", "--show-toplevel", "--show-prefix").split("\n")[:2]
            base = self._git.run(cwd, "rev-parse", "--verify", "HEAD^{commit}").strip()
            is_clean = not self._git.run(top, "status", "--porcelain")
        except GitFailed as error:
            is_none = any(sign in str(error) for sign in _NONE)
            raise ToolFailure(NO_REPOSITORY.format(cwd) if is_none else f"worktree isolation: {error}") from None
        if not is_clean:
            raise ToolFailure(NOT_CLEAN)
        return WorktreeRoot(top, base, cwd, prefix, self._home)

    def open(self, plan: CheckoutPlan) -> Checkout:
        """Makes the worktree. Raises `OSError`, `GitFailed` or `HookFailed`, and then there is none."""
        self._prune()
        self._forget_patches()
        os.makedirs(self._home, mode=0o700, exist_ok=True)
        os.mkdir(plan.folder, 0o700)
        checkout = Checkout(plan, self._git, os.open(os.path.join(plan.folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600))
        try:
            lock(checkout.lock)
            root = plan.root
            self._add(root.repository, plan.tree, root.base)
            os.makedirs(plan.cwd, exist_ok=True)
            if self._hook is not None:
                checkout.ignored = run_hook(self._hook, plan, self._git.inherited)
        except BaseException:
            checkout.remove()
            raise
        return checkout

    def _add(self, repository: str, tree: str, base: str) -> None:
        """Tried again once: git removes its folder of worktrees with the last one, and may do so just now."""
        words = ("worktree", "add", "--detach", "--quiet", tree, base)
        try:
            self._git.run(repository, *words)
        except GitFailed:
            _remove_tree(self._git, tree)
            self._git.run(repository, *words)

    def _prune(self) -> None:
        """Worktrees of programs that are gone. Whatever cannot be looked at or removed stays for the next time."""
        for folder in self._settled():
            with contextlib.suppress(OSError):
                fd = os.open(os.path.join(folder, LOCK), os.O_RDWR)
                try:
                    is_left = lock(fd)
                    if is_left:
                        _remove_tree(self._git, os.path.join(folder, TREE))
                finally:
                    os.close(fd)
                if is_left:
                    shutil.rmtree(folder)

    def _forget_patches(self) -> None:
        """Those of sessions in memory, which lie here."""
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._home):
                is_one = re.fullmatch(NAME + r"\.patch", entry.name) and entry.is_file(follow_symlinks=False)
                if is_one and self._now() - entry.stat().st_mtime > ARTIFACTS_S:
                    os.unlink(entry.path)

    def _settled(self) -> Iterator[str]:
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._home):
                is_one = re.fullmatch(NAME, entry.name) and entry.is_dir(follow_symlinks=False)
                if is_one and self._now() - entry.stat().st_mtime > SETTLING_S:
                    yield entry.path


class Checkout:
    """A worktree that is there. `lock` is the descriptor of its lock file, which is held; `ignored` are paths in it
    that are nobody's changes."""

    def __init__(self, plan: CheckoutPlan, git: Git, lock: int) -> None:
        self._plan = plan
        self._git = git
        self.lock = lock
        self.ignored: tuple[str, ...] = ()

    def finish(self, patch: str) -> Changes:
        """Compares it with the commit that it began with, writes the difference to `patch`, and removes it."""
        try:
            changes = self._compared(patch)
        except (OSError, GitFailed) as error:
            self._let_go(is_kept=True)
            return Changes(f"[Its worktree could not be compared, and stays: {self._plan.tree} ({error})]")
        left = self.remove()
        return changes if left is None else Changes(f"{changes.text}\n[{left}]", changes.patch)

    def remove(self) -> str | None:
        """What stands in the way, if something does."""
        plan = self._plan
        try:
            _remove_tree(self._git, plan.tree)
            self._let_go(is_kept=False)
            shutil.rmtree(plan.folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"Its worktree could not be removed: {error.filename}: {error.strerror}"
        return None

    def _let_go(self, *, is_kept: bool) -> None:
        """Without its lock file nobody takes it for one that a program left."""
        os.close(self.lock)
        with contextlib.suppress(OSError):
            if is_kept:
                os.unlink(os.path.join(self._plan.folder, LOCK))

    def _compared(self, patch: str) -> Changes:
        base, tree = self._plan.root.base, self._plan.tree
        others = (f":(exclude,literal){path}" for path in self.ignored)
        self._git.run(tree, "add", "--all", "--", ".", *others)
        summary = self._git.run(tree, "diff", *_DIFF, "--stat=100", "--stat-count=50", base).rstrip()
        if not summary:
            return Changes("No changes in its worktree.")
        os.makedirs(os.path.dirname(patch), mode=0o700, exist_ok=True)
        with open(os.open(patch, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file:
            self._git.run(tree, "diff", *_DIFF, "--binary", base, to=file)
            file.seek(0)
            whole = file.read(SHOWN_BYTES + 1)
        parts = [f"Changes in its worktree, all of them in {patch} (for git apply):", summary]
        if len(whole) <= SHOWN_BYTES:
            parts.append(whole.decode(errors="replace").rstrip())
        return Changes("\n\n".join(parts), patch)


def _remove_tree(git: Git, tree: str) -> None:
    """By git, which forgets it then; what git refuses is removed nevertheless. Raises `OSError`."""
    kept_by_git = _record_of(tree)
    if kept_by_git is not None:
        with contextlib.suppress(GitFailed):
            git.run(os.path.dirname(tree), "--git-dir", kept_by_git, "worktree", "remove", "--force", "--force", tree)
    if os.path.lexists(tree):
        shutil.rmtree(tree)
    if kept_by_git is not None and os.path.isdir(kept_by_git):
        shutil.rmtree(kept_by_git)


def _record_of(tree: str) -> str | None:
    """The folder `.git/worktrees/NAME` of its repository, which the file `.git` in the worktree names."""
    try:
        named = _text(os.path.join(tree, ".git")).removeprefix("gitdir: ")
        points_back = os.path.samefile(os.path.dirname(_text(os.path.join(named, "gitdir"))), tree)
    except OSError:
        return None
    return named if points_back else None


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().strip()
