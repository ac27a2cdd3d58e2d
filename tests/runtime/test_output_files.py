"""What commands put out lies in files of ours, in a private folder of the session."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from pathlib import Path

import pytest

from runtime.output_files import open_log, spill, sweep_old_logs


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_each_log_is_a_private_file_of_its_own_that_the_sweep_knows_by_its_name(temporary: Path) -> None:
    logs = [open_log("a/session", "bash") for _ in range(2)]
    for fd, path in logs:
        os.write(fd, b"said")
        os.close(fd)
        assert Path(path).read_bytes() == b"said" and temporary in Path(path).parents
        assert os.name != "posix" or stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert logs[0][1] != logs[1][1]
    old = Path(logs[0][1])
    month_ago = time.time() - 31 * 86_400
    os.utime(old, (month_ago, month_ago))
    sweep_old_logs()
    assert not old.exists() and Path(logs[1][1]).exists()


def test_a_spill_makes_its_file_with_the_first_write_beside_the_logs(temporary: Path) -> None:
    fd, log = open_log("session", "bash")
    os.close(fd)
    one = spill("session")
    assert one.path is None
    one.write(b"much")
    assert one.path is not None and Path(one.path).parent == Path(log).parent
    one.close()
