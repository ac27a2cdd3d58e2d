"""Session files as a client and a second program leave them: in use, cut short, of odd versions, links, in the way."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent

Start = Callable[..., Agent]
Record = dict[str, Any]

LOST = "Session file lost 1 unreadable line in becoming version 3: "


def session_path(a: Agent) -> Path:
    return Path(a.request("get_state")["data"]["sessionFile"])


def refusal(a: Agent, command: str, **fields: Any) -> str:
    """Why it is refused; the session that was current is current after it."""
    before = a.request("get_state")["data"]["sessionId"]
    response = a.request(command, **fields)
    assert response["success"] is False and a.request("get_state")["data"]["sessionId"] == before
    return str(response["error"])


def opens(a: Agent, command: str, **fields: Any) -> list[str]:
    """The texts of the user messages in the session that is current now."""
    assert a.request(command, **fields)["success"]
    messages = a.request("get_messages")["data"]["messages"]
    return [message["content"] for message in messages if message["role"] == "user"]


def stored(path: Path, cwd: Path, *texts: str, version: str | None = "3", more: bytes = b"") -> Path:
    """A session file with these user messages, then the bytes `more`."""
    path.parent.mkdir(exist_ok=True)
    numbered = "" if version is None else f'"version":{version},'
    lines = [f'{{"type":"session",{numbered}"id":"s-{path.stem}","timestamp":"t","cwd":{json.dumps(str(cwd))}}}']
    for number, text in enumerate(texts):
        message = {"role": "user", "content": text, "timestamp": 1}
        parent = f"e{number - 1}" if number else None
        entry = {"type": "message", "id": f"e{number}", "parentId": parent, "timestamp": "t", "message": message}
        lines.append(json.dumps(entry))
    path.write_bytes("".join(f"{line}\n" for line in lines).encode() + more)
    return path


def roles(path: Path) -> list[str]:
    """Of all messages in a file whose every line is whole."""
    assert path.read_bytes().endswith(b"\n")
    entries = [json.loads(text) for text in path.read_bytes().splitlines()]
    return [entry["message"]["role"] for entry in entries if entry["type"] == "message"]


# ---- importing ---------------------------------------------------------------------------------------------------


@pytest.mark.shows("import_session", error="Session file is in use by another process: …")
def test_an_import_never_takes_the_place_of_a_session_that_another_process_has_open(
    agent: Start, home: Any, tmp_path: Path
) -> None:
    with agent() as holder, agent() as a:
        holder.prompt("SAY one")
        path = session_path(holder)
        source = stored(tmp_path / "in" / path.name, home.cwd, "theirs")
        told = f"Session file is in use by another process: {path}"
        assert refusal(a, "import_session", inputPath=str(source)) == told
        holder.prompt("SAY two")
        assert roles(path) == ["user", "assistant"] * 2
        assert home.session_files() == [path]


def test_an_imported_session_is_locked_and_private(agent: Start, home: Any, tmp_path: Path) -> None:
    source = stored(tmp_path / "in" / "x.jsonl", home.cwd, "hi")
    source.chmod(0o644)
    old = stored(home.sessions / "x.jsonl", home.cwd, "old")
    with agent() as a, agent() as other:
        assert opens(a, "import_session", inputPath=str(source)) == ["hi"]
        assert old.stat().st_mode & 0o777 == 0o600
        told = f"Session file is in use by another process: {old}"
        assert refusal(other, "switch_session", sessionPath=str(old)) == told
        assert refusal(other, "import_session", inputPath=str(source)) == told
        a.prompt("SAY more")
        assert roles(old) == ["user", "user", "assistant"]


def test_an_import_onto_a_full_disk_leaves_what_was_there(agent: Start, home: Any, tmp_path: Path) -> None:
    source = stored(tmp_path / "in" / "x.jsonl", home.cwd, "w" * 10_000)
    old = stored(home.sessions / "x.jsonl", home.cwd, "old")
    before = old.read_bytes()
    with agent() as a:
        resource.prlimit(a.pid, resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
        told = f"Session file cannot be written: {old}: File too large"
        assert refusal(a, "import_session", inputPath=str(source)) == told
        assert old.read_bytes() == before and os.listdir(home.sessions) == ["x.jsonl"]
        resource.prlimit(a.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert opens(a, "import_session", inputPath=str(source)) == ["w" * 10_000]


def test_an_import_onto_a_folder_or_a_pipe_is_refused_by_name(agent: Start, home: Any, tmp_path: Path) -> None:
    folder, pipe = home.sessions / "d.jsonl", home.sessions / "p.jsonl"
    folder.mkdir()
    os.mkfifo(pipe)
    sources = [stored(tmp_path / "in" / name, home.cwd, "hi") for name in ("d.jsonl", "p.jsonl")]
    with agent() as a:
        told = [refusal(a, "import_session", inputPath=str(source)) for source in sources]
    assert told == [f"Session file is a directory: {folder}", f"Session file is not a regular file: {pipe}"]


@pytest.mark.shows("import_session", error="File not found: …")
def test_a_relative_path_is_named_whole_when_the_folder_of_the_program_is_gone(agent: Start, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with agent(cwd=gone) as a:
        a.request("get_state")
        gone.rmdir()
        assert refusal(a, "import_session", inputPath="x.jsonl") == f"File not found: {gone}/x.jsonl"


# ---- what other programs do to a file that is open -----------------------------------------------------------------


def test_a_torn_line_of_another_program_costs_nothing_of_ours(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        path = session_path(a)
        with path.open("ab") as file:
            file.write(b'{"type":"mess')
        a.prompt("SAY two")
    with agent("--session", str(path)) as again:
        assert len(again.request("get_messages")["data"]["messages"]) == 4
        assert f"Session file has 1 unreadable line: {path}" in again.stderr


def test_a_file_that_was_cut_short_is_told_and_nothing_is_said_to_be_stored(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        path = session_path(a)
        os.truncate(path, 100)
        a.prompt("SAY two")
        last = [record["message"] for record in a.records if record["type"] == "message_end"][-1]
        assert last["stopReason"] == "error" and "truncated by another program" in last["errorMessage"]
        refused = a.request("bash", command="echo PRECIOUS")
        assert refused["success"] is False and "PRECIOUS" in refused["error"]
        assert path.stat().st_size == 100


# ---- versions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["true", "null", '"3"', "3.5", "-1"])
def test_a_version_that_is_none_is_refused_and_the_file_stays(
    agent: Start, home: Any, tmp_path: Path, version: str
) -> None:
    path = stored(tmp_path / "x.jsonl", home.cwd, "hi", version=version)
    before = path.read_bytes()
    told = f'Session file has an invalid header: {path}: "version" must be a whole number from 1 up, got {version}'
    with agent() as a:
        assert refusal(a, "switch_session", sessionPath=str(path)) == told
        assert refusal(a, "import_session", inputPath=str(path)) == told
    assert path.read_bytes() == before and home.session_files() == []
    started = agent("--session", str(path))
    assert started.wait_exit() == 1 and started.stderr.count("\n") == 1 and told in started.stderr


def test_an_old_file_keeps_what_is_nested_too_deep_and_tells_what_it_loses(
    agent: Start, home: Any, tmp_path: Path
) -> None:
    deep = b'{"type":"custom","customType":"x","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    first = stored(tmp_path / "v1.jsonl", home.cwd, "hi", "there", version=None, more=deep + b"torn {\n")
    second = stored(tmp_path / "v2.jsonl", home.cwd, "hi", version="2.0", more=b"torn {\n" + deep)
    with agent() as a:
        assert opens(a, "switch_session", sessionPath=str(first)) == ["hi", "there"]
        a.prompt("SAY more")
        assert opens(a, "switch_session", sessionPath=str(second)) == ["hi"]
        for path in (first, second):
            assert f"{LOST}{path}\n" in a.stderr
            assert deep in path.read_bytes() and b"torn" not in path.read_bytes()
        assert len(opens(a, "switch_session", sessionPath=str(first))) == 3


# ---- places where no file can be ---------------------------------------------------------------------------------


def test_a_link_without_target_leads_to_a_session_at_the_target(agent: Start, home: Any, tmp_path: Path) -> None:
    link, target = tmp_path / "link.jsonl", tmp_path / "real.jsonl"
    link.symlink_to(target)
    with agent() as a:
        assert opens(a, "switch_session", sessionPath=str(link)) == []
        a.prompt("SAY one")
        assert roles(target) == ["user", "assistant"] and link.is_symlink()
        assert len(opens(a, "switch_session", sessionPath=str(link))) == 1
