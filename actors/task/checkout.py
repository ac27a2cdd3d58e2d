"""What is known of the worktree of a subagent: from which commit, where, and what came of it.

Pure. Source: `tasks.md` 3.3.
"""

from __future__ import annotations

import os

from msgspec import Struct

TREE = "tree"


class WorktreeRoot(Struct, frozen=True):
    """A clean working tree: `repository` is its top folder, `base` the commit, `shared` the folder in it that the call
    is about and `prefix` the way there; `home` is where worktrees lie. `excludes` are the lines by which git
    ignored files then, besides those of `.gitignore`."""

    repository: str
    base: str
    shared: str
    prefix: str
    home: str
    excludes: bytes = b""


class CheckoutPlan(Struct, frozen=True):
    """One worktree that is to be made, in `folder`."""

    root: WorktreeRoot
    folder: str

    @property
    def tree(self) -> str:
        return os.path.join(self.folder, TREE)

    @property
    def cwd(self) -> str:
        """Where its agent works."""
        return os.path.normpath(os.path.join(self.tree, self.root.prefix))


class Changes(Struct, frozen=True):
    """What an agent has changed: a text for its parent, and the file with the whole difference, if there is any."""

    text: str
    patch: str | None = None
