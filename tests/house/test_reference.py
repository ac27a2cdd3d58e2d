"""docs/reference.md names every command and event there is, with examples that the wire's own types can read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import fields

from protocol.commands import COMMAND_NAMES, REPLIES
from protocol.commands import COMMANDS as PAGES
from tests.house import reference_examples as examples
from tests.house import reference_texts as texts
from tests.house.contract_facts import LATER
from tests.house.contract_table import event_names
from tests.house.reference_page import PAGE, folded, page, tag

COMMANDS = {name for names in texts.COMMANDS.values() for name in names}


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "docs/reference.md is stale: make reference"


def test_every_command_and_event_has_its_place_once() -> None:
    assert sorted(COMMAND_NAMES) == sorted(name for names in texts.COMMANDS.values() for name in names)
    assert set(texts.EVENTS) == event_names()
    assert sorted(tag(type(event)) for event in examples.EVENTS) == sorted(event_names())
    assert set(examples.DATA) <= COMMANDS - REPLIES


@pytest.mark.parametrize(
    "example",
    [
        example
        for example in (*examples.EVENTS, *examples.GROWTH, *examples.MESSAGES.values(), *examples.DATA.values())
        if isinstance(example, Struct)
    ],
    ids=lambda example: type(example).__name__,
)
def test_every_example_is_read_back_as_what_it_is(example: Struct) -> None:
    again = decode(encode(example), type=type(example))
    assert decode(encode(again)) == decode(encode(example))


@pytest.mark.parametrize("value", [{}, [], {"a": [1, {"b": "c" * 120}], "d": {}}, ["x" * 60, "y" * 60]])
def test_folding_changes_nothing_but_the_white_space(value: object) -> None:
    assert json.loads("\n".join(folded(value))) == value


def asked(agent: subprocess.Popen[bytes], command: dict[str, Any]) -> dict[str, Any]:
    """The response to one command; events that come before it are passed over."""
    assert agent.stdin and agent.stdout
    agent.stdin.write(encode(command) + b"\n")
    agent.stdin.flush()
    return next(record for record in map(decode, agent.stdout) if record["type"] == "response")


@pytest.mark.timeout(30)
def test_the_program_answers_with_the_data_that_the_page_shows(
    atomic: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    """Of the commands that need no field: there is data where the page shows some, with known keys alone. `compact` is
    refused here, since one exchange is nothing to compact."""
    flags = ["--mode", "rpc", "--provider", "scripted", "--model", "scripted", "--session-dir", str(tmp_path)]
    bare = [name for name in sorted(COMMANDS - REPLIES) if not any(each.required for each in fields(PAGES[name]))]
    with subprocess.Popen(
        [*atomic, *flags], cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as agent:
        assert asked(agent, {"type": "prompt", "message": "SAY hello"})["success"]
        answers = {name: asked(agent, {"type": name}) for name in bare if name not in {*LATER, "compact"}}
        assert agent.stdin
        agent.stdin.close()
    assert len(answers) > 20
    assert {name for name, answer in answers.items() if "data" in answer} == set(examples.DATA) & set(answers)
    for name, answer in answers.items():
        data = answer.get("data") or {}
        example = examples.DATA.get(name)
        known = {each.encode_name for each in fields(example)} if isinstance(example, Struct) else set(example or {})
        assert set(data) <= known, name
