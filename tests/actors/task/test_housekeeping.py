"""What is removed after its time, and all that stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from actors.shell.spill import Spill
from actors.task.housekeeping import ARTIFACTS_S, DAY_S, LOGS_S, LOOKED, clean_artifacts, sweep_logs

NOW = 2_000_000_000.0
UID = os.getuid() if hasattr(os, "getuid") else 0
LOG = "atomic-bash-0123456789abcdef.log"


def put(path: Path, age: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path, (NOW - age, NOW - age))
    return path


def aged(folder: Path, age: float) -> None:
    os.utime(folder, (NOW - age, NOW - age))


def test_logs_are_kept_for_thirty_days_and_files_about_agents_for_seven() -> None:  # 1.1, 3.4
    assert (LOGS_S, ARTIFACTS_S) == (30 * 86_400, 7 * 86_400)


def test_old_logs_go_and_young_ones_and_names_that_are_not_ours_stay(tmp_path: Path) -> None:
    session = tmp_path / f"atomic-{UID}" / "s"
    gone = [put(session / name, LOGS_S + 1) for name in (LOG, "atomic-powershell-0123456789abcdef.log")]
    stays = [put(session / name, LOGS_S * 2) for name in ("notes", f"x{LOG}", f"{LOG}.bak", LOG.upper(), LOG + "\n")]
    stays.append(put(tmp_path / f"atomic-{UID}" / LOG, LOGS_S * 2))  # not in a folder of a session
    stays.append(put(session / "deep" / LOG, LOGS_S * 2))
    stays.append(put(session / "atomic-bash-1123456789abcdef.log", LOGS_S - 60))
    sweep_logs(str(tmp_path), UID, NOW)
    assert not any(path.exists() for path in gone) and all(path.exists() for path in stays)


def test_an_empty_folder_goes_a_while_later(tmp_path: Path) -> None:
    session = tmp_path / f"atomic-{UID}" / "s"
    young = session.parent / "t"
    for folder, age in ((session, LOGS_S + 1), (young, LOGS_S - 60)):
        folder.mkdir(parents=True)
        aged(folder, age)
    sweep_logs(str(tmp_path), UID, NOW)
    assert young.exists() and not session.exists()


def test_a_log_that_is_written_to_stays_however_old_it_is(tmp_path: Path) -> None:
    spill = Spill(str(tmp_path), "s", UID, lambda: "0123456789abcdef")
    spill.write("x")
    path = tmp_path / f"atomic-{UID}" / "s" / LOG
    aged(path, LOGS_S * 2)
    sweep_logs(str(tmp_path), UID, NOW)
    assert path.exists()
    spill.close()
    aged(path, LOGS_S * 2)
    sweep_logs(str(tmp_path), UID, NOW + DAY_S)
    assert not path.exists()


def test_a_folder_is_looked_at_once_a_day(tmp_path: Path) -> None:
    top = tmp_path / f"atomic-{UID}"
    top.mkdir()
    sweep_logs(str(tmp_path), UID, NOW)
    path = put(top / "s" / LOG, LOGS_S * 2)
    sweep_logs(str(tmp_path), UID, NOW + DAY_S - 60)
    assert path.exists() and (top / LOOKED).stat().st_mode & 0o777 == 0o600
    sweep_logs(str(tmp_path), UID, NOW + DAY_S + 60)
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix", reason="links and owners")
def test_links_are_not_followed_and_what_others_own_is_not_touched(tmp_path: Path) -> None:
    real = put(tmp_path / "real" / LOG, LOGS_S * 2)
    top = tmp_path / f"atomic-{UID}"
    (top / "s").mkdir(parents=True)
    (top / "linked").symlink_to(real.parent)
    (top / "s" / LOG).symlink_to(real)
    sweep_logs(str(tmp_path), UID, NOW)
    assert real.exists() and (top / "s" / LOG).is_symlink()
    (tmp_path / f"atomic-{UID + 1}").symlink_to(tmp_path)
    sweep_logs(str(tmp_path), UID + 1, NOW)
    put(tmp_path / f"atomic-{UID + 2}" / "s" / LOG, LOGS_S * 2)
    sweep_logs(str(tmp_path), UID + 2, NOW)
    assert (tmp_path / f"atomic-{UID + 2}" / "s" / LOG).exists()


def test_without_a_folder_nothing_happens_and_none_is_made(tmp_path: Path) -> None:
    sweep_logs(str(tmp_path), UID, NOW)
    clean_artifacts(str(tmp_path / "subagent-artifacts"), NOW)
    assert list(tmp_path.iterdir()) == []


def test_files_about_agents_go_after_a_week_and_sessions_of_agents_stay(tmp_path: Path) -> None:
    kinds = ("input.md", "output.md", "meta.json", "changes.patch")
    gone = [put(tmp_path / f"0123abcd_{agent}_{kind}", ARTIFACTS_S + 1) for kind in kinds for agent in ("a.b", "a_3")]
    stays = [put(tmp_path / f"0123abcd_young_{kind}", ARTIFACTS_S - 60) for kind in kinds]
    others = ("notes.md", "0123abcd_output.md", "x0123abcd_a_output.md", "0123abcd_a_output.md.bak", "0123abcd_a.jsonl")
    stays += [put(tmp_path / name, ARTIFACTS_S * 9) for name in others]
    clean_artifacts(str(tmp_path), NOW)
    assert not any(path.exists() for path in gone) and all(path.exists() for path in stays)
    again = put(gone[0], ARTIFACTS_S * 2)
    clean_artifacts(str(tmp_path), NOW + 60)
    assert again.exists()
    clean_artifacts(str(tmp_path), NOW + DAY_S)
    assert not again.exists()
