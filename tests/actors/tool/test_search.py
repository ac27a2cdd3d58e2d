"""The `search` tool with `rg` and with our own child, which have to agree."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from actors.tool import scan
from actors.tool.table import ToolOptions


@pytest.fixture(params=["rg", "own"])
def finder(bench: Any, request: pytest.FixtureRequest, needs: Callable[..., None]) -> Any:
    """A bench whose search uses `rg`, or has no `rg` to use."""
    if request.param == "own":
        bench.environment["PATH"] = ""
    else:
        needs("rg")
    return bench


def test_matches_are_marked_and_have_their_surroundings(finder: Any) -> None:
    finder.write("d/a.txt", "".join(f"line {n}\r\n" for n in range(1, 11)))
    output = finder.run("search", pattern="line 4$")
    assert output.content[0].text == "[d/a.txt]\n 3:line 3\n*4:line 4\n 5:line 5\n 6:line 6\n 7:line 7"
    details = output.details
    assert (details["matchCount"], details["fileCount"], details["files"]) == (1, 1, ["d/a.txt"])
    assert details["fileMatches"] == [{"path": "d/a.txt", "count": 1}]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [(0, 0, [5, 8]), (2, 0, [3, 4, 5, 6, 7, 8]), (0, 1, [5, 6, 8, 9]), (10**12, 10**12, list(range(1, 11)))],
)
def test_the_settings_say_how_much_of_the_surroundings_is_shown(
    bench: Any, before: int, after: int, shown: list[int]
) -> None:
    bench.context.options = ToolOptions(lines_before=before, lines_after=after)
    bench.write("a", "".join(f"line {n}\n" for n in range(1, 11)))
    rows = bench.text("search", pattern="line [58]$").splitlines()[1:]
    assert rows == [f"{'*' if n in (5, 8) else ' '}{n}:line {n}" for n in shown]


def test_a_file_is_not_read_beyond_what_can_be_shown(bench: Any) -> None:
    bench.context.options = ToolOptions(lines_before=10**9, lines_after=10**9)
    bench.write("a", "hit\n" + f"{'x' * 500}\n" * 4000)
    assert bench.text("search", pattern="hit").endswith("\n\n[50.0KB combined output limit reached]")


def test_case_can_be_ignored_in_two_ways(finder: Any) -> None:
    finder.write("a", "Hit")
    assert finder.text("search", pattern="hit") == "No matches found"
    assert finder.text("search", pattern="hit", i=True) == "[a]\n*1:Hit"
    assert finder.text("search", pattern="hit", case=False) == "[a]\n*1:Hit"


def test_ignored_git_binary_linked_and_large_files_are_passed_over(finder: Any) -> None:
    finder.write(".gitignore", "out/\n")
    for path in (".git/x", "out/x", ".hidden/x", "z"):
        finder.write(path, "hit\n")
    finder.write("binary", b"hit\n\0")
    finder.write("large", "hit\n" + "x" * (4 << 20))
    (finder.root / "link").symlink_to("z")
    assert finder.run("search", pattern="hit").details["files"] == [".hidden/x", "z"]
    assert finder.run("search", pattern="hit", gitignore=False).details["files"] == [".hidden/x", "out/x", "z"]


def test_paths_may_be_one_string_several_or_globs(finder: Any) -> None:
    for path in ("a.py", "b.md", "src/c.py", "src/d.md", "e, f g.py"):
        finder.write(path, "hit\n")

    def files(paths: str | list[str]) -> list[str]:
        found: list[str] = finder.run("search", pattern="hit", paths=paths).details["files"]
        return found

    assert files("e, f g.py") == ["e, f g.py"]
    assert files(["src", "a.py"]) == ["src/c.py", "src/d.md", "a.py"]
    assert files("src/*.md") == ["src/d.md"]
    assert files([]) == ["a.py", "b.md", "e, f g.py", "src/c.py", "src/d.md"]
    assert files(["a.py", "no/such"]) == ["a.py"]
    assert finder.fault("search", pattern="hit", paths="no/such") == "ENOENT: Path not found: no/such"


def test_pages_are_counted_in_files(finder: Any) -> None:
    for n in range(25):
        finder.write(f"f{n:02}", "hit\n" * 30)
    first = finder.run("search", pattern="hit")
    assert first.content[0].text.endswith("\n\n[20 matching files shown. Use skip=20 to view more.]")
    assert first.content[0].text.count("*1:hit") == 20
    assert first.details["fileLimitReached"] is True and first.details["perFileLimitReached"] is True
    assert first.details["fileMatches"][0] == {"path": "f00", "count": 20}
    second = finder.run("search", pattern="hit", skip="20")
    assert second.details["files"] == ["f20", "f21", "f22", "f23", "f24"]
    assert "[skip=99 is past the last of 25 matching files.]" in finder.text("search", pattern="hit", skip=99)


def test_a_single_file_shows_more_and_ignores_skip(finder: Any) -> None:
    finder.write("a", "hit\n" * 300)
    output = finder.run("search", pattern="hit", paths="a", skip=3)
    assert output.content[0].text.count("\n*") == 200
    assert output.content[0].text.endswith("[skip is ignored: the search is in a single file]")
    assert output.details["perFileLimitReached"] is True


def test_no_more_than_2000_matches_are_collected(finder: Any) -> None:
    for n in range(110):
        finder.write(f"f{n:03}", "hit\n" * 20)
    text = finder.text("search", pattern="hit", skip=90)
    assert "[Search collected the first 2000 matches before pagination; refine the pattern or path for" in text


def test_long_lines_and_long_output_are_cut(finder: Any) -> None:
    finder.write("a", "hit" + "x" * 600)
    output = finder.run("search", pattern="hit")
    assert output.content[0].text == "[a]\n*1:hit" + "x" * 509 + "\u2026"
    assert output.details["linesTruncated"] is True
    finder.write("b", ("hit" + "y" * 400 + "\n") * 200)
    text = finder.text("search", pattern="hit", paths="b")
    assert text.endswith("\n\n[50.0KB combined output limit reached]")
    assert len(text) < 51_300


def test_look_around_works_with_either_engine(finder: Any) -> None:
    finder.write("a", "foobar\nfoobaz\n")
    assert finder.text("search", pattern="foo(?=baz)") == "[a]\n 1:foobar\n*2:foobaz"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"pattern": "  "}, "Pattern must not be empty"),
        ({"pattern": "(a"}, "Invalid pattern: "),
        ({"pattern": "a\\nb"}, "Pattern must not contain a line break"),
        ({"pattern": "a\ud800"}, "Pattern must not contain a NUL character or a lone surrogate"),
        ({"pattern": "a", "skip": -1}, "Skip must be a non-negative number"),
    ],
)
def test_a_bad_request_is_named(finder: Any, arguments: dict[str, Any], reason: str) -> None:
    finder.write("a", "x")
    assert finder.fault("search", **arguments).startswith(reason)


def test_a_named_pipe_is_refused(finder: Any) -> None:
    os.mkfifo(finder.root / "pipe")
    finder.write("a", "hit")
    assert finder.fault("search", pattern="hit", paths="pipe").endswith("pipe: it is a FIFO, not a regular file")
    assert finder.text("search", pattern="hit") == "[a]\n*1:hit"


def test_a_file_whose_name_is_not_utf8_is_searched(finder: Any) -> None:
    with open(os.fsencode(finder.root) + b"/caf\xe9", "w") as file:
        file.write("hit")
    assert finder.text("search", pattern="hit") == "[caf\ufffd]\n*1:hit"


@pytest.mark.timeout(20)
def test_a_pattern_that_takes_forever_stops_at_the_deadline(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.environment["PATH"] = ""
    bench.write("a", "hit aaa\n")
    bench.write("b", "a" * 60 + "!\n")
    monkeypatch.setattr(scan, "DEADLINE_S", 1.0)
    text = bench.text("search", pattern="^(hit )?(a+)+$")
    assert text.startswith("[a]\n*1:hit aaa\n\n[Search timed out after 1s; the results are partial.")


@pytest.mark.timeout(20)
def test_a_cancel_ends_a_running_search(bench: Any) -> None:
    bench.environment["PATH"] = ""
    bench.write("b", "a" * 60 + "!\n")
    timer = threading.Timer(0.3, bench.context.cancel)
    timer.start()
    assert bench.fault("search", pattern="^(a+)+$") == "Operation aborted"
    timer.join()


def test_modules_in_the_searched_folder_are_never_loaded(bench: Any) -> None:
    bench.environment |= {"PATH": "", "PYTHONPATH": str(bench.root)}
    for name in ("json", "re", "actors", "msgspec", "sitecustomize"):
        bench.write(f"{name}.py", "open('/dev/stderr', 'w').write('loaded'); raise SystemExit(9)")
    bench.write("a", "hit")
    assert bench.text("search", pattern="^hit$") == "[a]\n*1:hit"


def test_paths_that_cannot_be_looked_at_are_told_and_the_others_searched(finder: Any) -> None:
    finder.write("a/x", "hit\n")
    (finder.root / "circle").symlink_to("circle")
    (finder.root / "a/circle").symlink_to("circle")
    output = finder.run("search", pattern="hit", paths=["a", "circle"])
    assert (output.details["files"], output.details["missingPaths"]) == (["a/x"], ["circle"])
    assert finder.fault("search", pattern="hit", paths=["circle"]).startswith("ELOOP:")
