"""Hundreds of shell requests at once: they end together as fast as one by one, and nobody survives."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from conformance.driver import Agent, line

Start = Callable[..., Agent]
MANY = 300
ID_OF_ABORT = "abort"


def start_many(a: Agent, command: str, count: int = MANY) -> None:
    """Each command prints one line once it runs."""
    a.send_raw(b"".join(line("bash", id=f"b{number}", command=command) for number in range(count)))
    wait_for_many(a, "bash_execution_update", count)


def wait_for_many(a: Agent, type_: str, count: int, since: int = 0) -> None:
    seen = 0

    def is_last(record: dict[str, Any]) -> bool:
        nonlocal seen
        seen += int(record["type"] == type_)
        return seen == count

    a.wait(is_last, since=since)


def ids_of_shells(a: Agent) -> list[str]:
    return sorted(record["id"] for record in a.records if record["type"] == "response" and record["id"] != ID_OF_ABORT)


@pytest.mark.parametrize("command", ["echo up; exec sleep 297", "echo up; timeout 200 sleep 297 | cat; echo no"])
def test_one_abort_ends_hundreds_of_commands_at_once(agent: Start, command: str) -> None:
    with agent(session=False) as a:
        start_many(a, command)
        began = time.monotonic()
        a.send("abort_bash", id=ID_OF_ABORT)
        wait_for_many(a, "response", MANY + 1)
        assert time.monotonic() - began < 10  # 0.4 and 0.9 s when nothing else runs; 41 s when each listed them all
        assert ids_of_shells(a) == sorted(f"b{number}" for number in range(MANY))
        ended = [record["data"] for record in a.records if record["type"] == "response" and "data" in record]
        assert [data["output"] for data in ended if data["cancelled"]] == ["up\n"] * MANY
        assert a.orphans(deadline=5) == []


def test_at_the_end_of_the_input_hundreds_of_running_commands_are_answered(agent: Start) -> None:
    with agent(session=False) as a:
        start_many(a, "echo up; exec sleep 297")
        a.close_stdin()
        assert a.wait_exit() == 0
        assert ids_of_shells(a) == sorted(f"b{number}" for number in range(MANY))
        assert a.stderr == ""  # no deadline has passed
        assert a.orphans(deadline=5) == []


def test_at_the_end_of_the_input_what_hundreds_of_commands_left_behind_is_killed(agent: Start) -> None:
    with agent(session=False) as a:
        start_many(a, "sleep 297 >/dev/null 2>&1 & echo up", 200)
        wait_for_many(a, "response", 200)
        assert len(a.orphans()) == 200
        a.close_stdin()
        assert a.wait_exit() == 0 and a.stderr == ""
        assert a.orphans(deadline=5) == []
