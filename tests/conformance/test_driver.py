"""The driver against a small child that does on command what an agent does, and what none should."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.driver import Agent, line, matches, parse_record

CHILD = r"""
import json, os, signal, subprocess, sys

def say(**record):
    os.write(1, json.dumps(record).encode() + b"\n")

for command in sys.stdin:
    c = json.loads(command)
    kind = c["type"]
    if kind == "write":
        os.write(1, bytes.fromhex(c["hex"]))
        continue
    if kind == "complain":
        sys.stderr.write(c["text"] + "\n"); sys.stderr.flush()
    if kind == "exit":
        sys.exit(c["code"])
    if kind == "ignore_eof":
        say(type="response", id=c["id"])
        sys.stdin.read()
        signal.pause()
    if kind == "spawn":
        script = "sleep %s <&- >&- 2>&- & echo $!; exec >&- 2>&-; wait" % c["seconds"]
        pipes = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        shell = subprocess.Popen(["sh", "-c", script], start_new_session=True, **pipes)
        say(type="spawned", pids=[shell.pid, int(shell.stdout.readline())])
    if kind == "flood":
        for i in range(c["count"]):
            say(type="flood", i=i, pad="x" * 1000)
    if kind == "prompt":
        say(type="response", id=c["id"], success=c["message"] != "refuse me", error="busy")
        say(type="agent_end"); say(type="agent_settled")
        continue
    if kind == "late":
        say(type="noise", about=c["id"])
    say(type="response", id=c["id"], command=kind, success=True, data={"list": [{"n": 1}, {"n": 2}]})
"""


@pytest.fixture
def child(tmp_path: Path) -> list[str]:
    path = tmp_path / "child.py"
    path.write_text(CHILD)
    return [sys.executable, str(path)]


@pytest.fixture
def agent(child: list[str]) -> Iterator[Agent]:
    with Agent(child) as running:
        yield running


def test_a_request_returns_the_response_to_its_own_id(agent: Agent) -> None:
    first, second = agent.request("echo"), agent.request("echo", id="mine")
    assert first["id"] != second["id"] == "mine"
    assert agent.responses("mine") == [second]


def test_records_of_one_write_are_all_answered(agent: Agent) -> None:
    agent.send_raw(line("echo", id=1) + line("echo", id=2))
    agent.wait({"type": "response", "id": 2})
    assert [record["id"] for record in agent.records] == [1, 2]


def test_a_wait_finds_what_came_before_it_and_a_cursor_hides_that(agent: Agent) -> None:
    agent.request("echo", id="old")
    assert agent.wait({"id": "old"})["command"] == "echo"
    with pytest.raises(AssertionError, match="no record"):
        agent.wait({"id": "old"}, since=agent.cursor, deadline=0.05)


def test_a_prompt_returns_the_records_up_to_the_settled_agent(agent: Agent) -> None:
    agent.prompt("first")
    run = agent.prompt("second")
    assert [record["type"] for record in run] == ["response", "agent_end", "agent_settled"]
    assert run[0]["id"] == "c2"


def test_a_refused_prompt_raises(agent: Agent) -> None:
    with pytest.raises(AssertionError, match="refused"):
        agent.prompt("refuse me")


def test_a_wait_ends_with_stdout_and_tells_what_was_said(child: list[str]) -> None:
    with Agent(child) as agent:
        agent.request("complain", text="out of luck")
        agent.send("exit", code=3)
        with pytest.raises(AssertionError, match=r"(?s)agent_end.*before stdout ended.*complain.*out of luck"):
            agent.wait({"type": "agent_end"})
        assert agent.wait_exit() == 3


def test_stderr_can_be_waited_for(agent: Agent) -> None:
    agent.send("complain", text="one line")
    assert agent.wait_stderr("one line") == "one line\n"


def test_none_since_sees_everything_before_the_answer_of_its_round_trip(agent: Agent) -> None:
    start = agent.cursor
    agent.send("late", id="a")
    with pytest.raises(AssertionError, match="unwanted record"):
        agent.none_since({"type": "noise"}, start)
    agent.none_since({"type": "noise"}, agent.cursor)


@pytest.mark.parametrize(
    "raw",
    [b"hello", b"", b"[1]", b"null", b'{"a":1}{"b":2}', b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":1}\r', b' {"a":1}'],
)
def test_a_line_that_is_not_exactly_one_json_object_fails_the_test(child: list[str], raw: bytes) -> None:
    agent = Agent(child)
    agent.send("write", hex=(raw + b"\n").hex())
    agent.request("echo")
    with pytest.raises(AssertionError, match="line 1 of stdout is not one JSON object"):
        agent.close()
    assert agent.raw_lines[0] == raw


def test_an_unterminated_last_record_fails_the_test(child: list[str]) -> None:
    agent = Agent(child)
    agent.send("write", hex=b'{"type":"half"}'.hex())
    with pytest.raises(AssertionError, match="ends without LF"):
        agent.close()


def test_a_record_in_two_writes_is_one_record(agent: Agent) -> None:
    record = '{"type":"euro","sign":"\u20ac\u2028"}\n'.encode()
    cut = record.index(b"\x82")
    agent.send("write", hex=record[:cut].hex())
    agent.send("write", hex=record[cut:].hex())
    assert agent.wait({"type": "euro"})["sign"] == "\u20ac\u2028"


def test_a_client_that_does_not_read_takes_nothing_until_it_resumes(agent: Agent) -> None:
    agent.request("echo")
    agent.stop_reading()
    before = agent.cursor
    agent.send("flood", count=20)
    agent.send("complain", text="flooded")  # by then 20 kB stand in the pipe
    last = agent.send("flood", count=500)  # and this is more than a pipe holds
    agent.wait_stderr("flooded")
    assert agent.cursor == before
    agent.resume_reading()
    agent.wait({"id": last})
    assert [record["i"] for record in agent.records if record["type"] == "flood"] == [*range(20), *range(500)]


def test_a_client_may_read_some_bytes_more_before_it_stops(agent: Agent) -> None:
    agent.request("echo")
    agent.stop_reading(after=100)
    before = agent.cursor
    last = agent.send("flood", count=500)
    agent.send("complain", text="never told while the pipe is full")
    agent.resume_reading()
    agent.wait({"id": last})
    agent.stop_reading(after=10)
    agent.send("write", hex=b'{"type":"short"}\n{"type":"long","text":"more than ten bytes"}\n'.hex())
    agent.wait_stderr("never told")
    assert [record["type"] for record in agent.records[before:] if record["type"] in ("short", "long")] == []
    agent.resume_reading()
    agent.wait({"type": "long"})


def test_a_look_at_all_records_ends_with_what_it_says(agent: Agent) -> None:
    agent.send("flood", count=3)
    floods = agent.until(lambda records: [r for r in records if r["type"] == "flood"][2:] or None)
    assert floods is not None
    assert [record["i"] for record in floods] == [2]
    assert agent.until(lambda records: None, deadline=0.05) is None


def test_a_look_ends_with_stdout_and_the_exit_code_is_known(child: list[str]) -> None:
    with Agent(child) as agent:
        assert agent.exit_code is None
        agent.terminate(signal.SIGKILL)
        assert agent.until(lambda records: None, deadline=20) is None
        agent.wait_exit()
        assert agent.exit_code == -signal.SIGKILL


def test_an_agent_that_does_not_read_its_stdin_holds_nobody_forever() -> None:
    agent = Agent([sys.executable, "-c", "import time; time.sleep(60)"])
    with pytest.raises(TimeoutError, match=r"left \d+ bytes of its stdin unread for 0.1 s"):
        agent.send_raw(b"x" * 300_000, deadline=0.1)
    agent.terminate(signal.SIGKILL)
    agent.wait_exit()


def test_a_long_line_goes_through_a_pipe_that_is_smaller(agent: Agent) -> None:
    assert agent.request("echo", pad="x" * 1_000_000)["success"]


def test_a_closed_stdout_gives_the_child_a_broken_pipe(agent: Agent) -> None:
    agent.request("echo")
    agent.close_stdout()
    agent.send("echo")
    assert agent.wait_exit() == 1
    assert "BrokenPipeError" in agent.stderr


def test_a_signal_is_told_as_a_negative_code(agent: Agent) -> None:
    agent.request("echo")
    agent.terminate(signal.SIGKILL)
    assert agent.wait_exit() == -signal.SIGKILL


def test_an_exit_code_after_end_of_input_that_nobody_asked_for_is_a_fault(child: list[str]) -> None:
    agent = Agent(child)
    agent.send("exit", code=4)
    with pytest.raises(AssertionError, match="exit code 4"):
        agent.close()


def test_a_child_that_stays_after_end_of_input_is_killed_and_fails_the_test(child: list[str]) -> None:
    agent = Agent(child)
    agent.request("ignore_eof")
    with pytest.raises(AssertionError, match="still running"):
        agent.close(deadline=0.3)
    assert agent.wait_exit() == -signal.SIGKILL


def test_the_failure_of_a_test_comes_before_the_faults_of_its_agent(child: list[str]) -> None:
    with pytest.raises(ZeroDivisionError) as failure, Agent(child) as agent:
        agent.send("exit", code=4)
        _ = 1 / 0
    assert "exit code 4" in failure.value.__notes__[0]


@pytest.fixture
def kill_later() -> Iterator[Callable[[int], None]]:
    pids: list[int] = []
    yield pids.append
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_descendants_are_in_the_tree_while_the_agent_lives_and_orphans_after(
    child: list[str], kill_later: Callable[[int], None]
) -> None:
    with Agent(child) as agent:
        agent.request("spawn", seconds="61.25")
        pids = agent.wait({"type": "spawned"})["pids"]
        for pid in pids:
            kill_later(pid)
        assert {process.pid for process in agent.process_tree()} == set(pids)
        agent.close_stdin()
        assert agent.wait_exit() == 0
        assert {process.pid for process in agent.orphans()} == set(pids)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert agent.orphans(deadline=5) == []


def test_an_orphan_is_found_by_a_word_of_its_command_line_too(
    child: list[str], kill_later: Callable[[int], None]
) -> None:
    with Agent(child) as owner, Agent(child) as other:
        owner.request("spawn", seconds="62.125")
        for pid in owner.wait({"type": "spawned"})["pids"]:
            kill_later(pid)
        assert other.orphans() == []
        assert "sleep 62.125" in [process.command for process in other.orphans("62.125")]


def test_the_peak_memory_of_a_python_is_some_megabytes(agent: Agent) -> None:
    agent.request("echo")
    assert 2_000_000 < agent.peak_rss() < 200_000_000


def test_what_the_child_inherits_is_only_the_environment_that_was_given(child: list[str]) -> None:
    with Agent(child, env={"PATH": os.environ["PATH"]}) as agent:
        agent.request("echo")
        names = {pair.partition(b"=")[0] for pair in Path(f"/proc/{agent.pid}/environ").read_bytes().split(b"\0")}
        assert names - {b""} == {b"PATH", b"CONFORMANCE_RUN"}


# ---- pure parts ----------------------------------------------------------------------------------------------------


def test_what_the_check_of_the_lines_finds_is_told_at_the_end(child: list[str]) -> None:
    agent = Agent(child, check=lambda line: ["it is loud"] if b"LOUD" in line else [])
    agent.request("echo")
    agent.request("LOUD")
    with pytest.raises(AssertionError, match=r"line 2 of stdout: it is loud in b'.*LOUD"):
        agent.close()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values))
def test_any_object_is_read_back_as_it_was(value: dict[str, Any]) -> None:
    assert parse_record(json.dumps(value).encode()) == value


@given(json_values.filter(lambda value: not isinstance(value, dict)))
def test_no_other_value_is_a_record(value: Any) -> None:
    with pytest.raises(ValueError):
        parse_record(json.dumps(value).encode())


def test_a_record_too_deep_to_parse_still_shows_its_head() -> None:
    deep = b"[" * 100_000 + b'"]{"' + b"]" * 100_000
    head = b'{"id":"t","type":"response","success":true,"data":'
    assert parse_record(head + deep + b"}") == {"id": "t", "type": "response", "success": True}


@pytest.mark.parametrize("end", [b"}", b"]]}", b"]}{}"])
def test_a_deep_record_with_wrong_brackets_is_none(end: bytes) -> None:
    depth = 100_000
    with pytest.raises(ValueError):
        parse_record(b'{"type":"response","data":' + b"[" * depth + b"]" * (depth - 1) + end)


def test_a_match_compares_the_values_at_dotted_paths() -> None:
    record = {"type": "response", "data": {"list": [{"n": 1}, {"n": 2}], "none": None}}
    assert matches(record, {"data.list.0.n": 1, "data.list.-1.n": 2, "data.none": None})
    assert not matches(record, {"data.list.2.n": 1})
    assert not matches(record, {"data.missing": None})
    assert matches(record, {"data.none": ...})
    assert not matches(record, {"data.missing": ...})
    assert matches(record, lambda r: len(r["data"]["list"]) == 2)
