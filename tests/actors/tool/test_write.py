"""The `write` tool: what it writes, and what it leaves as it was."""

from __future__ import annotations

import os
import stat
from typing import Any

import pytest


def _names(bench: Any) -> list[str]:
    return sorted(os.listdir(bench.root))


def test_parents_are_made_and_bytes_counted(bench: Any) -> None:
    output = bench.run("write", path="a/b/c.txt", content="€\n")
    assert output.content[0].text == "Successfully wrote 4 bytes to a/b/c.txt"
    assert (bench.root / "a/b/c.txt").read_bytes() == "€\n".encode()
    assert output.details == {"resolvedPath": os.path.realpath(bench.root / "a/b/c.txt")}


def test_content_is_written_as_given_and_the_mode_kept(bench: Any) -> None:
    path = bench.write("run.sh", b"\xef\xbb\xbfold\r\n")
    path.chmod(0o751)
    bench.run("write", path="run.sh", content="one\ntwo\r\n")
    assert path.read_bytes() == b"one\ntwo\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert _names(bench) == ["run.sh"]


def test_a_new_file_gets_the_mode_of_the_umask(bench: Any) -> None:
    old = os.umask(0o027)
    try:
        bench.run("write", path="a", content="")
    finally:
        os.umask(old)
    assert stat.S_IMODE((bench.root / "a").stat().st_mode) == 0o640


def test_a_link_stays_and_its_target_changes(bench: Any) -> None:
    target = bench.write("real/target", "old")
    (bench.root / "link").symlink_to("real/target")
    (bench.root / "dangling").symlink_to("real/new")
    bench.run("write", path="link", content="new")
    bench.run("write", path="dangling", content="made")
    assert (bench.root / "link").is_symlink() and target.read_text() == "new"
    assert (bench.root / "real/new").read_text() == "made"


def test_all_names_of_a_hard_linked_file_see_the_change(bench: Any) -> None:
    path = bench.write("one", "a longer old text")
    os.link(path, bench.root / "two")
    bench.run("write", path="one", content="new")
    assert (bench.root / "two").read_text() == "new"
    assert _names(bench) == ["one", "two"]


def test_readers_of_the_old_file_never_see_half_of_the_new_one(bench: Any) -> None:
    path = bench.write("a", "old")
    with open(path) as reader:
        bench.run("write", path="a", content="new")
        assert reader.read() == "old"


@pytest.mark.skipif(os.getuid() != 0, reason="gives a file away, which only root may")
def test_the_owner_is_kept(bench: Any) -> None:
    path = bench.write("a", "old")
    os.chown(path, 1234, 2345)
    bench.run("write", path="a", content="new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_a_directory_in_the_way_is_named(bench: Any) -> None:
    (bench.root / "d").mkdir()
    assert bench.fault("write", path="d", content="").endswith("/d: it is a directory, not a regular file")
    bench.write("file", "")
    assert bench.fault("write", path="file/x", content="").startswith(("ENOTDIR", "EEXIST"))


def test_content_that_is_not_unicode_is_refused(bench: Any) -> None:
    assert "lone surrogate at character 1" in bench.fault("write", path="a", content="x\ud83d")
    assert _names(bench) == []


def test_a_cancelled_call_writes_nothing(bench: Any) -> None:
    bench.context.cancel()
    assert bench.fault("write", path="a", content="x") == "Operation aborted"
    assert _names(bench) == []
