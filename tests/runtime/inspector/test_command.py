"""`atomic tasks` on the command line: lists for scripts, the session that was meant, and one line for every refusal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.inspector.command import NO_TERMINAL, NO_TEXTUAL
from runtime.inspector.sessions import NO_SESSION
from tests.runtime.inspector.scripted_door import ScriptedDoor, agent, settled, task

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = [sys.executable, "-m", "runtime.main", "tasks"]


def environment(short: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(short), "HOME": str(short), "PYTHONPATH": str(ROOT)}


def run(short: Path, *arguments: str) -> tuple[int, str, str]:
    command = [*PROGRAM, *arguments]
    done = subprocess.run(command, env=environment(short), capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_the_list_is_a_table_of_each_session(short: Path, door: ScriptedDoor) -> None:
    door.put(
        agent("t1", title="find\tit", metrics={"elapsedMs": 61_000}),
        task("t2", title="make \x1b[31mall", **settled("completed", exitCode=0)),
    )
    code, out, err = run(short, "--list")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"pid {door.pid} · session 0199-session · fa/m · thinking medium · {door.session['cwd']}",
        "  t1  agent  Running    1m 01s  scout · find it  fa/m · thinking medium",
        "  t2  shell  Completed          make all",
    ]


def test_json_is_one_object_a_session_with_the_records_as_they_were_told(short: Path, door: ScriptedDoor) -> None:
    door.put(task("t1", somethingNew=5))
    with ScriptedDoor(door.path.parent, pid=4_000_001, sessionId="0200-other", sessionName="next") as other:
        code, out, err = run(short, "--json")
        assert (code, err) == (0, "")
        first, second = sorted(map(json.loads, out.splitlines()), key=lambda told: told["sessionId"])
        assert (first["pid"], first["tasks"]) == (door.pid, [door.tasks["t1"]])
        assert (second["sessionName"], second["tasks"]) == ("next", [])
        assert json.loads(run(short, "--json", "0200")[1])["pid"] == other.pid
        assert json.loads(run(short, str(door.pid), "--json")[1])["sessionId"] == "0199-session"
        code, out, err = run(short, "--list", "0")
        assert (code, out) == (1, "")
        assert err == f'atomic: "0" fits several sessions: {door.pid} (0199-session), 4000001 (0200-other)\n'


def test_json_is_utf_8_on_a_stdout_of_another_encoding(
    short: Path, door: ScriptedDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    door.put(task("t1", title="\u8a8d\u8a3c"))
    code, out, _ = run(short, "--json")
    assert (code, json.loads(out)["tasks"][0]["title"]) == (0, "\u8a8d\u8a3c")


def test_what_is_asked_for_and_is_not_there_is_said(short: Path, door: ScriptedDoor) -> None:
    code, out, err = run(short, "--list", "zzz")
    assert (code, out) == (1, "")
    assert err == 'atomic: No running session has the pid or an id like "zzz"; atomic tasks --list shows them\n'


@pytest.mark.parametrize(("arguments", "code"), [(["--list"], 0), (["--json"], 0), (["--list", "7"], 1)])
def test_without_a_session_there_is_one_line(short: Path, arguments: list[str], code: int) -> None:
    assert run(short, *arguments) == (code, "", f"atomic: {NO_SESSION}\n")


def test_a_socket_that_nobody_listens_at_and_a_folder_that_others_may_write_to_are_passed_over(
    short: Path, private: Path
) -> None:
    with ScriptedDoor(private, pid=1) as door:
        kept = private / "t2.sock"
        os.link(door.path, kept)
    assert kept.exists()
    assert run(short, "--list")[2] == f"atomic: {NO_SESSION}\n"
    with ScriptedDoor(private, pid=1):
        private.chmod(0o777)
        assert run(short, "--list")[2] == f"atomic: {NO_SESSION}\n"


def test_a_session_that_does_not_tell_its_tasks_is_named_and_the_others_are_listed(
    short: Path, door: ScriptedDoor
) -> None:
    with ScriptedDoor(door.path.parent, pid=4_000_001, sessionId="other") as other:
        other.answer = lambda _: {"success": False, "error": "not now"}
        code, out, err = run(short, "--list")
    assert (code, err) == (1, "atomic: the session of pid 4000001 did not tell its tasks: not now\n")
    assert out.splitlines()[1] == "  no background tasks"


REFUSAL = b'{"type":"inspector_refused","error":"there is no\\nroom"}\n'


def test_a_session_that_lets_nobody_in_is_named_and_the_others_are_listed(short: Path, door: ScriptedDoor) -> None:
    told = "the session of pid 4000001 cannot be reached: there is no room"
    with ScriptedDoor(door.path.parent, pid=4_000_001) as full:
        full.greeting = REFUSAL
        code, out, err = run(short, "--list")
        assert (code, err) == (1, f"atomic: {told}\n")
        assert out.splitlines()[1] == "  no background tasks"
        assert run(short, "--json", "4000001") == (1, "", f"atomic: {told}\n")
        assert run(short, "--list", str(door.pid))[::2] == (0, "")
        code, out, err = run(short, "--list", "zzz")
        assert (code, out, err.count("\n"), err.endswith(f"; {told}\n")) == (1, "", 1, True)
        door.end()
        assert run(short, "--list") == (1, "", f"atomic: {told}\n")


def test_one_that_listens_and_never_speaks_is_named(short: Path, door: ScriptedDoor) -> None:
    """As a program that was stopped: the system still lets one connect."""
    with ScriptedDoor(door.path.parent, pid=4_000_001) as silent:
        silent.greeting = b""
        code, out, err = run(short, "--list")
    told = "the session of pid 4000001 cannot be reached: it did not answer within 5 seconds"
    assert (code, err) == (1, f"atomic: {told}\n")
    assert out.splitlines()[1] == "  no background tasks"


def test_a_list_takes_one_place_of_an_inspector_and_no_more(short: Path, door: ScriptedDoor) -> None:
    assert run(short, "--list")[0] == 0
    assert door.visits == 1


def test_without_a_terminal_it_says_so(short: Path, door: ScriptedDoor) -> None:
    assert run(short) == (1, "", f"atomic: {NO_TERMINAL.format('stdin, stdout, stderr')}\n")


def test_the_stream_that_is_no_terminal_is_named(short: Path, door: ScriptedDoor) -> None:
    leader, follower = pty.openpty()
    try:
        told = subprocess.run(
            PROGRAM, env=environment(short), stdin=follower, stdout=follower, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(leader)
        os.close(follower)
    assert (told.returncode, told.stderr.decode()) == (1, f"atomic: {NO_TERMINAL.format('stderr')}\n")


@pytest.mark.parametrize("missing", ["textual", "rich"])
def test_without_the_extra_it_says_how_to_get_it_and_lists_all_the_same(
    short: Path, door: ScriptedDoor, missing: str
) -> None:
    start = f"import sys; sys.modules[{missing!r}] = None; from runtime.main import main; sys.exit(main(sys.argv[1:]))"
    leader, follower = pty.openpty()
    try:
        command = [sys.executable, "-c", start, "tasks"]
        child = subprocess.Popen(command, env=environment(short), stdin=follower, stdout=follower, stderr=follower)
        assert child.wait(timeout=60) == 1
        assert os.read(leader, 4096).decode() == f"atomic: {NO_TEXTUAL}\r\n"
    finally:
        os.close(leader)
        os.close(follower)
    listed = subprocess.run([*command, "--list"], env=environment(short), capture_output=True, timeout=60)
    assert (listed.returncode, listed.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [["--nope"], ["one", "two"]])
def test_a_call_that_makes_no_sense_ends_with_2(short: Path, arguments: list[str]) -> None:
    code, out, err = run(short, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
