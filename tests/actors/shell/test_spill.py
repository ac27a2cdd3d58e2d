"""The full log: private, whole up to its cap, and never a reason for a command to fail."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.shell.spill import FILE_CAP, Spill, cap_marker, directory_name

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
UID = os.getuid() if os.name == "posix" else 0


def spill(root: Path, session: str = "s1", cap: int = FILE_CAP, uid: int = UID) -> Spill:
    return Spill(str(root), session, uid, lambda: "0123456789abcdef", cap)


def write(log: Spill, *parts: str | bytes) -> str | None:
    for part in parts:
        log.write(part)
    return log.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o777)
    yield
    os.umask(before)


def test_nothing_is_made_before_the_first_write(tmp_path: Path) -> None:
    assert spill(tmp_path).close() is None
    assert list(tmp_path.iterdir()) == []


def test_the_log_stands_in_private_directories_under_its_session(tmp_path: Path) -> None:
    path = write(spill(tmp_path), "héllo\n", b"raw\xff")
    expected = tmp_path / f"atomic-{UID}" / "s1" / "atomic-bash-0123456789abcdef.log"
    assert path == str(expected)
    assert expected.read_bytes() == "héllo\n".encode() + b"raw\xff"
    assert (mode(expected), mode(expected.parent), mode(expected.parent.parent)) == (0o600, 0o700, 0o700)


@pytest.mark.usefixtures("umask")
def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    path = write(spill(tmp_path), "x")
    assert path is not None
    assert (mode(Path(path)), mode(Path(path).parent), mode(Path(path).parent.parent)) == (0o600, 0o700, 0o700)


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("a-b_c.1", "a-b_c.1"),
        ("../../etc", "etc"),
        ("a/b c", "a_b_c"),
        ("..", "session"),
        ("", "session"),
        ("x" * 99, "x" * 64),
    ],
)
def test_a_session_id_names_one_directory(session: str, name: str) -> None:
    assert directory_name(session) == name


def test_a_linked_root_is_refused_and_its_target_untouched(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"atomic-{UID}").symlink_to(elsewhere)
    assert write(spill(tmp_path), "x", "y") is None
    assert list(elsewhere.iterdir()) == []


def test_a_foreign_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"atomic-{UID + 1}").mkdir()
    assert write(spill(tmp_path, uid=UID + 1), "x") is None


def test_a_file_in_the_place_of_the_root_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / f"atomic-{UID}").write_text("mine")
    assert write(spill(tmp_path), "x") is None
    assert (tmp_path / f"atomic-{UID}").read_text() == "mine"


def test_a_loose_mode_is_tightened(tmp_path: Path) -> None:
    folder = tmp_path / f"atomic-{UID}" / "s1"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    folder.parent.chmod(0o755)
    assert write(spill(tmp_path), "x") is not None
    assert (mode(folder), mode(folder.parent)) == (0o700, 0o700)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_something_stale_in_the_place_of_the_session_directory_is_removed(tmp_path: Path, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    stale = tmp_path / f"atomic-{UID}" / "s1"
    stale.parent.mkdir()
    stale.symlink_to(elsewhere) if kind == "link" else stale.write_text("old")
    path = write(spill(tmp_path), "x")
    assert path is not None and Path(path).read_text() == "x"
    assert stale.is_dir() and not stale.is_symlink() and list(elsewhere.iterdir()) == []


def test_a_session_directory_deleted_meanwhile_is_made_again(tmp_path: Path) -> None:
    path = write(spill(tmp_path), "x")
    assert path is not None
    Path(path).unlink()
    Path(path).parent.rmdir()
    assert write(spill(tmp_path), "again") == path


def test_an_existing_log_is_not_overwritten(tmp_path: Path) -> None:
    path = write(spill(tmp_path), "first")
    assert path is not None
    assert write(spill(tmp_path), "second") is None
    assert Path(path).read_text() == "first"


def test_a_missing_temp_directory_leaves_no_path(tmp_path: Path) -> None:
    assert write(spill(tmp_path / "missing"), "x") is None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_failed_write_leaves_no_path_and_no_file(tmp_path: Path) -> None:
    log = spill(tmp_path)
    log.write("x")
    path = Path(log.path or "")
    full = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        os.write(full, b"x")
    os.dup2(full, log._fd)
    os.close(full)
    log.write("y")
    assert log.path is None and log.close() is None and not path.exists()


def capped(tmp_path: Path, *parts: str | bytes, cap: int = 200) -> bytes:
    path = write(spill(tmp_path, cap=cap), *parts)
    assert path is not None
    return Path(path).read_bytes()


def test_input_of_exactly_the_cap_is_kept_whole(tmp_path: Path) -> None:
    assert capped(tmp_path, "a" * 150, "b" * 50) == b"a" * 150 + b"b" * 50


def test_one_byte_more_is_cut_and_marked_within_the_cap(tmp_path: Path) -> None:
    marker = cap_marker(200)
    assert capped(tmp_path, "a" * 200, "b", "c") == b"a" * (200 - len(marker)) + marker


def test_the_marker_names_the_real_cap() -> None:
    line = b"\n[Output truncated: persisted-output cap of 67108864 bytes reached]\n"
    assert cap_marker(FILE_CAP) == line


@pytest.mark.parametrize("lead", range(5))
@pytest.mark.parametrize("character", ["é", "€", "𝄞"])
def test_no_character_is_split_at_the_cap_even_when_it_came_in_two_writes(
    tmp_path: Path, lead: int, character: str
) -> None:
    data = b"a" * lead + character.encode() * 100
    kept = capped(tmp_path, *(data[i : i + 1] for i in range(len(data))))
    body = kept.removesuffix(cap_marker(200))
    assert data.startswith(body) and body.decode()
    assert 200 - len(character.encode()) < len(kept) <= 200


def test_binary_output_is_cut_where_the_cap_says(tmp_path: Path) -> None:
    assert len(capped(tmp_path, b"\x80" * 300)) == 200
