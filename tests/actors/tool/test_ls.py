"""The `ls` tool on real directories."""

from __future__ import annotations

from typing import Any


def test_names_are_sorted_with_hidden_ones_and_slashes(bench: Any) -> None:
    bench.write("b", "")
    bench.write(".hidden", "")
    bench.write("A/x", "")
    assert bench.text("ls") == ".hidden\nA/\nb"
    assert bench.text("ls", path="A") == "x"


def test_an_empty_directory_says_so(bench: Any) -> None:
    assert bench.text("ls") == "(empty directory)"


def test_the_limit_is_told_with_a_way_on(bench: Any) -> None:
    for n in range(5):
        bench.write(f"f{n}", "")
    output = bench.run("ls", limit=2)
    assert output.content[0].text == "f0\nf1\n\n[2 entries limit reached. Use limit=4 for more]"
    assert output.details == {"entryLimitReached": 2}


def test_what_is_no_directory_is_the_systems_error(bench: Any) -> None:
    bench.write("f", "")
    assert bench.fault("ls", path="f").startswith("ENOTDIR: not a directory")
    assert bench.fault("ls", path="no").startswith("ENOENT: no such file or directory")


def test_a_symlink_that_cannot_be_followed_is_a_name_like_others(bench: Any) -> None:
    bench.write("a/x", "")
    (bench.root / "circle").symlink_to("circle")
    (bench.root / "long").symlink_to("x" * 300)
    (bench.root / "to_a").symlink_to("a")
    assert bench.text("ls") == "a/\ncircle\nlong\nto_a/"
    assert bench.fault("ls", path="circle").startswith("ELOOP:")
