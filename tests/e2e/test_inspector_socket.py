"""The local socket as inspectors meet it: who gets in, what is answered, and that it costs nobody else anything."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, text, tool
from tests.e2e.inspectors import Inspector

Start = Callable[..., Agent]
Record = dict[str, Any]

AT_ONCE = {"kind": "background"}
FOLDER = f"atomic-{os.getuid()}"


@pytest.fixture
def temp() -> Iterator[Path]:
    """A temporary directory of the agents' own, with a short path."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="i") as folder:
        yield Path(folder)


@pytest.fixture
def start(agent: Start, temp: Path) -> Start:
    def started(*args: str, **more: Any) -> Agent:
        return agent(*args, env={"TMPDIR": str(temp), **more.pop("env", {})}, **more)

    return started


def sockets(temp: Path) -> list[Path]:
    return sorted((temp / FOLDER).glob("*.sock"))


def run_task(a: Agent, server: ModelServer, command: str = "sleep 600", **arguments: Any) -> str:
    """Lets the model start a command in the background; its task id."""
    since = a.cursor
    server.script(tool("bash", {"command": command, "wait": AT_ONCE, **arguments}, id="t1"), text("done"))
    a.prompt("go")
    ended = a.wait({"type": "tool_execution_end", "toolCallId": "t1"}, since=since)
    a.wait({"type": "agent_settled"}, since=since)
    task_id: str = ended["result"]["details"]["observation"]["taskId"]
    return task_id


def inspect(a: Agent, temp: Path) -> Inspector:
    """The socket is there soon after the first task."""
    path = temp / FOLDER / f"t{a.pid}.sock"
    assert a.until(lambda _: path.exists() or None), f"no socket at {path}"
    return Inspector(path)


# ---- getting in --------------------------------------------------------------------------------------------------


def test_a_program_without_tasks_has_no_socket(start: Start, server: ModelServer, temp: Path) -> None:
    server.script(tool("read", {"path": "x"}), text("done"))
    with start() as a:
        a.prompt("go")
        a.wait({"type": "agent_settled"})
        assert a.request("get_tasks")["data"] == {"tasks": []}
    assert sockets(temp) == []


def test_the_first_task_opens_a_private_socket_which_greets_and_goes_with_the_program(
    start: Start, server: ModelServer, temp: Path
) -> None:
    with start() as a:
        run_task(a, server)
        with inspect(a, temp) as visitor:
            state = a.request("get_state")["data"]
            assert visitor.hello == {
                "type": "inspector_hello",
                "version": 1,
                "pid": a.pid,
                "sessionId": state["sessionId"],
                "sessionFile": state["sessionFile"],
                "cwd": os.path.realpath(json.loads(Path(state["sessionFile"]).read_text().splitlines()[0])["cwd"]),
                "model": "fa/m",
                "thinkingLevel": state["thinkingLevel"],
            }
            (path,) = sockets(temp)
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            a.close_stdin()
            assert a.wait_exit() == 0
            assert visitor.rest() == []
    assert sockets(temp) == []


def test_a_loose_umask_opens_the_socket_to_nobody(start: Start, server: ModelServer, temp: Path) -> None:
    (temp / FOLDER).mkdir(mode=0o755)
    before = os.umask(0)
    try:
        with start() as a:
            run_task(a, server)
            with inspect(a, temp):
                (path,) = sockets(temp)
                assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_folder_that_is_none_of_ours_costs_one_line_and_the_tasks_go_on(
    start: Start, server: ModelServer, temp: Path, kind: str
) -> None:
    elsewhere = temp / "elsewhere"
    elsewhere.mkdir()
    if kind == "link":
        (temp / FOLDER).symlink_to(elsewhere)
    else:
        (temp / FOLDER).write_text("")
    with start() as a:
        task_id = run_task(a, server)
        a.wait_stderr(f"no inspector can connect: {temp / FOLDER}{' is a link' if kind == 'link' else ': '}")
        assert a.request("get_task", taskId=task_id)["data"]["task"]["state"] == "running"
        a.close_stdin()
        assert a.wait_exit() == 0
        assert a.stderr.count("inspector") == 1
    assert list(elsewhere.iterdir()) == []


def test_a_temp_directory_too_deep_for_a_socket_is_passed_over_for_a_shorter_one(
    start: Start, server: ModelServer, temp: Path
) -> None:
    deep = temp / ("d" * 90)
    deep.mkdir()
    with start(env={"TMPDIR": str(deep)}) as a:
        run_task(a, server)
        with inspect(a, Path("/tmp")) as visitor:
            assert visitor.hello["pid"] == a.pid
    assert not (Path("/tmp") / FOLDER / f"t{a.pid}.sock").exists()


# ---- commands ----------------------------------------------------------------------------------------------------


