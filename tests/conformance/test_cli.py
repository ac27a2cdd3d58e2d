"""The command line of the kit: exit codes, misuse in one line, and each subcommand end to end on a small agent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from conformance.cli import SUBCOMMANDS, main

AGENT = Path(__file__).with_name("small_agent.py")
CASE = [
    {
        "format": 1,
        "title": "A prompt settles",
        "level": "contract",
        "shows": {"file": "rpc-protocol.md", "heading": "prompt", "says": "something"},
        "needs": ["event:agent_settled"],
    },
    {"send": [{"id": "b", "type": "bash", "command": "x"}, {"id": "1", "type": "prompt", "message": "hi"}]},
    {"expect": {"type": "response", "id": "b", "success": True}},
    {"expect": {"type": "agent_settled"}, "deadline": 0.3},
]


RUN = ["run", "--schema", "off"]  # the small agent says less than the schema asks for


@pytest.fixture
def case(tmp_path: Path) -> str:
    file = tmp_path / "settles.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in CASE))
    return str(file)


def agent(fault: str = "") -> list[str]:
    return ["--", sys.executable, "-I", "-S", str(AGENT), f"--break={fault}"]


def test_a_program_that_does_it_right_gives_0(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, case, *agent()]) == 0
    assert "ok " in capsys.readouterr().out


def test_a_fault_gives_1_and_is_told(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, case, *agent("late-delta")]) == 1
    text = capsys.readouterr().out
    assert "FAIL settles (contract)" in text
    assert "rule shell-deltas: a delta after the response of its request" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("fault", "told"),
    [("agent_settled", "it never sends agent_settled"), ("no-bash", "it answers: Unknown command: bash")],
)
def test_a_missing_feature_is_no_fault_but_no_pass(
    case: str, fault: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--quiet", case, *agent(fault)]) == 1
    assert told in capsys.readouterr().out
    assert main([*RUN, "--quiet", "--allow-missing", case, *agent(fault)]) == 0


def test_reports_are_written_for_machines(case: str, tmp_path: Path) -> None:
    files = {kind: tmp_path / kind for kind in ("json", "junit", "text")}
    words = [word for kind, file in files.items() for word in ("--report", kind, str(file))]
    assert main([*RUN, "--quiet", *words, case, *agent("late-delta")]) == 1
    report = json.loads(files["json"].read_text())
    assert report["counts"]["contract"] == {"passed": 0, "failed": 1, "missing": 0, "error": 0}
    assert report["cases"][0]["faults"][0]["rule"] == "shell-deltas"
    suite = ElementTree.parse(files["junit"]).getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("name"), suite.get("failures")) == ("contract", "1")
    assert "FAIL settles" in files["text"].read_text()


def lives(pid: int) -> bool:
    """What was killed may still have a number, until whoever adopted it has asked how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("subcommand", "signal_"),
    [
        ("run", signal.SIGINT),
        ("run", signal.SIGTERM),
        ("run", signal.SIGHUP),
        ("stress", signal.SIGTERM),
        ("replay", signal.SIGTERM),
    ],
)
def test_a_signal_that_ends_a_run_leaves_nothing_behind(
    subcommand: str, signal_: signal.Signals, case: str, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    recording = tmp_path / "r.jsonl"
    recording.write_text('{"recording": 1}\n{"in": {"id": "1", "type": "prompt"}}\n{"end": "stdin"}\n')
    file = {"run": [case], "stress": [], "replay": [str(recording)]}[subcommand]
    told = tmp_path / "pid"
    os.mkfifo(told)
    stub = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); sys.stdin.read()"
    words = [
        sys.executable,
        "-m",
        "conformance",
        subcommand,
        *file,
        "--deadline-factor",
        "0.2",
        "--",
        sys.executable,
        "-c",
        stub,
        str(told),
    ]
    usual = signal.signal(signal_, signal.SIG_DFL)  # under nohup, or behind &, it would be ignored by the kit too
    try:
        kit = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(scratch)}, stdout=subprocess.DEVNULL)
    finally:
        signal.signal(signal_, usual)
    with kit:
        agent_ = int(told.read_text())  # until it runs
        kit.send_signal(signal_)
        assert kit.wait(60) == 128 + signal_
    assert list(scratch.iterdir()) == []
    assert not lives(agent_)


REPLY = {"reply": {"text": [{"gate": "held"}, "x"]}}
WAITS: dict[str, list[Any]] = {
    "a record": [{"expect": {"type": "never"}}],
    "a gate": [REPLY, {"reached": "held"}],
    "a request": [{"request": 1}],
    "a file": [{"file": "cwd/never", "eventually": True}],
    "a command": [{"shell": "sleep 321"}],
    "an exit": [{"exit": 0}],
}


@pytest.mark.parametrize("what", WAITS)
def test_a_run_that_is_stopped_waits_for_no_deadline(what: str, tmp_path: Path) -> None:
    begun = {"shell": "echo up > {{home}}/../../up"}
    lines: list[Any] = [{**CASE[0], "needs": []}, *WAITS[what][:-1], begun, WAITS[what][-1]]
    case, scratch = tmp_path / "waits.jsonl", tmp_path / "scratch"
    scratch.mkdir()
    os.mkfifo(scratch / "up")
    case.write_text("".join(json.dumps(line) + "\n" for line in lines))
    stub = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    words = [sys.executable, "-m", "conformance", "run", str(case), "--deadline-factor", "100", "--", *stub]
    with subprocess.Popen(words, env={**os.environ, "TMPDIR": str(scratch)}, stdout=subprocess.PIPE) as kit:
        assert (scratch / "up").read_text() == "up\n"
        kit.send_signal(signal.SIGTERM)
        assert kit.wait(60) == 143  # the deadlines of the case are a thousand seconds
        assert kit.stdout is not None
        assert kit.stdout.read() == b""
    assert [file.name for file in scratch.iterdir()] == ["up"]


