"""The `find` tool on a real tree."""

from __future__ import annotations

import itertools
from typing import Any

import pytest


@pytest.fixture
def tree(bench: Any) -> Any:
    for path in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt", ".hidden/e.py", ".git/f.py", "build/g.py"):
        bench.write(path, "")
    bench.write("[id].tsx", "")
    bench.write(".gitignore", "build/\n*.log\n")
    return bench


def _found(bench: Any, *paths: str, **more: Any) -> list[str]:
    files: list[str] = bench.run("find", paths=list(paths), **more).details["files"]
    return files


def test_a_bare_glob_is_looked_for_at_every_depth(tree: Any) -> None:
    assert _found(tree, "*.py") == [".hidden/e.py", "a.py", "src/b.py", "src/deep/c.py"]
    assert tree.text("find", paths=["src/*.py"]) == "src/b.py"
    assert _found(tree, "src/**/*.{py,txt}") == ["src/b.py", "src/d.txt", "src/deep/c.py"]


def test_a_directory_gives_all_below_it_and_a_name_with_brackets_is_itself(tree: Any) -> None:
    assert _found(tree, "src") == ["src/b.py", "src/d.txt", "src/deep/c.py"]
    assert _found(tree, "[id].tsx") == ["[id].tsx"]


def test_hidden_and_ignored_files_can_be_chosen(tree: Any) -> None:
    assert _found(tree, "*.py", hidden=False) == ["a.py", "src/b.py", "src/deep/c.py"]
    assert "build/g.py" in _found(tree, "*.py", gitignore=False)


def test_nearer_ignore_files_overrule_and_parents_count_within_the_repository(tree: Any) -> None:
    tree.write("src/x.log", "")
    tree.write("src/deep/keep.log", "")
    tree.write("src/deep/.gitignore", "!keep.log\n/c.py\n")
    assert _found(tree, "src") == ["src/b.py", "src/d.txt", "src/deep/.gitignore", "src/deep/keep.log"]


def test_nothing_found_says_so(tree: Any) -> None:
    assert tree.text("find", paths=["*.nope"]) == "No files found matching pattern"


def test_the_limit_is_clamped_and_told(tree: Any) -> None:
    output = tree.run("find", paths=["*.py"], limit=2.7)
    assert output.content[0].text.endswith("\n\n[2 results limit reached. Refine pattern or path to narrow results]")
    assert (output.details["fileCount"], output.details["resultLimitReached"]) == (2, 2)
    assert len(_found(tree, "*.py", limit=0)) == 1
    for n in range(250):
        tree.write(f"many/{n}", "")
    assert len(_found(tree, "many", limit=1000)) == 200


def test_exactly_the_limit_is_no_limit_reached(tree: Any) -> None:
    output = tree.run("find", paths=["*.py"], limit=4)
    assert output.details["truncated"] is False
    assert "resultLimitReached" not in output.details


def test_one_missing_path_is_an_error_and_one_of_several_is_skipped(tree: Any) -> None:
    assert tree.fault("find", paths=["no/where"]) == "ENOENT: Path not found: no/where"
    output = tree.run("find", paths=["a.py", "no where, really"])
    assert output.content[0].text == "a.py\n\n[Skipped missing paths: no where, really]"
    assert output.details["skippedMissingPaths"] == output.details["missingPaths"] == ["no where, really"]


def test_empty_paths_are_refused(tree: Any) -> None:
    assert tree.fault("find", paths=[]) == "find.paths must include at least one path or glob."
    assert tree.fault("find", paths=["a.py", " "]) == "find.paths entries must not be empty."


def test_a_time_out_is_a_success_with_part_of_the_result(tree: Any) -> None:
    ticks = itertools.count(0, 0.2)
    tree.context.now = lambda: next(ticks)
    output = tree.run("find", paths=["*.py"], timeout=0.1)
    assert output.details["timedOut"] is True and output.details["truncated"] is True
    count = output.details["fileCount"]
    assert output.content[0].text.endswith(
        f"[find timed out after 0.5s; returning {count} partial matches \u2014 increase timeout or narrow pattern]"
    )


def test_what_was_found_so_far_is_shown_while_it_looks(tree: Any) -> None:
    ticks = itertools.count(0, 0.06)
    tree.context.now = lambda: next(ticks)
    tree.run("find", paths=["*.py"])
    counts = [update.details["fileCount"] for update in tree.updates]
    assert counts and counts == sorted(set(counts))


def test_links_to_directories_are_not_followed_and_to_files_are_found(tree: Any) -> None:
    (tree.root / "src/loop").symlink_to("..")
    (tree.root / "src/link.py").symlink_to("b.py")
    assert _found(tree, "src/**/*.py") == ["src/b.py", "src/deep/c.py", "src/link.py"]


def test_a_cancelled_call_ends_as_aborted(tree: Any) -> None:
    tree.context.cancel()
    assert tree.fault("find", paths=["*.py"]) == "Operation aborted"


def test_symlinks_that_cannot_be_followed_are_files_like_others(tree: Any) -> None:
    (tree.root / "src/circle").symlink_to("circle")
    (tree.root / "src/nowhere").symlink_to("gone")
    (tree.root / "src/long").symlink_to("x" * 300)
    names = ["b.py", "circle", "d.txt", "deep/c.py", "long", "nowhere"]
    assert _found(tree, "src") == [f"src/{name}" for name in names]
    assert tree.text("find", paths=["src/circle"]) == "src/circle"
