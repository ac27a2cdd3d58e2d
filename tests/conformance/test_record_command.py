"""`record`: client and agent see each other as if nobody stood between; the recording has it all but secrets."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.cli import main
from conformance.client import RpcClient
from conformance.recording import read_recording

Plan = Callable[..., list[str]]
ROOT = Path(__file__).resolve().parents[2]


def recording_of(command: list[str], file: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "conformance", "record", "--to", str(file), *options, "--", *command]


def start(command: list[str], **more: Any) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    env = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, bufsize=0)


def close_pipes(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def lines_of(file: Path) -> list[tuple[str, Any]]:
    return [(line.kind, line.value) for line in read_recording(file).lines]


# An agent that shows what reached it, byte for byte, and says things that are no records.
ECHO = r"""
import os, sys
os.write(2, b"hel\xc3"); os.write(2, b"\xa4lo\n")
while data := os.read(0, 100):
    os.write(1, data.replace(b"exit", b"EXIT"))
    if b"exit" in data: sys.exit(7)
os.write(1, b"half a rec")
"""


def test_bytes_pass_untouched_whatever_they_are(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    child = start(recording_of([sys.executable, "-c", ECHO], file))
    sent = b'{ "type" : "x" }\r\nnonsense\n\xff\xfe\n\n{"n":1}\n' + b"[" * 30_000 + b'\n{"cut'
    out, err = child.communicate(sent, timeout=30)
    assert (out, err, child.returncode) == (sent + b"half a rec", b"hel\xc3\xa4lo\n", 0)
    kinds = lines_of(file)
    assert [value for kind, value in kinds if kind == "in"] == [{"type": "x"}, {"n": 1}]
    raw = [value for kind, value in kinds if kind == "in_raw"]
    assert raw[:3] == ["nonsense\n", {"hex": "fffe0a"}, "\n"] and raw[4:] == ['{"cut']
    assert [value for kind, value in kinds if kind == "out_raw"][-1] == '{"cuthalf a rec'
    assert [value for kind, value in kinds if kind == "err"] == ["helälo\n"]
    assert [value for kind, value in kinds if kind in ("end", "exit")] == ["stdin", "stdout", 0]


def test_the_head_tells_the_command_and_causes_stand_above_their_effects(atomic: list[str], tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    with RpcClient(recording_of(atomic, file, "--note", "a remark")) as client:
        assert client.prompt("SAY hello").wait().text == "hello"
        assert client.bash("echo hi").result().output == "hi\n"
    recording = read_recording(file)
    assert (list(recording.command), recording.note) == (atomic, "a remark")
    assert recording.start == {"in_memory": True, "provider": "scripted", "model": "scripted"}
    kinds = [(kind, value.get("id"), value["type"]) for kind, value in lines_of(file) if kind in ("in", "out")]
    assert kinds[:4] == [
        ("in", "c1", "get_state"),
        ("out", "c1", "response"),
        ("in", "c2", "prompt"),
        ("out", "c2", "response"),
    ]
    assert kinds.index(("out", "c3", "bash_execution_update")) < kinds.index(("out", "c3", "response"))
    assert lines_of(file)[-3:] == [("end", "stdin"), ("end", "stdout"), ("exit", 0)]
    times = [line.t for line in recording.lines]
    assert None not in times and times == sorted(times, key=float)  # type: ignore[arg-type]


@pytest.mark.parametrize(("steps", "code"), [([["exit", 3]], 3), ([["kill", 9]], -9), ([["kill", 15]], -15)])
def test_the_end_of_the_agent_is_the_end_that_the_client_sees(
    agent: Plan,
    tmp_path: Path,
    steps: list[Any],
    code: int,
) -> None:
    file = tmp_path / "talk.jsonl"
    child = start(recording_of(agent(abort=steps), file))
    assert child.stdin
    child.stdin.write(b'{"type":"abort"}\n')
    child.stdin.flush()
    assert child.wait(30) == code
    child.communicate()
    assert lines_of(file)[-1] == ("exit", code)


def test_signals_reach_the_agent(tmp_path: Path) -> None:
    program = (
        "import os, signal, time\n"
        "def end(number, frame): os.write(1, b'got %d\\n' % number); os._exit(128 + number)\n"
        "signal.signal(signal.SIGTERM, end); os.write(1, b'ready\\n'); time.sleep(60)"
    )
    file = tmp_path / "talk.jsonl"
    child = start(recording_of([sys.executable, "-c", program], file))
    assert child.stdout and child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=30)
    assert (out, child.returncode) == (b"got 15\n", 143)
    assert ("signal", "TERM") in lines_of(file)


def test_closed_pipes_are_closed_on_the_other_side_too(tmp_path: Path) -> None:
    deaf = "import os, time; os.close(0); os.write(1, b'closed\\n'); time.sleep(60)"
    child = start(recording_of([sys.executable, "-c", deaf], tmp_path / "a.jsonl"))
    assert child.stdin and child.stdout and child.stdout.readline() == b"closed\n"
    with pytest.raises(BrokenPipeError):
        while True:
            child.stdin.write(b"x" * 70_000)
            child.stdin.flush()
    child.terminate()
    child.wait(30)
    close_pipes(child)
    talker = "import os\nwhile True: os.write(1, b'x' * 10_000)"
    child = start(recording_of([sys.executable, "-c", talker], tmp_path / "b.jsonl"))
    assert child.stdout and child.stderr
    child.stdout.close()
    assert b"BrokenPipeError" in child.stderr.read()
    assert child.wait(30) == 1
    close_pipes(child)


def test_a_closed_pipe_is_noticed_on_the_other_side_before_anything_is_written(tmp_path: Path) -> None:
    gone = "poll = select.poll(); poll.register(1, 0); poll.poll(); os.write(2, b'noticed')"
    child = start(recording_of([sys.executable, "-c", f"import os, select; os.close(0); {gone}"], tmp_path / "a.jsonl"))
    assert child.stdin and child.stdout and child.stderr
    poll = select.poll()
    poll.register(child.stdin, 0)
    assert poll.poll(20_000)
    child.stdout.close()
    assert child.stderr.read() == b"noticed"
    assert child.wait(30) == 0
    close_pipes(child)


def test_a_client_that_reads_late_still_gets_everything(tmp_path: Path) -> None:
    talker = "import os\nfor n in range(400): os.write(1, b'%06d' % n + b'x' * 993 + b'\\n')"
    child = start(recording_of([sys.executable, "-c", talker], tmp_path / "talk.jsonl"))
    assert child.stdout
    first = child.stdout.read(1000)
    out, _ = child.communicate(timeout=30)
    assert len(first + out) == 400_000 and (first + out).endswith(b"\n")


def test_no_secret_is_in_a_recording_and_the_agent_gets_them_all(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    secret, typed, known = "sk-very-secret", "typed-in-code", "from-the-environment"
    said = [
        {"type": "save_provider_credential", "provider": "p", "credential": {"type": "api_key", "key": secret}},
        {"type": "prompt", "message": f"my key is {secret} and {known}"},
        {"type": "extension_ui_request", "id": "u", "method": "oauth_prompt", "provider": "p"},
        {"type": "extension_ui_response", "id": "u", "value": typed},
        {"type": "model", "headers": {"x-auth": "header-secret"}, "maxTokens": 5, "tokens": {"input": 5}},
    ]
    wire = b"".join(json.dumps(record).encode() + b"\n" for record in said)
    wire += b'{"type":"x","credential":{"key":"' + secret.encode() + b'"},"apiKey":"another-one", broken\n'
    program = (
        "import os, sys; data = sys.stdin.buffer.read(); os.write(1, data)\n"
        f"os.write(2, b'{secret[:5]}'); os.write(2, b'{secret[5:]}')"
    )
    child = start(
        recording_of([sys.executable, "-c", program, "--api-key", "on-the-command-line"], file), SOME_API_KEY=known
    )
    out, _ = child.communicate(wire, timeout=30)
    assert out == wire
    text = file.read_text()
    for hidden in (secret, typed, known, "header-secret", "another-one", "on-the-command-line"):
        assert hidden not in text
    recorded = [value for kind, value in lines_of(file) if kind == "in"]
    assert recorded[0]["credential"]["type"] == "api_key" and recorded[0]["provider"] == "p"
    assert recorded[0]["credential"]["key"] in recorded[1]["message"]
    assert (recorded[4]["maxTokens"], recorded[4]["tokens"]) == (5, {"input": 5})


def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path) -> None:
    for command, told in (
        (recording_of(["/no-such-agent"], tmp_path / "a.jsonl"), "cannot be started"),
        (recording_of(["true"], tmp_path / "nowhere" / "a.jsonl"), "No such file"),
        (recording_of([], tmp_path / "a.jsonl"), "what is to be recorded stands behind --"),
    ):
        child = start(command)
        out, err = child.communicate(timeout=30)
        assert (child.returncode, out, err.count(b"\n")) == (2, b"", 1) and told in err.decode()


def test_the_kit_sees_no_difference_between_the_program_and_the_program_behind_it(atomic: list[str]) -> None:
    behind = recording_of(atomic[: atomic.index("--provider")], Path(os.devnull))
    kit = [sys.executable, "-m", "conformance", "run", "--quiet", "--profile", "atomic", "--deadline-factor", "3"]
    names = ("closed-stdout", "eof-bash", "hup", "term", "kill-nine")
    only = [word for name in names for word in ("--only", f"lifecycle/{name}")]
    run = subprocess.run([*kit, *only, "--", *behind], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_what_is_recorded_is_replayed_without_a_change_by_hand(
    atomic: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "talk.jsonl"
    with RpcClient(recording_of(atomic, file)) as client:
        assert client.prompt("SAY hello").wait().text == "hello"
    bare = atomic[: atomic.index("--provider")]
    assert main(["replay", str(file), "--profile", "atomic", "--", *bare]) == 0
    assert "no difference" in capsys.readouterr().out
