"""What must not wear out: threads over many sessions, the order of answers, a folder that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import line


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")
def test_a_replaced_session_leaves_no_thread_behind(agent: Any) -> None:
    with agent() as a:

        def threads() -> int:
            return len(os.listdir(f"/proc/{a.pid}/task"))

        for _ in range(5):
            assert a.request("new_session")["success"]
        before = threads()
        for _ in range(60):
            assert a.request("new_session")["success"]
        assert threads() <= before + 10  # those of the last ones may still be ending


def test_the_refusal_of_a_replacement_does_not_overtake_earlier_answers(agent: Any) -> None:
    with agent() as a:
        for turn in range(20):
            since = a.cursor
            first, second = f"s{turn}", f"i{turn}"
            a.send_raw(
                line("get_entries", id=first) + line("import_session", id=second, inputPath="/nope"),
            )
            a.wait({"type": "response", "id": second}, since=since)
            answered = [record["id"] for record in a.records[since:] if record["type"] == "response"]
            assert answered == [first, second]


def test_a_relative_path_is_refused_when_the_folder_of_the_start_is_gone(agent: Any, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with agent(cwd=gone) as a:
        a.prompt("hello")
        gone.rmdir()
        for command, field in (("switch_session", "sessionPath"), ("import_session", "inputPath")):
            assert not a.request(command, **{field: "r.jsonl"})["success"]
        assert a.request("get_state")["success"]


def test_starting_in_a_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && exec {sys.executable} -P -m runtime.main --mode rpc --no-session"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env={**os.environ, "PYTHONPATH": str(root)},
        input=b"",
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1 and done.stdout == b""
    assert done.stderr.decode().startswith("atomic: the working directory cannot be used")
    assert b"\n" not in done.stderr[:-1]