def test_each_command_of_stdin_is_answered_as_there_and_stdout_sees_none_of_it(
    start: Start, server: ModelServer, temp: Path
) -> None:
    with start() as a:
        task_id = run_task(a, server, "stty -echo; echo ready; read line; echo got $line; sleep 600", pty=True)
        since = a.cursor
        with inspect(a, temp) as visitor:
            assert visitor.request("get_tasks")["data"]["tasks"][0]["ref"]["taskId"] == task_id
            assert visitor.request("send_task_input", taskId=task_id, input="it\n")["data"] == {"accepted": 3}
            detail = visitor.request("get_task", taskId=task_id, id=7)
            while "got it" not in detail["data"]["tail"]:
                detail = visitor.request("get_task", taskId=task_id, id=7)
            assert visitor.request("wait_task", taskId=task_id, budgetMs=1)["data"]["reason"] == "elapsed"
            waiting = visitor.send("wait_task", taskId=task_id)
            receipt = visitor.request("cancel_task", taskId=task_id)
            assert receipt["data"]["decision"] == "cancellation-requested"
            settled = visitor.wait(id=waiting)
            assert settled["data"]["result"] == {**settled["data"]["result"], "kind": "cancelled", "cause": "user"}
            assert a.request("get_tasks")["data"]["tasks"][0]["state"] == "stopped"
        answered = [r for r in a.records[since:] if r["type"] == "response"]
        assert [r["command"] for r in answered] == ["get_tasks"]


@pytest.mark.parametrize(
    ("line", "id", "error"),
    [
        (b'{"id":1,"type":"get_state"}', 1, "get_state is not available here; an inspector may send "),
        (b'{"id":"x","type":"prompt","message":"hi"}', "x", "prompt is not available here; an inspector may send "),
        (b'{"id":2,"type":"get_task"}', 2, "get_task: "),
        (b'{"id":3,"type":"cancel_task","taskId":"no"}', 3, "UnknownTask: UnknownTask"),
        (b'{"id":4,"type":"nonsense"}', 4, "Unknown command: nonsense"),
        (b"{", None, "Failed to parse command: "),
        (b"", None, "Failed to parse command: "),
        (b"null", None, "Unknown command: undefined"),
        (b"[" * 5000, None, "Failed to parse command: "),
        (b'\xff\xfe"', None, "Failed to parse command: "),
        (b'{"type":"extension_ui_response","id":"q","value":"x"}', None, "extension_ui_response is not available here"),
    ],
)
def test_what_an_inspector_may_not_send_is_refused_by_name_and_the_connection_lives(
    start: Start, server: ModelServer, temp: Path, line: bytes, id: Any, error: str
) -> None:
    with start() as a:
        run_task(a, server)
        with inspect(a, temp) as visitor:
            visitor.socket.sendall(line + b"\n")
            refused = visitor.next()
            assert (refused["type"], refused["success"], refused.get("id")) == ("response", False, id)
            assert refused["error"].startswith(error)
            assert visitor.request("get_tasks")["success"]


def test_inspectors_and_the_client_may_use_the_same_ids_at_once(start: Start, server: ModelServer, temp: Path) -> None:
    with start() as a:
        task_id = run_task(a, server)
        a.send("wait_task", taskId=task_id, id="same")
        with inspect(a, temp) as one, inspect(a, temp) as other:
            for visitor in (one, other):
                visitor.send("wait_task", taskId=task_id, id="same")
                assert visitor.request("get_tasks")["success"]
            assert a.request("cancel_task", taskId=task_id, id="stop")["success"]
            for visitor in (one, other):
                assert visitor.wait(id="same")["data"]["kind"] == "settled"
                assert visitor.request("get_tasks", id="last")["success"]
                assert [record["id"] for record in visitor.records if record["type"] == "response"].count("same") == 1
            a.wait({"type": "response", "id": "same"})
        assert len(a.responses("same")) == 1


def test_two_inputs_without_a_name_are_two_inputs_whoever_sends_them(
    start: Start, server: ModelServer, temp: Path
) -> None:
    """The serial alone would make the second of two senders a repetition of the first."""
    with start() as a:
        task_id = run_task(a, server, "stty -echo; while read line; do echo got $line; done", pty=True)
        with inspect(a, temp) as one, inspect(a, temp) as other:
            assert one.request("send_task_input", taskId=task_id, input="one\n")["data"] == {"accepted": 4}
            assert other.request("send_task_input", taskId=task_id, input="two\n")["data"] == {"accepted": 4}
            tail = ""
            while "got two" not in tail:
                tail = one.request("get_task", taskId=task_id)["data"]["tail"]
            assert "got one" in tail


# ---- subscriptions -----------------------------------------------------------------------------------------------


