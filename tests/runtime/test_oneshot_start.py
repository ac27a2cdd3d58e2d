"""What the one-shot modes load and make before they start, and that RPC mode pays for none of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from actors.session.file import OpenedSession, Stamps, new_session
from protocol.codec import decode_any
from runtime.cli import Options
from runtime.oneshot import plan_one_shot

ROOT = Path(__file__).resolve().parents[2]
ONLY_HERE = {
    "actors.oneshot",
    "actors.printer",
    "actors.print_stream",
    "runtime.oneshot",
    "runtime.prompt_files",
    "shtab",
}


@pytest.fixture
def session() -> OpenedSession:
    return new_session(Stamps(lambda: 0, lambda: "s", lambda: "u"), "/project", None, parent_session="/p.jsonl")


def test_rpc_mode_loads_nothing_of_them() -> None:
    code = "import runtime.main, runtime.startup, runtime.wiring, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) & ONLY_HERE == set()


def test_the_header_of_json_mode_is_that_of_the_session(session: OpenedSession) -> None:
    plan = plan_one_shot(Options(mode="json"), session, "/", reads_stdin=False, resize_images=True)
    header, _ = plan.form.take(b'{"type":"agent_start"}\n')
    assert decode_any(header) == {
        "type": "session",
        "version": 3,
        "id": "s",
        "timestamp": "1970-01-01T00:00:00.000Z",
        "cwd": "/project",
        "parentSession": "/p.jsonl",
    }
    assert not plan.prompts.tells_errors


def test_bytes_of_an_argument_that_are_no_text_become_replacement_characters(session: OpenedSession) -> None:
    plan = plan_one_shot(
        Options(mode="text", messages=("a\udcff",)), session, "/", reads_stdin=True, resize_images=True
    )
    assert plan.prompts.messages == ("a\ufffd",)
    assert plan.prompts.tells_errors and plan.prompts.earlier is None
