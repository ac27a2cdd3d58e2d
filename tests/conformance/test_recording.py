"""Recordings: written and read again they are the same, the older format becomes the new, and a wrong line is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.recording import (
    Line,
    Recording,
    RecordingError,
    convert,
    raw_bytes,
    raw_value,
    read_recording,
    write_recording,
)

LINES = (
    Line("in", {"id": "1", "type": "get_state"}, 0.001),
    Line("in_raw", {"hex": "ff0a"}),
    Line("out", {"type": "response", "text": "\ud83d \u2028"}),
    Line("out_raw", "oops"),
    Line("err", "text\n"),
    Line("end", "stdin"),
    Line("signal", "TERM"),
    Line("exit", -15, 2.5),
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    recording = Recording(("atomic",), {"in_memory": True}, ("hello",), "a note", LINES)
    file = tmp_path / "r.jsonl"
    with file.open("wb") as out:
        write_recording(out, recording)
    assert read_recording(file) == recording
    assert recording.records == [LINES[2].value]


def test_bytes_that_are_no_text_survive() -> None:
    for data in (b"text\n", b"\xff\xfe\n", b""):
        assert raw_bytes(raw_value(data)) == data


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1: the head has"),
        ('{"t": 0, "dir": "meta", "line": {}}', "`convert` reads others"),
        ('{"recording": 1, "argv": []}', ":1: the head has no field 'argv'"),
        ('{"recording": 1}\n{"in": {}, "out": {}}', ":2: a line has one of in, in_raw"),
        ('{"recording": 1}\n\n{"t": 1}', ":3: a line has one of"),
        ('{"recording": 1}\n[]', ":2: a line is a JSON object, not []"),
        ('{"recording": 1}\n{', ":2: not JSON"),
        ('{"recording": 1}\n{"in": "text"}', ':2: in is "text"; allowed is an object'),
        ('{"recording": 1}\n{"out": []}', ":2: out is []; allowed is an object"),
        ('{"recording": 1}\n{"in_raw": {"hex": "zz"}}', ":2: in_raw is"),
        ('{"recording": 1}\n{"out_raw": 5}', ":2: out_raw is 5; allowed is a string or"),
        ('{"recording": 1}\n{"err": null}', ":2: err is null; allowed is a string"),
        ('{"recording": 1}\n{"end": "both"}', ':2: end is "both"; allowed is "stdin" or "stdout"'),
        ('{"recording": 1}\n{"signal": "TREM"}', ':2: signal is "TREM"'),
        ('{"recording": 1}\n{"exit": "0"}', ':2: exit is "0"'),
        ('{"recording": 1}\n{"t": "x", "exit": 0}', ':2: t is "x"; allowed is a number of seconds'),
        ('{"recording": 1}\n{"in": ' + "[" * 200_000, ":2: it is nested too deep"),
        ('{"recording": 1, "command": "x"}', ':1: the head: command is "x"; allowed is a list of strings'),
        ('\n{"recording": 1, "replies": 5}', ":2: the head: replies is 5; allowed is a list of replies"),
        ('{"recording": 1, "start": {"files": {"cwd/../x": ""}}}', ":1: the head: start is"),
        ('{"recording": 1, "start": {"args": ["{{nope}}"]}}', "without the name 'nope'"),
        ('{"recording": 1, "start": {"nope": 1}}', ", not nope"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(text)
    with pytest.raises(RecordingError) as refused:
        read_recording(file)
    assert told in str(refused.value)


def converted(tmp_path: Path, *rows: tuple[str, Any]) -> Recording:
    file = tmp_path / "old.jsonl"
    file.write_text("".join(json.dumps({"t": 1.0, "dir": kind, "line": value}) + "\n" for kind, value in rows))
    return convert(file)


def test_the_older_format_becomes_the_new(tmp_path: Path) -> None:
    provider = {"baseUrl": "http://127.0.0.1:1", "api": "anthropic-messages", "apiKey": "k", "models": [{"id": "x"}]}
    meta = {"argv": ["atomic", "--no-session"], "models": {"providers": {"fake": provider}}}
    rows = [("meta", meta), ("in", {"type": "abort"}), ("in-raw", "x\n"), ("out", {"type": "response"})]
    recording = converted(tmp_path, *rows, ("out-eof", None), ("exit", {"rc": 0, "after_s": 1}))
    assert [line.kind for line in recording.lines] == ["in", "in_raw", "out", "end", "end", "exit"]
    assert [line.value for line in recording.lines[3:]] == ["stdin", "stdout", 0]
    assert recording.start["models"]["fake"]["baseUrl"] == "{{url}}"
    assert (recording.start["provider"], recording.start["model"], recording.start["in_memory"]) == ("fake", "x", True)


def test_a_note_tells_where_stdin_was_closed(tmp_path: Path) -> None:
    recording = converted(tmp_path, ("in", {}), ("note", "closing stdin"), ("out", {}), ("exit", {"rc": 0}))
    assert [line.kind for line in recording.lines] == ["in", "end", "out", "exit"]


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("in", "text", ':2: line is "text"; allowed is an object'),
        ("out", [], ":2: line is []; allowed is an object"),
        ("in-raw", {}, ":2: line is {}; allowed is a string"),
        ("err", None, ":2: line is null; allowed is a string"),
        ("meta", "x", ':2: line is "x"; allowed under meta is an object'),
        ("exit", {}, ":2: line is {}; allowed under exit is an object with the exit code"),
        ("exit", {"rc": "x"}, ':2: rc is "x"; allowed is an exit code'),
    ],
)
def test_a_line_of_the_older_format_is_refused_by_its_number(tmp_path: Path, kind: str, value: Any, told: str) -> None:
    with pytest.raises(RecordingError) as refused:
        converted(tmp_path, ("in", {"type": "abort"}), (kind, value))
    assert told in str(refused.value)


def test_an_unknown_direction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match='dir is "sideways"; allowed are in, in-raw'):
        converted(tmp_path, ("sideways", {}))