def test_a_subscription_is_of_one_connection_alone(start: Start, server: ModelServer, temp: Path) -> None:
    with start() as a:
        task_id = run_task(a, server)
        with inspect(a, temp) as listens, inspect(a, temp) as silent:
            assert listens.request("set_task_subscription", enabled=True)["success"]
            assert silent.request("get_tasks")["success"]
            silent.request("cancel_task", taskId=task_id)
            update = listens.wait(type="task_update")
            while update["task"]["state"] != "stopped":
                assert update["task"]["ref"]["taskId"] == task_id
                update = listens.wait(type="task_update")
            assert listens.request("set_task_subscription", enabled=False)["success"]
            assert silent.request("get_tasks")["success"]
            assert {record["type"] for record in silent.records} == {"inspector_hello", "response"}
        assert {r["type"] for r in a.records} & {"task_update", "inspector_session"} == set()


def test_the_name_and_the_model_of_the_session_are_told_when_they_change(
    start: Start, server: ModelServer, temp: Path
) -> None:
    with start() as a:
        run_task(a, server)
        with inspect(a, temp) as visitor:
            a.request("set_session_name", name="release")
            assert visitor.wait(type="inspector_session")["sessionName"] == "release"
            a.request("set_model", provider="fa", modelId="think")
            assert visitor.wait(type="inspector_session")["model"] == "fa/think"
            a.request("set_thinking_level", level="high")
            told = visitor.wait(type="inspector_session")
            assert (told["thinkingLevel"], told["sessionName"]) == ("high", "release")
            assert visitor.request("get_tasks")["success"]
            assert len([record for record in visitor.records if record["type"] == "inspector_session"]) == 3


# ---- sessions come and go ----------------------------------------------------------------------------------------


def test_a_replaced_session_answers_what_it_was_asked_and_the_next_one_is_shown(
    start: Start, server: ModelServer, temp: Path
) -> None:
    with start() as a:
        old = run_task(a, server)
        with inspect(a, temp) as visitor:
            visitor.request("set_task_subscription", enabled=True)
            visitor.send("wait_task", taskId=old, id="wait")
            assert visitor.request("get_tasks")["data"]["tasks"]
            a.request("new_session")
            assert visitor.wait(type="inspector_session")["sessionId"] != visitor.hello["sessionId"]
            answer = next((r for r in visitor.records if r.get("id") == "wait"), None) or visitor.wait(id="wait")
            assert answer["data"]["result"]["kind"] == "cancelled"
            assert visitor.request("get_tasks")["data"] == {"tasks": []}
            assert visitor.request("get_task", taskId=old)["error"] == "UnknownTask: UnknownTask"
            new = run_task(a, server)
            assert visitor.wait(type="task_update")["task"]["ref"]["taskId"] == new
            assert [record["id"] for record in visitor.records if record["type"] == "response"].count("wait") == 1


def test_many_replacements_leave_no_command_of_a_visitor_without_its_answer(
    start: Start, server: ModelServer, temp: Path
) -> None:
    with start() as a:
        run_task(a, server)
        with inspect(a, temp) as visitor:
            sent = []
            for _ in range(30):
                a.send("new_session")
                sent += [visitor.send("get_tasks"), visitor.send("wait_task", taskId="none", budgetMs=0)]
            a.request("get_state")
            waiting = set(sent)
            while waiting:
                record = visitor.next()
                if record["type"] == "response":
                    waiting.remove(record["id"])
            current = a.request("get_state")["data"]["sessionId"]
            visitor.request("get_tasks")
            told = [record["sessionId"] for record in visitor.records if record["type"] == "inspector_session"]
            assert told[-1] == current


# ---- inspectors that behave badly --------------------------------------------------------------------------------


def test_an_inspector_that_dies_in_the_middle_of_a_line_is_missed_by_nobody(
    start: Start, server: ModelServer, temp: Path
) -> None:
    with start() as a:
        task_id = run_task(a, server)
        with inspect(a, temp) as other:
            for piece in (b"", b'{"id":1,"type":"get_', b'{"type":"wait_task","taskId":"%s"}\n' % task_id.encode()):
                with inspect(a, temp) as dies:
                    dies.socket.sendall(piece)
            assert other.request("get_tasks")["success"]
        assert a.request("get_tasks")["success"]
        for _ in range(40):  # none of them takes a place for good
            with inspect(a, temp) as visitor:
                visitor.send("wait_task", taskId=task_id)
                assert visitor.request("get_tasks")["success"]


def test_what_was_sent_before_the_end_of_file_is_still_answered(start: Start, server: ModelServer, temp: Path) -> None:
    with start() as a:
        task_id = run_task(a, server)
        with inspect(a, temp) as visitor:
            visitor.send("wait_task", taskId=task_id, id="wait")
            visitor.send("get_tasks", id="list")
            visitor.socket.shutdown(socket.SHUT_WR)
            assert visitor.next()["id"] == "list"
            a.request("cancel_task", taskId=task_id)
            assert [record["id"] for record in visitor.rest()] == ["wait"]


def test_an_inspector_that_does_not_read_is_cut_off_and_slows_nobody(
    start: Start, server: ModelServer, temp: Path
) -> None:
    with start() as a:
        task_id = run_task(a, server, "head -c 20000 /dev/zero | tr '\\0' x; sleep 600")
        with inspect(a, temp) as stuck, inspect(a, temp) as other:
            while len(other.request("get_task", taskId=task_id)["data"].get("tail", "")) < 7000:
                pass
            command = json.dumps({"type": "get_task", "taskId": task_id}).encode() + b"\n"
            with pytest.raises(ConnectionError):  # how much is on its way by then is up to the system
                while True:
                    stuck.socket.sendall(command)
            assert other.request("get_tasks")["success"]
            assert a.request("get_tasks")["success"]
        a.close_stdin()
        assert a.wait_exit() == 0


def test_a_line_without_an_end_is_refused(start: Start, server: ModelServer, temp: Path) -> None:
    with start() as a:
        run_task(a, server)
        with inspect(a, temp) as visitor, pytest.raises(ConnectionError):
            for _ in range(100):
                visitor.socket.sendall(b"x" * 65536)
        with inspect(a, temp) as visitor:
            assert visitor.request("get_tasks")["success"]


def test_there_is_room_for_sixteen(start: Start, server: ModelServer, temp: Path) -> None:
    with start() as a:
        run_task(a, server)
        visitors = [inspect(a, temp) for _ in range(16)]
        late = socket.socket(socket.AF_UNIX)
        late.settimeout(20)
        late.connect(str(sockets(temp)[0]))
        with late.makefile("rb") as lines:
            (told,) = map(json.loads, lines)
        late.close()
        assert told == {"type": "inspector_refused", "error": "16 inspectors are connected, and no more may be"}
        assert all(visitor.request("get_tasks")["success"] for visitor in visitors)
        for visitor in visitors:
            visitor.__exit__(None, None, None)


# ---- the end -----------------------------------------------------------------------------------------------------


def end_of_stdin(a: Agent) -> None:
    a.close_stdin()


def closed_stdout(a: Agent) -> None:
    a.close_stdout()
    a.send("get_state")


def signalled(*numbers: int) -> Callable[[Agent], None]:
    def end(a: Agent) -> None:
        for number in numbers:
            a.terminate(number)

    return end


@pytest.mark.parametrize(
    "end",
    [end_of_stdin, closed_stdout, signalled(signal.SIGTERM), signalled(signal.SIGINT, signal.SIGINT)],
    ids=["eof", "stdout", "term", "twice"],
)
def test_the_socket_goes_with_the_program_however_it_ends(
    start: Start, server: ModelServer, temp: Path, end: Callable[[Agent], None]
) -> None:
    with start() as a:
        run_task(a, server)
        with inspect(a, temp) as visitor:
            assert visitor.request("get_tasks")["success"]
            end(a)
            a.wait_exit()
            visitor.rest()
    assert sockets(temp) == []


def test_the_end_of_the_program_is_the_last_that_an_inspector_hears(
    start: Start, server: ModelServer, temp: Path
) -> None:
    with start() as a:
        task_id = run_task(a, server)
        with inspect(a, temp) as visitor:
            visitor.request("set_task_subscription", enabled=True)
            visitor.send("wait_task", taskId=task_id, id="wait")
            visitor.request("get_tasks")
            a.close_stdin()
            rest = visitor.rest()
            assert [record["data"]["result"]["kind"] for record in rest if record["type"] == "response"] == [
                "cancelled"
            ]
            assert [record["task"]["state"] for record in rest if record["type"] == "task_update"][-1] == "stopped"
            assert a.wait_exit() == 0


def test_programs_have_sockets_of_their_own_and_the_next_one_sweeps_up_after_a_killed_one(
    start: Start, server: ModelServer, temp: Path
) -> None:
    with start() as first, start() as second:
        run_task(first, server)
        run_task(second, server, "sleep 601")
        with inspect(first, temp) as one, inspect(second, temp) as other:
            assert one.request("get_tasks")["data"]["tasks"][0]["title"] == "sleep 600"
            assert other.request("get_tasks")["data"]["tasks"][0]["title"] == "sleep 601"
            first.terminate(signal.SIGKILL)
            first.wait_exit()
            assert one.rest() == []
            assert len(sockets(temp)) == 2
            with start() as third:
                run_task(third, server)
                with inspect(third, temp) as visitor:
                    assert visitor.hello["pid"] == third.pid
                assert [path.name for path in sockets(temp)] == sorted(f"t{a.pid}.sock" for a in (second, third))
            assert other.request("get_tasks")["success"]
