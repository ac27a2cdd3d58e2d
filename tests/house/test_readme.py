"""The README is true: its commands are what they say, its links lead somewhere, its examples run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(text) if kind == language]


def test_set_up_is_exactly_two_commands_of_one_line_each(readme: str) -> None:
    set_up = readme.partition("## Set-up\n")[2].partition("\n## ")[0]
    assert [body.splitlines() for body in blocks(set_up, "sh")] == [["make demo"], ["make test"]]


def test_no_other_block_asks_to_install_anything(readme: str) -> None:
    words = {word for body in blocks(readme, "sh") for word in body.split()}
    assert words & {"apt", "apt-get", "brew", "curl", "pip", "pipx", "uv", "-m"} == set()
    assert [word for word in words if word == "make"] == ["make"]


def test_every_relative_link_leads_to_a_file(root: Path) -> None:
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    links = [(page, link) for page in pages for link in LINK.findall(page.read_text(encoding="utf-8"))]
    assert links
    dead = [(page.name, link) for page, link in links if "://" not in link and not (page.parent / link).exists()]
    assert dead == []


def test_every_flag_that_the_readme_names_is_known(root: Path, readme: str) -> None:
    code = "from runtime.cli import parse_arguments; parse_arguments(['--help'], {})"
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    known = set(re.findall(r"--[a-z][a-z-]+", run.stdout))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", readme))
    assert {"--mode", "--no-session"} <= named
    assert sorted(named - known) == []


def with_this_command(text: str, atomic: list[str]) -> str:
    """An example, changed to use the command beside the interpreter that runs the tests."""
    if len(atomic) != 1:
        pytest.skip("the atomic command is not installed beside this interpreter")
    assert ".venv/bin/atomic" in text
    return text.replace(".venv/bin/atomic", atomic[0])


@pytest.mark.timeout(20)
def test_the_example_by_hand_answers_while_stdin_is_held_open(
    readme: str, atomic: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    example, *_ = (body for body in blocks(readme, "sh") if "--provider scripted" in body)
    script = with_this_command(example, atomic)
    with subprocess.Popen(
        ["bash", "-c", script], cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdin and shell.stdout
        types, deltas = [], []
        for line in shell.stdout:
            record = json.loads(line)
            types.append(record["type"])
            deltas.append(record.get("assistantMessageEvent", {}).get("delta", ""))
            if record["type"] == "agent_settled":
                shell.stdin.close()
    assert "".join(deltas) == "Hello from the scripted model."
    assert types[-1] == "agent_settled"
    assert shell.returncode == 0


def test_the_example_from_a_program_prints_the_answer(
    readme: str, atomic: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    (example,) = blocks(readme, "python")
    command = [sys.executable, "-c", with_this_command(example, atomic)]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "Hello to the program.\n"


def test_the_example_from_a_program_tells_of_a_failure_of_the_provider(
    readme: str, atomic: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    (example,) = blocks(readme, "python")
    failing = with_this_command(example, atomic).replace("SAY Hello", "FAIL no such luck")
    command = [sys.executable, "-c", failing]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (1, "")
    assert "no such luck" in run.stderr


def test_the_typed_examples_are_commands_of_one_line(readme: str) -> None:
    typed = [json.loads(line) for body in blocks(readme, "json") for line in body.splitlines()]
    assert [command["type"] for command in typed] == ["bash", "get_state"]
