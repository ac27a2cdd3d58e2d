"""export_html over the wire."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest


@pytest.mark.shows("export_html")
@pytest.mark.shows("export_html", error="Nothing to export yet - start a conversation first")
def test_a_session_is_exported_where_the_client_wants_it_or_beside_the_program(agent: Any, home: Any) -> None:
    with agent() as a:
        assert a.request("export_html")["error"] == "Nothing to export yet - start a conversation first"
        a.prompt("hello <b>there</b>")
        wanted = home.path / "page.html"
        told = a.request("export_html", outputPath=str(wanted), deadline=40)
        assert told["data"] == {"path": str(wanted)}
        page = wanted.read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>") and "hello" in page and "<b>there</b>" not in page
        beside = a.request("export_html", deadline=40)["data"]["path"]
        assert beside.startswith("atomic-session-") and (home.cwd / beside).exists()


def test_paths_that_cannot_be_written_are_refused_and_the_next_command_runs(agent: Any, home: Any) -> None:
    with agent() as a:
        a.prompt("hello")
        refused = a.request("export_html", outputPath=str(home.path / "missing" / "page.html"), deadline=40)
        assert not refused["success"] and "missing" in refused["error"]
        own = a.request("get_state")["data"]["sessionFile"]
        assert "session itself" in a.request("export_html", outputPath=own, deadline=40)["error"]
        assert a.request("get_state")["success"]


@pytest.mark.shows("export_html", error="Cannot export in-memory session to HTML")
def test_a_session_in_memory_has_nothing_to_export(agent: Any) -> None:
    with agent(session=False) as a:
        a.prompt("hello")
        assert a.request("export_html")["error"] == "Cannot export in-memory session to HTML"


def test_the_shell_command_writes_the_page_of_a_stored_session(agent: Any, home: Any) -> None:
    with agent() as a:
        a.prompt("hello from the shell")
        path = a.request("get_state")["data"]["sessionFile"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "runtime.main", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=home.cwd, timeout=60, check=False)

    page = home.path / "page.html"
    done = run("export", path, str(page))
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(page), "")
    assert "hello from the shell" in page.read_text(encoding="utf-8")
    flag = run("--export", path, str(home.path / "flag.html"))
    assert (flag.returncode, flag.stdout.strip()) == (0, str(home.path / "flag.html"))
    missing = run("export", str(home.path / "none.jsonl"))
    assert missing.returncode == 1 and missing.stderr.startswith("atomic: File not found") and not missing.stdout
    page.write_text("no session")
    assert "not a valid atomic session" in run("export", str(page)).stderr
