"""The blocking client against the program itself, and against agents that die, lie or fall silent, as processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from conformance.client import (
    AgentDied,
    ClientClosed,
    CommandRefused,
    DeadlineExceeded,
    EventsLost,
    Options,
    ProtocolError,
    RpcClient,
    SpawnFailed,
    TransportError,
    UiRequest,
    event_type,
)
from conformance.client.calls import bash, get_state
from tests.conformance.conftest import STATE, in_thread

Plan = Callable[..., list[str]]
QUICK = Options(start_deadline=10, quick_deadline=10, slow_deadline=10, idle_check=0.2, eof_grace=0.2, term_grace=0.2)
RUN: list[Any] = [["event", {"type": "agent_start"}], ["event", {"type": "agent_end", "messages": []}]]
SETTLED: list[Any] = [["event", {"type": "agent_settled"}]]


def gone(pid: int) -> bool:
    """Whether a process that is not our child has ended, given some time to."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    import select

    ended = bool(select.select([fd], [], [], 10)[0])
    os.close(fd)
    return ended


# ---- the program itself ------------------------------------------------------------------------------------------


def test_a_conversation_with_the_program(atomic: list[str]) -> None:
    with RpcClient(atomic) as client:
        with client.prompt('TOOL bash {"command": "echo from the tool"}\nSAY All done.') as run:
            kinds = [event_type(event) for event in run]
        assert kinds[0] == "agent_start" and kinds[-1] == "agent_settled" and "tool_execution_end" in kinds
        assert (run.outcome.text, run.outcome.stop_reason) == ("All done.", "stop")
        assert client.get_state().message_count == 4
        assert client.get_last_assistant_text().text == "All done."
        assert client.request("get_session_stats")["toolCalls"] == 1
        with pytest.raises(CommandRefused, match="Unknown command: brand_new"):
            client.request("brand_new", x=1)
        with pytest.raises(CommandRefused, match="Entry not found"):
            client.get_entries("nowhere")
        assert client.close() == client.close() == 0
        assert client.oddities == []
    with pytest.raises(ClientClosed):
        client.get_state()


def test_shells_side_by_side_and_one_cancelled(atomic: list[str]) -> None:
    with RpcClient(atomic) as client:
        with client.bash("echo up; exec sleep 60") as long, client.bash("echo 1; echo 2 >&2; exit 3") as short:
            assert next(long).text == "up\n"
            assert sorted((delta.channel, delta.text) for delta in short) == [("stderr", "2\n"), ("stdout", "1\n")]
            assert short.result().exit_code == 3
            long.cancel()
            assert long.result().cancelled
        with client.bash("sleep 60"):
            pass  # leaving cancels
        with pytest.raises(CommandRefused, match="command"):
            client.request("bash")
        assert [client.bash(f"echo {n}").result().output for n in range(2)] == ["0\n", "1\n"]


def test_a_prompt_that_is_left_early_is_aborted_and_a_busy_agent_refuses_or_queues(atomic: list[str]) -> None:
    with RpcClient(atomic) as client:
        with client.prompt("SAY first\nWAIT 60000", abort_on_leave=True) as run:
            assert next(run)
            with pytest.raises(CommandRefused, match="already processing"):
                client.prompt("SAY no")
            queued = client.prompt("SAY queued", streaming_behavior="followUp")
            assert client.get_state().pending_message_count == 1
        assert queued.wait().text == "queued"
        client.wait_idle(deadline=10)
        assert client.prompt("FAIL no luck").wait().stop_reason == "error"


def test_many_threads_use_one_client(atomic: list[str]) -> None:
    with RpcClient(atomic) as client:

        def work(name: int) -> list[str]:
            outputs = [client.bash(f"echo {name}.{n}").result().output for n in range(5)]
            client.get_state()
            return outputs

        threads = [in_thread(lambda name=name: work(name)) for name in range(8)]  # type: ignore[misc]
        for name, (thread, results) in enumerate(threads):
            thread.join(30)
            assert results == [[f"{name}.{n}\n" for n in range(5)]]


