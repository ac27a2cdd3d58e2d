"""What lies in a worktree and is not in its index: nested repositories, and files that an agent has hidden from git.

Blocking: for pumps. What the repository ignored before the agent began does not count. Whatever is in doubt does: a
worktree that is kept for nothing costs disk, one that is removed costs work. Source: `tasks.md` 3.3.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator

from actors.task.checkout import CheckoutPlan
from actors.task.git import Git, GitFailed

RULES = "rules"
_LINK = "160000"


def excludes(git: Git, top: str) -> bytes:
    """The lines that hide files besides `.gitignore`, as they stand now: the user's, then the repository's. Raises
    `GitFailed`."""
    environ = git.inherited
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", ""), ".config")
    usual = os.path.join(config, "git", "ignore")
    users = git.run(top, "config", "--type=path", "--default", usual, "--get", "core.excludesFile").rstrip("\n")
    own = git.run(top, "rev-parse", "--git-path", "info/exclude").rstrip("\n")
    return b"\n".join(_content(os.path.join(top, path)) for path in (users, own))


def unhide(git: Git, tree: str) -> None:
    """Takes the marks away by which git passes over tracked files, so that it sees what they are now. Those that a
    sparse checkout leaves out stay out. Raises `GitFailed`."""
    marked = [(entry[0], entry[2:]) for entry in _entries(git.run(tree, "ls-files", "-v", "-z"))]
    _mark(git, tree, "--no-assume-unchanged", [path for tag, path in marked if tag.islower()])
    skipped = [path for tag, path in marked if tag in "Ss"]
    if (
        skipped
        and git.run(tree, "config", "--type=bool", "--default=false", "--get", "core.sparseCheckout").strip() == "true"
    ):
        skipped = [path for path in skipped if os.path.lexists(os.path.join(tree, path))]
    _mark(git, tree, "--no-skip-worktree", skipped)


def unheld(git: Git, plan: CheckoutPlan, others: Iterable[str]) -> list[str]:
    """Files that the index does not hold as they are, and folders (with a slash) that are repositories of their own.
    `others` are paths that are nobody's changes. Raises `GitFailed` or `OSError`."""
    tree = plan.tree
    links, files = _index(git, tree)
    untouched = [path for path, commit in links.items() if _is_untouched(git, os.path.join(tree, path), commit)]
    skipped = {".git", *map(os.path.normpath, others), *untouched}
    stale = set(_entries(git.run(tree, "diff-files", "--name-only", "-z", "--ignore-submodules=all")))
    found = [path for path in _files(tree, skipped) if path not in files or path in stale]
    ignored = _ignored(git, plan, [path for path in found if path not in files])
    return sorted({_place(path, links) for path in found if path not in ignored})


def _mark(git: Git, tree: str, how: str, paths: list[str]) -> None:
    if paths:
        git.run(tree, "update-index", how, "-z", "--stdin", given=_joined(paths))


def _index(git: Git, tree: str) -> tuple[dict[str, str], set[str]]:
    """The commits of nested repositories by their paths, and all other paths."""
    links: dict[str, str] = {}
    files: set[str] = set()
    for entry in _entries(git.run(tree, "ls-files", "--stage", "-z")):
        facts, path = entry.split("\t", 1)
        mode, name, _ = facts.split(" ")
        if mode == _LINK:
            links[path] = name
        else:
            files.add(path)
    return links, files


def _is_untouched(git: Git, folder: str, commit: str) -> bool:
    """A submodule as its remote has it."""
    try:
        return (
            git.run(folder, "rev-parse", "HEAD").strip() == commit
            and not git.run(folder, "status", "--porcelain", "--ignored", "--ignore-submodules=none")
            and not any(entry[0] != "H" for entry in _entries(git.run(folder, "ls-files", "-v", "-z")))
            and not git.run(folder, "rev-list", "--max-count=1", "HEAD", "--all", "--not", "--remotes")
        )
    except GitFailed:
        return False


def _files(tree: str, skipped: set[str]) -> Iterator[str]:
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(os.path.join(tree, folder)) as entries:
            for entry in entries:
                path = folder + entry.name
                if path in skipped:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path + "/")
                elif entry.is_symlink() or entry.is_file():
                    yield path


def _place(path: str, links: Iterable[str]) -> str:
    """The nested repository that it lies in, or itself."""
    within = [link for link in links if path.startswith(link + "/")]
    outside, git_folder, _ = f"/{path}".partition("/.git/")
    if within:
        return within[0] + "/"
    return f"{outside}/".lstrip("/") if git_folder else path


def _ignored(git: Git, plan: CheckoutPlan, paths: list[str]) -> set[str]:
    """Those that were ignored when the call was planned: an empty repository is asked that has the rules of then."""
    if not paths:
        return set()
    rules = os.path.join(plan.folder, RULES)
    os.mkdir(rules, 0o700)
    try:
        git.run(rules, "init", "--quiet", "--template=")
        _write(os.path.join(rules, ".git", "info", "exclude"), plan.root.excludes)
        for path, content in _committed_rules(git, plan):
            _write(os.path.join(rules, path), content)
        words = ("-c", f"core.excludesFile={os.devnull}", "check-ignore", "--no-index", "-z", "--stdin")
        return set(_entries(git.run(rules, *words, given=_joined(paths), fine=(0, 1))))
    finally:
        shutil.rmtree(rules, ignore_errors=True)


def _committed_rules(git: Git, plan: CheckoutPlan) -> Iterator[tuple[str, bytes]]:
    """The path and content of each `.gitignore`."""
    names: dict[str, str] = {}
    for entry in _entries(git.run(plan.tree, "ls-tree", "-r", "-z", "--full-tree", plan.root.base)):
        facts, path = entry.split("\t", 1)
        if os.path.basename(path) == ".gitignore" and facts.startswith("100"):
            names[path] = facts.split(" ")[2]
    told = git.run(plan.tree, "cat-file", "--batch", given="".join(f"{name}\n" for name in names.values()).encode())
    rest = told.encode(errors="surrogateescape")
    for path in names:
        head, rest = rest.split(b"\n", 1)
        size = int(head.split(b" ")[2])
        yield path, rest[:size]
        rest = rest[size + 1 :]


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _write(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def _entries(told: str) -> list[str]:
    return [entry for entry in told.split("\0") if entry]


def _joined(paths: list[str]) -> bytes:
    return "".join(f"{path}\0" for path in paths).encode(errors="surrogateescape")
