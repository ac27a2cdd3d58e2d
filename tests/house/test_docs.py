"""The pages in docs/ are true: the guide's program runs and prints what it says, the lists are those of the code."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from protocol.codec import Rejected, read_command
from protocol.commands import COMMAND_NAMES, COMMANDS, REPLACEMENTS, REPLIES

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DECISION = re.compile(r"\d{4}-[a-z0-9-]+\.md")


@pytest.fixture(scope="module")
def guide(root: Path) -> str:
    return (root / "docs" / "guide.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def protocol(root: Path) -> str:
    return (root / "docs" / "protocol.md").read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    found = re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    assert found, f'no section "{heading}"'
    return found


def rows(text: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines[2:]]


def test_the_program_of_the_guide_prints_what_the_guide_says(
    guide: str, root: Path, atomic: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    blocks = dict(BLOCK.findall(guide))
    program = blocks["python"].replace('["atomic", ', json.dumps(atomic)[:-1] + ", ")
    path = {"PYTHONPATH": str(root)} if len(atomic) > 1 else {}
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**environment, **path}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    printed, promised = run.stdout.splitlines(), blocks["text"].splitlines()
    assert sorted(printed) == sorted(promised)
    assert [line for line in printed if "stdout]" not in line] == [line for line in promised if "stdout]" not in line]


def test_the_program_of_the_guide_ends_with_1_when_the_last_answer_failed(
    guide: str, root: Path, atomic: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    program = dict(BLOCK.findall(guide))["python"].replace('["atomic", ', json.dumps(atomic)[:-1] + ", ")
    failing = program.replace("SAY That is all there is.", "FAIL no such luck")
    path = {"PYTHONPATH": str(root)} if len(atomic) > 1 else {}
    run = subprocess.run(
        [sys.executable, "-c", failing], cwd=tmp_path, env={**environment, **path}, capture_output=True, text=True
    )
    assert (run.returncode, run.stderr.count("no such luck")) == (1, 1)
    assert run.stdout.endswith("exit code 0\n")


def test_every_command_that_the_guide_tells_to_send_exists(guide: str) -> None:
    told = {
        name
        for heading in ("While it works", "Sessions")
        for row in rows(section(guide, heading))
        for name in re.findall(r"`([a-z_]+)`", row[1])
    }
    assert {"steer", "fork"} <= told
    assert sorted(told - COMMAND_NAMES - {"since"}) == []


def test_every_command_has_an_answer_in_the_session_or_at_its_desk(root: Path) -> None:
    modules = (root / "actors" / "session" / "requests").glob("*.py")
    tables = [
        node.value
        for module in modules
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict)
    ]
    answered = {ast.unparse(key) for table in tables for key in table.keys if key is not None}
    names = {name for name, kind in COMMANDS.items() if f"c.{kind.__name__}" in answered}
    assert {"prompt", "bash"} <= names
    assert names | REPLACEMENTS | REPLIES == COMMAND_NAMES


# What the first column of the table of refusals means, as a line.
REFUSED = {
    "no JSON, an empty line, nested too deep": ["nope", "", "[" * 100_000],
    "`null`, a number, a list, an object without `type`": ["null", "42", "[]", "{}"],
    "`type` is not a string": ['{"type":5}'],
    "unknown `type`": ['{"type":"context_compact"}'],
    "`id` is an array or object": ['{"id":{"a":1},"type":"get_state"}'],
    "a required field is missing": ['{"type":"bash"}'],
    "a field has another type or value": ['{"type":"set_steering_mode","mode":"both"}'],
    "the same inside a list": ['{"type":"prompt","message":"x","images":[{"type":"imag","data":"","mimeType":""}]}'],
}


def type_of(line: str) -> str | None:
    found = re.search(r'"type":"(\w+)"', line)
    return found and found[1]


def test_every_refusal_reads_as_the_table_says(protocol: str) -> None:
    table = {row[0]: row for row in rows(section(protocol, "One response for each command"))}
    assert set(table) == set(REFUSED)
    for what, lines in REFUSED.items():
        _, command, error = table[what]
        shown = error.partition("`")[2].rpartition("`")[0]
        for line in lines:
            refused = read_command(line.encode())
            assert isinstance(refused, Rejected)
            named = {"absent": None, "`parse`": "parse"}.get(command, type_of(line))
            assert refused.command == named, line
            assert refused.error.startswith(shown), line


def test_every_page_is_on_the_index(root: Path) -> None:
    index = (root / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in (root / "docs").glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"({page})" not in index} == set()


def test_every_decision_is_numbered_in_turn_and_tells_context_decision_and_consequence(root: Path) -> None:
    decisions = sorted((root / "docs" / "decisions").iterdir())
    assert all(DECISION.fullmatch(file.name) for file in decisions)
    assert [int(file.name[:4]) for file in decisions] == list(range(1, len(decisions) + 1))
    for file in decisions:
        text = file.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(file.name[:4])}. ")
        assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Context", "Decision", "Consequence"]


def test_every_file_that_a_page_names_exists(root: Path) -> None:
    named = {
        (page.name, path)
        for page in (root / "docs").rglob("*.md")
        for path in re.findall(r"`((?:actors|protocol|runtime|conformance|tests)/[\w/.]*)", page.read_text("utf-8"))
    }
    assert len(named) > 10
    assert sorted((page, path) for page, path in named if not os.path.exists(root / path)) == []