@pytest.mark.parametrize("stage", ["idle", "request", "prompt", "shell", "events", "wait", "close"])
def test_a_program_that_is_killed_fails_whatever_waits_for_it(atomic: list[str], stage: str) -> None:
    with RpcClient(atomic) as client:
        run = client.prompt("WAIT 60000\nSAY x") if stage == "prompt" else None
        shell = client.bash("echo up; sleep 60") if stage == "shell" else None
        if shell:
            next(shell)
        waiting: dict[str, Callable[[], object]] = {
            "idle": lambda: client.close() and client.get_state(),
            "request": lambda: client.call(bash("sleep 60"), deadline=None),
            "prompt": lambda: run and run.wait(),
            "shell": lambda: shell and shell.result(),
            "events": lambda: list(client.events()),
            "wait": lambda: client.wait_for("brand_new", deadline=None),
            "close": client.close,
        }
        if stage == "idle":
            os.kill(client.pid, signal.SIGKILL)
        thread, results = in_thread(waiting[stage])
        client.get_state() if stage not in ("idle", "close") else None
        os.kill(client.pid, signal.SIGKILL) if stage != "idle" else None
        thread.join(20)
        assert not thread.is_alive()
        if stage == "close":
            assert results in ([0], [-9])
        elif stage == "idle":
            assert isinstance(results[0], TransportError)
        else:
            assert isinstance(results[0], AgentDied) and results[0].signal == "SIGKILL"


# ---- the start ---------------------------------------------------------------------------------------------------


def test_a_command_that_does_not_exist() -> None:
    with pytest.raises(SpawnFailed, match="no-such-agent"):
        RpcClient(["/no-such-agent", "--mode", "rpc"])


def test_an_agent_that_dies_at_its_start_tells_exit_code_and_stderr(agent: Plan) -> None:
    with pytest.raises(AgentDied, match=r"exit code 7\nstderr: no model") as died:
        RpcClient(agent(START=[["stderr", "no model\n"], ["exit", 7]]), options=QUICK)
    assert (died.value.exit_code, died.value.signal) == (7, None)


def test_an_agent_that_is_killed_at_its_start(agent: Plan) -> None:
    with pytest.raises(AgentDied, match="SIGKILL"):
        RpcClient(agent(START=[["kill", 9]]), options=QUICK)


def test_an_agent_that_prints_rubbish_at_its_start_is_ended(agent: Plan) -> None:
    with pytest.raises(ProtocolError, match=r"(?s)Welcome!.*stderr: a hint") as error:
        RpcClient(agent(START=[["stderr", "a hint\n"], ["sleep", 0.1], ["raw", "Welcome!\n"]]), options=QUICK)
    assert error.value.line == b"Welcome!"


def test_an_agent_that_says_nothing_at_its_start_is_ended(agent: Plan) -> None:
    with pytest.raises(DeadlineExceeded, match=r"handshake.*\nstderr: busy"):
        RpcClient(
            agent(START=[["stderr", "busy\n"]], get_state=[]),
            options=Options(start_deadline=1, eof_grace=0.2, term_grace=0.2),
        )


def test_an_agent_that_refuses_the_handshake(agent: Plan) -> None:
    with pytest.raises(CommandRefused, match="not today"):
        RpcClient(agent(get_state=[["no", "not today"]]), options=QUICK)


# ---- death at every moment ---------------------------------------------------------------------------------------

DEATHS: dict[str, list[Any]] = {
    "killed": [["kill", 9]],
    "exits": [["exit", 3]],
    "closes stdout": [["close", 1], ["sleep", 60]],
    "half a record": [["raw", '{"type":"resp'], ["exit", 3]],
    "rubbish": [["raw", "Traceback (most recent call last):\n"]],
    "answers somebody else": [["other", "nobody"]],
}


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("moment", ["request", "prompt before its response", "prompt", "shell", "dialog"])
def test_nothing_hangs_when_the_agent_ends(agent: Plan, death: str, moment: str) -> None:
    dying = DEATHS[death]
    dialog = {"type": "extension_ui_request", "id": "u", "method": "input", "title": "t"}
    plans: dict[str, dict[str, Any]] = {
        "request": {"abort": dying},
        "prompt before its response": {"prompt": [RUN[0], *dying]},
        "prompt": {"prompt": ["ok", RUN[0], *dying]},
        "shell": {"bash": [["delta", "x"], *dying]},
        "dialog": {"prompt": [["event", dialog]], "extension_ui_response": dying},
    }
    with RpcClient(agent(**plans[moment]), options=QUICK) as client:
        with pytest.raises(TransportError):
            if moment == "request":
                client.abort()
            elif moment == "shell":
                list(client.bash("x"))
            else:
                client.prompt("x").wait()
        with pytest.raises(TransportError):
            client.get_state()


def test_an_agent_that_has_closed_its_stdin_is_not_waited_for(agent: Plan) -> None:
    closed = [["close", 0], "ok", ["sleep", 60]]
    with RpcClient(agent(reload=closed), options=QUICK) as client:
        client.reload()
        with pytest.raises(AgentDied, match="still runs"):
            client.within(None).get_state()


def test_answers_that_were_in_the_pipe_when_the_agent_died_still_count(agent: Plan) -> None:
    with RpcClient(agent(abort=["ok", ["exit", 3]]), options=QUICK) as client:
        client.abort()
        with pytest.raises(AgentDied):
            client.wait_for("anything", deadline=10)


def test_a_grandchild_that_holds_stdout_open_delays_nobody(agent: Plan) -> None:
    with RpcClient(agent(abort=[["spawn", {"start_new_session": True}], ["exit", 3]]), options=QUICK) as client:
        with pytest.raises(AgentDied, match="exit code 3") as died:
            client.within(None).abort()
        os.kill(int(died.value.stderr.split()[-1]), signal.SIGKILL)


# ---- silence -----------------------------------------------------------------------------------------------------


def test_a_deadline_ends_a_wait_and_a_late_answer_is_dropped(agent: Plan) -> None:
    late = [["sleep", 0.3], "ok"]
    with RpcClient(agent(abort=late), options=QUICK) as client:
        with pytest.raises(DeadlineExceeded, match=r"response to abort: nothing within 0\.05 s"):
            client.within(0.05).abort()
        assert client.get_state().session_id == "s"
        assert client.oddities != []


def test_a_prompt_whose_end_never_comes_is_an_error_and_one_that_nothing_came_of_just_ends(agent: Plan) -> None:
    with RpcClient(agent(each={"prompt": [["ok", *RUN], ["ok"]]}), options=QUICK) as client:
        with pytest.raises(ProtocolError, match="never sent agent_settled"):
            client.prompt("x").wait()
        assert not client.prompt("/x").wait().started


def test_a_prompt_whose_response_never_comes_is_an_error(agent: Plan) -> None:
    with (
        RpcClient(agent(prompt=[*RUN, *SETTLED]), options=QUICK) as client,
        pytest.raises(ProtocolError, match="response to its prompt never came"),
    ):
        client.prompt("x")


def test_a_lost_result_ends_with_the_deadline(agent: Plan) -> None:
    with RpcClient(agent(bash=[["delta", "x"]]), options=QUICK) as client:
        shell = client.bash("x", deadline=0.2)
        assert next(shell).text == "x"
        with pytest.raises(DeadlineExceeded, match="result of bash"):
            next(shell)


def test_an_agent_that_reads_nothing_keeps_nobody(agent: Plan) -> None:
    stuck = [["sleep", 60]]
    with RpcClient(agent(reload=stuck), options=QUICK) as client:
        with pytest.raises(DeadlineExceeded):
            client.within(0.05).reload()
        with pytest.raises(DeadlineExceeded):
            client.request("get_state", deadline=0.2, pad="x" * 1_000_000)
        assert client.close() == -signal.SIGTERM


# ---- slow readers ------------------------------------------------------------------------------------------------


def test_who_does_not_read_events_delays_no_answer_and_is_told_what_was_lost(agent: Plan) -> None:
    flood = [["flood", ['{"type":"noise","pad":"' + "x" * 1000 + '"}\n', 2000]], "ok"]
    with RpcClient(agent(abort=flood), options=Options(buffer_bytes=100_000)) as client:
        unread, unused = client.events(), client.events()
        client.abort()
        assert client.get_state().session_id == "s"
        kept = 0
        with pytest.raises(EventsLost) as lost:
            while True:
                next(unread)
                kept += 1
        assert 0 < kept < 100 and kept + lost.value.count == 2000
        del unused


# ---- dialogs, stderr ---------------------------------------------------------------------------------------------

ASKS = {"type": "extension_ui_request", "id": "u1", "method": "select", "title": "t", "options": ["a", "b"]}
TELLS = {"type": "extension_ui_request", "id": "u2", "method": "notify", "message": "m"}


