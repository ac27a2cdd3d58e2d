"""`atomic schema` prints the whole schema or one part, and names the parts when there is no such one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from protocol.schema.documents import NAMES
from runtime.schema_command import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("argv", [[], *([name] for name in NAMES)])
def test_a_part_is_a_schema_of_its_own(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv, {}, "/") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert printed["$id"].rpartition(":")[2] == (argv[0] if argv else "atomic-rpc")


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["command"], "there is no schema 'command'; allowed: commands, responses, events, messages, entries, ui"),
        (["--all"], "there is no schema '--all'; allowed: commands"),
        (["commands", "events"], "schema takes one name at most, got 2"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(
    argv: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(argv, {}, "/") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"atomic: {told}")


def test_typescript_is_the_file_of_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["typescript"], {}, "/") == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "schema" / "atomic-rpc.d.ts").read_text(encoding="utf-8")


def test_help_names_the_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"], {}, "/") == 0
    assert "commands, responses, events, messages, entries, ui, typescript" in capsys.readouterr().out
