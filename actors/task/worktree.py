"""A git worktree for each subagent of a call that asks for it: made before the child begins, compared and removed once
when nothing of the child is left.

Blocking: for pumps. Owns the folder in which worktrees lie. A lock shows that one of them is in use, so that what a
program left that was killed is removed later, by whoever makes the next one. Work that could not be compared, or that
the patch does not hold, is never removed. Source: `tasks.md` 3.3.
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
from actors.task.unheld import RULES, excludes, unheld, unhide
from actors.task.worktree_hook import Halt, Hook, run_hook
from actors.task.worktree_record import loose_commits, made_since, named, record_of, references, remove_tree
from actors.tool.table import ToolFailure

NO_REPOSITORY = "worktree isolation requires a git repository with a commit, and {} is in none."
NOT_CLEAN = "worktree isolation requires a clean git working tree. Commit or stash changes first."
NAME = r"[0-9a-f]{8}-\d+"
LOCK = "lock"
SETTLING_S = 600
"""So long one that is being made is left alone: it is not locked from its first moment on."""
SHOWN_BYTES = 8192
_NONE = ("not a git repository", "Needed a single revision")
_DIFF = ("--cached", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=none")
_ADDED = (0, 1)
"""It ends with 1 after its work if a path that is left out is one that it ignores anyway."""
GONE = "Its worktree is gone: its agent has removed or moved it. There was nothing to compare."


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
            ignored = excludes(self._git, top)
        except GitFailed as error:
            is_none = any(sign in str(error) for sign in _NONE)
            raise ToolFailure(NO_REPOSITORY.format(cwd) if is_none else f"worktree isolation: {error}") from None
        if not is_clean:
            raise ToolFailure(NOT_CLEAN)
        return WorktreeRoot(top, base, cwd, prefix, self._home, ignored)

    def open(self, plan: CheckoutPlan, halt: Halt) -> Checkout:
        """Makes the worktree. Raises `OSError`, `GitFailed` or `HookFailed`, and then there is none. `halt` ends the
        hook."""
        self._prune()
        self._forget_patches()
        os.makedirs(self._home, mode=0o700, exist_ok=True)
        os.mkdir(plan.folder, 0o700)
        checkout = Checkout(plan, self._git, os.open(os.path.join(plan.folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600))
        try:
            lock(checkout.lock)
            root = plan.root
            self._add(root.repository, plan.tree, root.base)
            checkout.record = record_of(plan.tree) or ""
            checkout.references = references(self._git, root.repository)
            os.makedirs(plan.cwd, exist_ok=True)
            if self._hook is not None:
                checkout.ignored = run_hook(self._hook, plan, self._git.inherited, halt)
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
            remove_tree(self._git, tree)
            self._git.run(repository, *words)

    def _prune(self) -> None:
        """Worktrees of programs that are gone. Whatever cannot be looked at or removed stays for the next time."""
        for folder in self._settled():
            with contextlib.suppress(OSError):
                fd = os.open(os.path.join(folder, LOCK), os.O_RDWR)
                try:
                    is_left = lock(fd)
                    if is_left:
                        remove_tree(self._git, os.path.join(folder, TREE))
                finally:
                    os.close(fd)
                if is_left:
                    shutil.rmtree(os.path.join(folder, RULES), ignore_errors=True)
                    os.unlink(os.path.join(folder, LOCK))
                    os.rmdir(folder)

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
    that are nobody's changes; `record` is what its repository keeps of it, and `references` what that had before."""

    def __init__(self, plan: CheckoutPlan, git: Git, lock: int) -> None:
        self._plan = plan
        self._git = git
        self.lock = lock
        self.ignored: tuple[str, ...] = ()
        self.record = ""
        self.references: frozenset[str] = frozenset()

    def finish(self, patch: str) -> Changes:
        """Compares it with the commit that it began with, writes the difference to `patch`, and removes it if that
        holds everything."""
        plan = self._plan
        try:
            if self._is_gone():
                changes, stays = Changes(GONE), self._is_moved()
            else:
                changes, stays = self._compared(patch)
            notes = list(made_since(self._git, plan.root.repository, self.references))
            if not stays:
                notes += loose_commits(self._git, plan.root.repository, self.record, plan.root.base)
        except (OSError, GitFailed) as error:
            self._let_go()
            return Changes(f"[Its worktree could not be compared, and stays: {plan.tree} ({error})]")
        if stays:
            self._let_go()
        notes.insert(0, stays or self.remove() or "")
        return Changes("\n".join([changes.text, *(f"[{note}]" for note in notes if note)]), changes.patch)

    def remove(self) -> str | None:
        """What stands in the way, or stays since it is not the worktree."""
        plan = self._plan
        try:
            remove_tree(self._git, plan.tree, self.record or None)
            self._let_go()
            beside = os.listdir(plan.folder)
            if beside:
                return _beside(plan, beside)
            os.rmdir(plan.folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"Its worktree could not be removed: {error.filename}: {error.strerror}"
        return None

    def _let_go(self) -> None:
        """Without its lock file nobody takes it for one that a program left."""
        os.close(self.lock)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._plan.folder, LOCK))

    def _is_gone(self) -> bool:
        tree = self._plan.tree
        return not os.path.lexists(tree) or (os.path.isdir(tree) and not os.path.islink(tree) and not os.listdir(tree))

    def _is_moved(self) -> str:
        """Its record stays then, for it may be the one of what lies there now."""
        beside = sorted({*_listed(self._plan.folder)} - {LOCK, TREE})
        return _beside(self._plan, beside) if beside else ""

    def _compared(self, patch: str) -> tuple[Changes, str]:
        """What was changed, and why the worktree has to stay."""
        base, tree = self._plan.root.base, self._plan.tree
        if os.path.islink(tree) or record_of(tree) != self.record:
            raise GitFailed("it is no longer the worktree that was made")
        unhide(self._git, tree)
        others = (f":(exclude,literal){path}" for path in self.ignored)
        self._git.run(tree, "add", "--all", "--", ".", *others, fine=_ADDED)
        left = unheld(self._git, self._plan, self.ignored)
        stays = f"Not all that was changed is in a patch, so its worktree stays: {tree} ({named(left)})" if left else ""
        summary = self._git.run(tree, "diff", *_DIFF, "--stat=100", "--stat-count=50", base).rstrip()
        if not summary:
            return Changes(
                "No changes that git sees in its worktree." if left else "No changes in its worktree."
            ), stays
        whole = self._written(patch)
        what = "Changes in its worktree, some of them" if left else "Changes in its worktree, all of them"
        parts = [f"{what} in {patch} (for git apply):", summary]
        if len(whole) <= SHOWN_BYTES:
            parts.append(whole.decode(errors="replace").rstrip())
        return Changes("\n\n".join(parts), patch), stays

    def _written(self, patch: str) -> bytes:
        """The beginning of it."""
        os.makedirs(os.path.dirname(patch), mode=0o700, exist_ok=True)
        with open(os.open(patch, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file:
            self._git.run(self._plan.tree, "diff", *_DIFF, "--binary", self._plan.root.base, to=file)
            file.seek(0)
            return file.read(SHOWN_BYTES + 1)


def _beside(plan: CheckoutPlan, names: list[str]) -> str:
    return f"Beside its worktree something was left, which stays: {plan.folder} ({named(sorted(names))})"


def _listed(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []
