"""The footer: model, level, folder and branch, the controls that apply, and a plain word when nothing is live."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec

from runtime.inspector.footer import controls, facts, git_branch
from runtime.inspector.notice_view import notice
from runtime.inspector.records import Session
from runtime.inspector.texts import Line, plain_text
from tests.runtime.inspector.views import SESSION, board


def text(line: Line | None) -> str:
    assert line is not None
    return plain_text(line)


def test_the_facts_of_a_session_fit_and_the_end_of_a_long_path_is_kept() -> None:
    assert text(facts(SESSION, "main", "/work", 80)) == " fa/m · thinking medium   ~/project (main)"
    assert text(facts(Session(session_id="s", cwd="/work"), None, "/work", 80)) == " ~"
    deep = msgspec.structs.replace(SESSION, cwd="/work/" + "deep/" * 30 + "end")
    line = text(facts(deep, "main", "/work", 80))
    assert len(line) <= 80 and line.endswith("deep/end (main)")
    assert len(text(facts(deep, "main", "/work", 30))) == 30


def test_controls_that_do_not_fit_are_left_out_but_the_way_out_stays() -> None:
    offered = [("↑↓", "select"), ("Enter", "open"), ("x", "stop"), ("Esc", "leave")]
    assert text(controls(offered, 80)) == " ↑↓ select   Enter open   x stop   Esc leave"
    assert text(controls(offered, 41)) == " ↑↓ select  Enter open  x stop  Esc leave"
    assert text(controls(offered, 40)) == " ↑↓  Enter  x stop  Esc leave"
    assert text(controls(offered, 25)) == " ↑↓  Enter  x stop  Esc"
    assert text(controls(offered, 20)) == " ↑↓  Esc leave"
    assert text(controls(offered, 12)) == " Esc leave"
    assert controls([], 80) == ()


def test_forty_columns_show_every_control_of_the_fullest_pages() -> None:
    pages, stop, back = ("PgUp/PgDn", "scroll"), ("x", "stop"), ("←/Esc", "back")
    detail = [("↑↓", "select"), ("Enter", "choose"), pages, stop, back]
    assert text(controls(detail, 40)) == " ↑↓  Enter  PgUp/Dn  x stop  ←/Esc back"
    transcript = [("↑↓", "line"), pages, ("Home/End", "first, last"), stop, back]
    assert text(controls(transcript, 40)) == " ↑↓  PgUp/Dn  Home/End  x stop  ←/Esc"
    own = [("↑↓", "select"), ("u/d", "scroll"), back]
    assert text(controls(own, 30)) == " ↑↓  u/d scroll  ←/Esc back"


def test_the_branch_of_a_folder(tmp_path: Path) -> None:
    def git(*arguments: str, cwd: Path) -> None:
        name = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=trunk")
        subprocess.run(["git", *name, *arguments], cwd=cwd, check=True, capture_output=True)

    assert git_branch(str(tmp_path)) is None
    project, inner, tree = tmp_path / "p", tmp_path / "p" / "a" / "b", tmp_path / "tree"
    inner.mkdir(parents=True)
    git("init", cwd=project)
    assert git_branch(str(inner)) == "trunk"
    git("commit", "--allow-empty", "-m", "x", cwd=project)
    git("worktree", "add", "-b", "topic/one", str(tree), cwd=project)
    assert git_branch(str(tree)) == "topic/one"
    git("checkout", "--detach", cwd=tree)
    detached = git_branch(str(tree))
    assert detached is not None and len(detached) == 8


def test_nothing_is_said_while_all_is_live_and_each_end_has_its_words() -> None:
    def told(**fields: Any) -> str:
        known = board()
        known.lose(now=0, **fields)
        return text(notice(known, 7, 100))

    assert notice(board(), 7, 80) is None
    assert told(reason="x", is_alive=False) == " The program (pid 7) has ended. This is how its tasks stood last."
    assert told(reason="reset by peer", is_alive=True) == " The connection is lost: reset by peer. r connects again."
    known = board()
    known.hear(Session(session_id="0200-other", cwd="/", session_name="the\nnext"), 0)
    assert text(notice(known, 7, 100)) == " This session was replaced by the next. r shows the tasks of that one."
