"""An export goes where it was asked to, whole or not at all, and never over the session."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from actors.session.export import ExportError, export_path, write_export


@pytest.fixture
def stored(tmp_path: Path) -> str:
    path = tmp_path / "2026_abc.jsonl"
    path.write_text("{}\n")
    return str(path)


def test_the_default_is_named_after_the_file_and_is_told_as_it_stands(stored: str, tmp_path: Path) -> None:
    assert export_path(stored, None, str(tmp_path), "/home/u") == "atomic-session-2026_abc.html"
    assert export_path(stored, "", str(tmp_path), "/home/u") == "atomic-session-2026_abc.html"


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ("out.html", "out.html"),
        ("../a b.html", "../a b.html"),
        ("~/x.html", "/home/u/x.html"),
        ("file:///tmp/a%20b.html", "/tmp/a b.html"),
        ("file://localhost/tmp/x.html", "/tmp/x.html"),
    ],
)
def test_a_wanted_path_is_understood(stored: str, tmp_path: Path, wanted: str, path: str) -> None:
    assert export_path(stored, wanted, str(tmp_path), "/home/u") == path


def test_a_session_in_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"^Cannot export in-memory session to HTML$"):
        export_path(None, None, str(tmp_path), "/")


def test_a_session_without_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"^Nothing to export yet - start a conversation first$"):
        export_path(str(tmp_path / "none.jsonl"), None, str(tmp_path), "/")


@pytest.mark.parametrize("wanted", ["a\0b", "a\ud800b", "file://"])
def test_a_path_that_no_disk_takes_is_refused(stored: str, tmp_path: Path, wanted: str) -> None:
    with pytest.raises(ExportError, match=r"^outputPath "):
        export_path(stored, wanted, str(tmp_path), "/")


SPELLINGS = ["2026_abc.jsonl", "./x/../2026_abc.jsonl", "link", "hard", "link-to-hard", "file://localhost/hard", None]


@pytest.mark.parametrize("wanted", SPELLINGS)
def test_the_session_itself_is_never_overwritten(stored: str, tmp_path: Path, wanted: str | None) -> None:
    (tmp_path / "link").symlink_to(stored)
    (tmp_path / "hard").hardlink_to(stored)
    (tmp_path / "link-to-hard").symlink_to("hard")
    (tmp_path / "atomic-session-2026_abc.html").symlink_to(stored)
    wanted = wanted and wanted.replace("file://localhost", f"file://localhost{tmp_path}")
    with pytest.raises(ExportError, match="it is the file of the session itself"):
        export_path(stored, wanted, str(tmp_path), "/")


def test_the_page_is_written_below_the_folder_of_the_process(tmp_path: Path) -> None:
    write_export("x.html", "päge", str(tmp_path))
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == "päge"
    assert os.listdir(tmp_path) == ["x.html"]


def test_an_older_page_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text("old" * 1000)
    write_export(str(tmp_path / "x.html"), "new", "/")
    assert (tmp_path / "x.html").read_text() == "new"


def test_other_names_of_an_older_page_keep_what_they_name(stored: str, tmp_path: Path) -> None:
    """A session that is linked there after the path was checked, or any other one."""
    (tmp_path / "x.html").hardlink_to(stored)
    write_export("x.html", "page", str(tmp_path))
    assert ((tmp_path / "x.html").read_text(), Path(stored).read_text()) == ("page", "{}\n")


def test_a_missing_folder_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"ENOENT: no such file or directory, open '.*no/x.html'"):
        write_export("no/x.html", "page", str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_folder_or_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, kind in (("pipe", "a FIFO"), ("folder", "a directory")):
        with pytest.raises(ExportError, match=f"it is {kind}, not a regular file"):
            write_export(name, "page", str(tmp_path))