def test_a_dialog_is_answered_by_the_callback_and_a_notice_only_told(agent: Plan) -> None:
    told: list[str] = []

    def on_ui(request: UiRequest) -> dict[str, Any] | None:
        told.append(request.method)
        if request.options == ["a", "b"]:
            return {"value": request.options[1]}
        return None

    plan = agent(prompt=["ok", ["event", TELLS], ["event", ASKS]], extension_ui_response=[*RUN, *SETTLED])
    with RpcClient(plan, on_ui=on_ui, options=QUICK) as client:
        client.prompt("x").wait()
    assert told == ["notify", "select"]


def test_a_callback_that_fails_cancels_the_dialog(agent: Plan, caplog: pytest.LogCaptureFixture) -> None:
    def on_ui(request: UiRequest) -> dict[str, Any] | None:
        raise RuntimeError("broken surface")

    plan = agent(prompt=["ok", ["event", ASKS]], extension_ui_response=[*RUN, *SETTLED])
    with RpcClient(plan, on_ui=on_ui, options=QUICK) as client:
        client.prompt("x").wait()
    assert "broken surface" in caplog.text


def test_dialogs_can_be_taken_one_by_one(agent: Plan) -> None:
    plan = agent(prompt=["ok", ["event", ASKS]], extension_ui_response=[*RUN, *SETTLED])
    with RpcClient(plan, options=QUICK) as client:
        dialogs = client.dialogs()
        with client.prompt("x") as run:
            request = dialogs.next(deadline=10)
            assert request is not None and request.options == ["a", "b"]
            client.answer(request, value="a")
            assert run.wait().started


def test_stderr_is_told_as_it_comes(agent: Plan) -> None:
    heard, said = threading.Event(), []

    def on_stderr(text: str) -> None:
        said.append(text)
        heard.set()

    with RpcClient(agent(abort=[["stderr", "a word\n"], "ok"]), on_stderr=on_stderr, options=QUICK) as client:
        client.abort()
        assert heard.wait(10)
    assert "".join(said) == client.stderr == "a word\n"


# ---- the end -----------------------------------------------------------------------------------------------------


def test_closing_reads_what_the_agent_still_says(agent: Plan) -> None:
    plan = agent(EOF=[["event", {"type": "noise"}], ["stderr", "bye\n"]])
    with RpcClient(plan, options=Options()) as client:
        events = client.events()
    assert [event_type(event) for event in events] == ["noise"]
    assert client.stderr == "bye\n"


def test_an_agent_that_stays_is_terminated_and_one_that_ignores_that_is_killed(agent: Plan) -> None:
    stays: list[Any] = [["sleep", 60]]
    with RpcClient(agent(EOF=stays), options=QUICK) as client:
        assert client.close() == -signal.SIGTERM
    with RpcClient(agent(START=[["ignore", signal.SIGTERM]], EOF=stays), options=QUICK) as client:
        assert client.close() == -signal.SIGKILL


def test_what_the_agent_left_in_its_group_ends_with_it(agent: Plan) -> None:
    with RpcClient(agent(START=[["spawn", {}]]), options=QUICK) as client:
        client.get_state()
    assert gone(int(client.stderr))


def test_threads_that_close_at_once_share_one_end(agent: Plan) -> None:
    client = RpcClient(agent(EOF=[["exit", 5]]), options=Options())
    threads = [in_thread(client.close) for _ in range(4)]
    for thread, results in threads:
        thread.join(20)
        assert results == [5]


def test_no_thread_and_no_descriptor_is_left_behind(agent: Plan) -> None:
    def threads_of_clients() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name.startswith(("reaper", "pipes", "client"))]

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    for thread in threads_of_clients():  # of other tests
        thread.join(10)
    before = descriptors()
    for _ in range(3):
        with RpcClient(agent(prompt=["ok", *RUN, *SETTLED]), options=Options()) as client:
            client.prompt("x").wait()
        with pytest.raises(AgentDied):
            RpcClient(agent(START=[["exit", 1]]), options=QUICK)
    for thread in threads_of_clients():
        thread.join(10)
    assert (threads_of_clients(), descriptors()) == ([], before)


def test_an_interrupted_wait_takes_nothing_with_it(agent: Plan) -> None:
    with RpcClient(agent(reload=[["sleep", 0.3], "ok"]), options=Options()) as client:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            client.reload()
        assert client.call(get_state()).session_id == STATE["sessionId"]
        assert sys.exc_info() == (None, None, None)
