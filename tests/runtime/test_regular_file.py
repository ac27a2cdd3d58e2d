"""What is no file is refused and not waited for, wherever a file of the configuration may be."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime import regular_file
from runtime.models import load_models
from runtime.prompt_files import PromptFileError, read_prompt_files
from runtime.regular_file import read_regular
from runtime.resources import is_trusted
from runtime.settings import SettingsError, load_settings, save_setting
from runtime.stored_credentials import StoredCredentialsError, load_stored, write_stored

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="pipes and devices of POSIX"), pytest.mark.timeout(20)]


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as each:
        here = os.getcwd()
        os.chdir(path.parent)  # the path of a socket may not be long
        try:
            each.bind(path.name)
        finally:
            os.chdir(here)


def folder(path: Path) -> None:
    path.mkdir()


MAKERS = [fifo, device, unix_socket, folder]
Reader = Callable[[Path], list[str]]


def trust(root: Path) -> list[str]:
    (root / "AGENTS.md").touch()
    trusted, warnings = is_trusted(str(root), str(root), {"HOME": "/nowhere"}, None)
    assert not trusted
    return warnings


READERS: dict[str, Reader] = {
    "models.json": lambda root: load_models(str(root), scripted=False).warnings,
    "auth.json": lambda root: load_stored(str(root))[1],
    "settings.json": lambda root: load_settings(str(root), "/", {"HOME": "/nowhere"}, trusted=False)[1],
    ".atomic/settings.json": lambda root: load_settings("/nowhere", str(root), {"HOME": "/nowhere"}, trusted=True)[1],
    "trust.json": trust,
}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_one_line_that_names_it(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    make(path)
    (line,) = READERS[name](tmp_path)
    assert str(path) in line
    assert ("s a directory" if make is folder else "it is not a regular file") in line


@pytest.mark.parametrize("make", [fifo, device, unix_socket])
def test_nor_is_anything_written_there(tmp_path: Path, make: Callable[[Path], None]) -> None:
    for name in ("settings.json", "auth.json"):
        make(tmp_path / name)
    with pytest.raises(SettingsError, match="not a regular file"):
        save_setting(str(tmp_path), ("steeringMode",), "all")
    with pytest.raises(StoredCredentialsError, match="not a regular file"):
        write_stored(str(tmp_path), "p", {"type": "api_key", "key": "k"})


@pytest.mark.parametrize("make", [device, unix_socket, folder])
def test_an_argument_that_is_no_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(PromptFileError, match=f"Could not read file {tmp_path}/x: "):
        read_prompt_files(["x"], str(tmp_path))


def test_an_argument_may_be_a_pipe_as_shells_make_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    writer = threading.Thread(target=(tmp_path / "x").write_text, args=("from a command",))
    writer.start()
    assert "\nfrom a command\n" in read_prompt_files(["x"], str(tmp_path)).text
    writer.join()


@pytest.mark.parametrize("size", [10, 11])
def test_no_more_than_the_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(regular_file, "LIMIT", 10)
    (tmp_path / "x").write_bytes(b"a" * size)
    if size == 10:
        assert read_regular(str(tmp_path / "x")) == b"a" * 10
        return
    with pytest.raises(OSError) as raised:
        read_regular(str(tmp_path / "x"))
    assert raised.value.errno == errno.EFBIG