@pytest.mark.parametrize("ignored", [False, True])
def test_an_interrupt_while_the_command_begins_has_no_traceback(ignored: bool) -> None:
    """It comes with the import of its modules."""
    early = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, path, target=None):
        if name == "conformance.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
sys.argv = ["atomic-conformance", "list", "--only", "framing/null"]
from conformance.start import main
sys.exit(main())
"""
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    try:
        run = subprocess.run([sys.executable, "-c", early], capture_output=True, text=True, check=False, timeout=60)
    finally:
        signal.signal(signal.SIGINT, usual)
    assert (run.returncode, run.stderr) == (0 if ignored else 130, "")
    assert ("1 cases" in run.stdout) is ignored


MISUSE = [
    (["run"], "what is to be tested stands behind --"),
    (["run", "--only", "no/such", "--", "x"], "no case is chosen"),
    (["run", "--only", "framing", "--only", "framing/nope", "--", "x"], "no case is chosen by 'framing/nope'"),
    (["list", "--only", "framing", "--only", "nope"], "no case is chosen by 'nope'"),
    (["run", "nowhere.jsonl", "--", "x"], "nowhere.jsonl"),
    (["run", "--report", "json", "/proc/nope/x.json", "--", "x"], "--report json /proc/nope/x.json: No such file"),
    (["stress", "--json", "/proc/nope/x.json", "--", "x"], "--json /proc/nope/x.json: No such file"),
    (["run", "--report", "html", "f", "--", "x"], "--report html: allowed are text, json, junit"),
    (["run", "--profile", "nobody", "--", "x"], "no profile 'nobody': neither a file nor one of atomic, pi"),
    (["show", "no/such"], "no case is chosen by 'no/such'"),
    (["replay", "nowhere", "--", "x"], "nowhere"),
    (["compare", "nowhere", "elsewhere"], "nowhere"),
]


@pytest.mark.parametrize(("words", "told"), MISUSE, ids=[" ".join(row[0]) for row in MISUSE])
def test_misuse_is_one_line_and_2(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert told in printed.err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--jobs", "0"],
        ["run", "--deadline-factor", "0"],
        ["mutate", "--chance", "5"],
        ["mutate", "--chance", "-1"],
        ["mutate", "--chance", "nan"],
        ["mutate", "--die-after", "-3"],
        ["stress", "--workers", "0"],
        ["stress", "--seconds", "inf"],
        ["stress", "--memory", "x"],
    ],
    ids=" ".join,
)
def test_a_number_out_of_its_range_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--", "x"])
    assert ended.value.code == 2
    assert f"argument {words[1]}: a " in capsys.readouterr().err


def test_where_a_replay_is_written_is_looked_at_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = tmp_path / "r.jsonl"
    recording.write_text('{"recording": 1}\n{"end": "stdin"}\n')
    assert main(["replay", str(recording), "--write", "/proc/nope/x", "--", "/no/such/program"]) == 2
    assert "--write /proc/nope/x: No such file" in capsys.readouterr().err
    assert main(["replay", str(recording), "--write", str(tmp_path / "new"), "--", "/no/such/program"]) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["r.jsonl"]


def test_a_profile_that_lacks_what_no_case_needs_is_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"name": "mine", "lacks": {"compact": "x", "persist": "x", "nonsense": "x"}}')
    assert main([*RUN, "--profile", str(file), case, *agent()]) == 2
    assert "the profile mine lacks 'nonsense', which no case needs" in capsys.readouterr().err


def test_a_command_that_does_not_start_is_an_error_of_the_call(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, case, case, "--", "/no/such/program"]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("the command does not start")) == ("", 1)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "conformance", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.close()
        assert (listing.stderr.read(), listing.wait(60)) == (b"", 141)


def test_an_interrupt_while_a_subcommand_is_imported_has_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.import_module", interrupted)
    assert main(["list"]) == 130


def test_every_subcommand_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in SUBCOMMANDS:
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        assert name in capsys.readouterr().out


def test_a_case_is_listed_and_shown(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", case]) == 0
    assert "settles" in capsys.readouterr().out
    assert main(["show", case]) == 0
    shown = capsys.readouterr().out
    assert "needs  event:agent_settled, bash, prompt" in shown
    assert '  4  expect         {"type": "agent_settled"}  [deadline 0.3]' in shown


def test_a_recording_is_replayed_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text('{"recording": 1}\n{"in": {"id": "b", "type": "bash", "command": "x"}}\n{"end": "stdin"}\n')
    assert main(["replay", str(first), "--write", str(second), *agent()]) == 1  # the first knows no answer yet
    assert main(["replay", str(second), *agent()]) == 0
    assert main(["compare", str(second), str(second)]) == 0
    assert main(["compare", str(first), str(second)]) == 1
    assert main(["replay", str(second), "--deadline-factor", "0.03", *agent("lost-output")]) == 1
    assert "data.output" in capsys.readouterr().out


def test_a_recording_of_the_older_format_is_converted(tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text('{"t": 0, "dir": "in", "line": {"type": "abort"}}\n{"t": 1, "dir": "out-eof", "line": null}\n')
    assert main(["convert", str(old), str(new)]) == 0
    assert main(["compare", str(new), str(new)]) == 0
