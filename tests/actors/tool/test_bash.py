"""The `bash` tool with real shells, terminals, signals and logs."""

from __future__ import annotations

import os
import select
import threading
from typing import Any

import pytest

from actors.tool.bash import timeout_seconds
from actors.tool.table import ToolContext, ToolFailure


def test_both_channels_come_back_as_they_were_written(bench: Any) -> None:
    output = bench.run("bash", command="echo one; sleep 0.1; echo two >&2; sleep 0.1; printf 'no newline'")
    assert output.content[0].text == "one\ntwo\nno newline"
    assert output.is_error is False
    assert set(output.details) == {"timeoutSeconds", "wallTimeMs"}
    assert output.details["timeoutSeconds"] == 300


def test_silence_is_told(bench: Any) -> None:
    assert bench.text("bash", command="true") == "(no output)"
    assert bench.text("bash", command="cat") == "(no output)"  # stdin is empty


def test_a_failure_is_a_result_with_its_code(bench: Any) -> None:
    output = bench.run("bash", command="echo out; exit 3")
    assert output.content[0].text == "out\n\nCommand exited with code 3"
    assert output.is_error is True and output.details["exitCode"] == 3


def test_a_death_by_signal_is_an_error_without_a_code(bench: Any) -> None:
    output = bench.run("bash", command="kill -9 $$")
    assert output.content[0].text == "(no output)\n\nCommand was killed by signal 9"
    assert output.is_error is True and "exitCode" not in output.details


def test_long_output_keeps_its_tail_and_a_full_log(bench: Any) -> None:
    output = bench.run("bash", command="seq 1 5000")
    path = output.details["fullOutputPath"]
    assert output.content[0].text.startswith("2001\n")
    assert output.content[0].text.endswith(f"5000\n\n[Showing lines 2001-5000 of 5000. Full output: {path}]")
    assert output.details["truncation"]["totalLines"] == 5000
    with open(path) as log:
        assert log.read() == "".join(f"{n}\n" for n in range(1, 5001))


def test_the_log_holds_the_raw_bytes(bench: Any) -> None:
    output = bench.run("bash", command="printf '\\377\\033[1m'; head -c 60000 /dev/zero")
    with open(output.details["fullOutputPath"], "rb") as log:
        assert log.read() == b"\xff\x1b[1m" + bytes(60_000)
    assert "[Showing last 50.0KB of line 1 (line is " in output.content[0].text


def test_a_log_that_cannot_be_written_is_not_named(bench: Any) -> None:
    log_root = bench.root.parent / "tmp" / f"atomic-{os.getuid()}"
    log_root.symlink_to("/")
    text = bench.text("bash", command="seq 1 5000")
    assert text.endswith("\n\n[Showing lines 2001-5000 of 5000]")


def test_a_time_out_fails_with_the_output_so_far(bench: Any) -> None:
    failure = bench.failure("bash", command="seq 1 4000; echo last; sleep 60", timeout=1.9)
    path = failure.details["fullOutputPath"]
    assert str(failure).endswith(f"last\n\n[Showing lines 1002-4001 of 4001. Full output: {path}]\n\n"
                                 "Command timed out after 1 seconds")  # fmt: skip
    assert (failure.details["timeoutSeconds"], failure.details["requestedTimeoutSeconds"]) == (1, 1.9)


@pytest.mark.parametrize(("asked", "seconds"), [(None, 300), (3600, 3600), (0.2, 1), (7.9, 7)])
def test_a_time_out_is_floored_but_never_clamped(asked: float | None, seconds: int) -> None:
    assert timeout_seconds(asked) == seconds


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (0, "0"),
        (-1, "-1"),
        (3600.0001, "3600.0001"),
        (1_000_000, "1000000"),
        (1e21, "1e+21"),
        (float("inf"), "inf"),
    ],
)
def test_a_time_out_out_of_range_is_refused(asked: float, shown: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        timeout_seconds(asked)
    assert str(caught.value) == (
        f"Invalid timeout {shown}: timeout must be a finite number greater than 0 and no more than 3600 seconds"
    )


def _cancel_when_shown(context: ToolContext, updates: list[Any], word: str) -> None:
    """Cancels as soon as a snapshot shows `word`."""

    def update(partial: Any) -> None:
        updates.append(partial)
        if partial.content and word in partial.content[0].text:
            context.cancel()

    context.update = update


def test_a_cancel_kills_grandchildren_that_ignore_term(bench: Any) -> None:
    _cancel_when_shown(bench.context, bench.updates, "ready")
    command = "bash -c 'trap \"\" TERM; echo $$ > pid; echo ready; while :; do sleep 1; done' | cat"
    failure = bench.failure("bash", command=command)
    assert str(failure) == "ready\n\nCommand aborted"
    assert _has_ended(int((bench.root / "pid").read_text()))


def _has_ended(pid: int) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10)[0])
    finally:
        os.close(descriptor)


def test_a_call_cancelled_before_it_began_starts_nothing(bench: Any) -> None:
    bench.context.cancel()
    assert bench.fault("bash", command="touch ran") == "(no output)\n\nCommand aborted"
    assert not (bench.root / "ran").exists()


def test_snapshots_are_whole_begin_empty_and_end_complete(bench: Any) -> None:
    bench.run("bash", command="echo one; sleep 0.3; echo two")
    shown = ["".join(block.text for block in update.content) for update in bench.updates]
    assert shown == ["", "one\n", "one\ntwo\n"]
    assert bench.updates[1].details == {"truncation": None, "fullOutputPath": None}


def test_a_short_burst_is_shown_while_the_command_goes_on(bench: Any) -> None:
    _cancel_when_shown(bench.context, bench.updates, "two")
    # Both lines come within 100 ms: the second is shown when its time has come, not when more is written.
    assert bench.fault("bash", command="echo one; sleep 0.02; echo two; sleep 60") == "one\ntwo\n\nCommand aborted"


def test_snapshots_of_chatty_output_keep_their_distance(bench: Any) -> None:
    times: list[float] = []
    bench.context.update = lambda partial: times.append(bench.context.now())
    output = bench.run("bash", command="for i in $(seq 400); do echo $i; sleep 0.001; done")
    assert len(times) <= 3 + output.details["wallTimeMs"] / 100


def test_background_holders_of_the_pipes_do_not_hold_the_result(bench: Any) -> None:
    output = bench.run("bash", command="sleep 60 & echo $!; echo done")
    assert output.details["wallTimeMs"] < 20_000
    (process,) = bench.left_behind
    process.kill_group_leftovers()
    assert _has_ended(int(output.content[0].text.split()[0]))


def test_a_cancel_after_the_end_leaves_background_processes_alone(bench: Any) -> None:
    pid = int(bench.text("bash", command="sleep 60 >/dev/null 2>&1 & echo $!"))
    bench.context.cancel()
    os.kill(pid, 0)
    for process in bench.left_behind:
        process.kill_group_leftovers()


def test_the_callers_variables_count_but_cannot_fake_the_session(bench: Any) -> None:
    bench.environment |= {"ATOMIC_SESSION_ID": "real", "AI_AGENT": "atomic"}
    fake = {"ATOMIC_SESSION_ID": "fake", "PI_MODEL": "fake", "AI_AGENT": "fake", "MINE": "a b"}
    text = bench.text("bash", command='echo "$ATOMIC_SESSION_ID|$PI_MODEL|$AI_AGENT|$MINE"', env=fake)
    assert text == "real||atomic|a b\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"env": {"1A": "x"}}, "Invalid bash env name: 1A"),
        ({"env": {"A": "x\0"}}, "Invalid bash env value of A"),
        ({"cwd": "no"}, "Working directory does not exist: {root}/no\nCannot execute bash commands."),
        ({"cwd": "file"}, "Working directory is not a directory: {root}/file"),
        ({"command": "echo \ud800"}, "Invalid command"),
        ({"command": "echo \0"}, "Invalid command"),
        ({"timeout": 4000}, "Invalid timeout 4000: "),
    ],
)
def test_what_cannot_run_is_refused_by_name(bench: Any, arguments: dict[str, Any], reason: str) -> None:
    bench.write("file", "")
    fault = bench.fault("bash", **{"command": "touch ran", **arguments})
    assert fault.startswith(reason.format(root=bench.root))
    assert not (bench.root / "ran").exists()


@pytest.mark.parametrize("pty", [False, True])
def test_where_nobody_owns_tasks_a_background_is_refused_before_a_shell_is_looked_for(bench: Any, pty: bool) -> None:
    bench.context.shell_path = "/no/shell"
    asked = {"command": "touch ran", "wait": {"kind": "background"}, "pty": pty}
    assert bench.fault("bash", **asked) == "Background bash observation requires a supported task owner"
    assert bench.fault("bash", action="wait", id="t") == "Shell task wait requires a supported task owner"
    assert bench.updates == [] and not (bench.root / "ran").exists()


def test_where_nobody_owns_tasks_a_foreground_waits_for_the_end_whatever_its_budget(bench: Any) -> None:  # contract
    wait = {"kind": "foreground", "budgetMs": 0}
    assert bench.text("bash", command="sleep 0.1; echo done", wait=wait) == "done\n"


def test_cwd_prefix_and_shell_are_used(bench: Any) -> None:
    (bench.root / "sub").mkdir()
    bench.context.shell_prefix = "x=from-prefix"
    assert bench.text("bash", command="pwd; echo $x", cwd="sub") == f"{bench.root}/sub\nfrom-prefix\n"
    bench.context.shell_path = "/no/shell"
    assert bench.fault("bash", command="true") == "Custom shell path not found: /no/shell"


def test_a_character_split_over_two_writes_is_whole(bench: Any) -> None:
    assert bench.text("bash", command="printf '\\342'; sleep 0.05; printf '\\202\\254'") == "€"


def test_a_terminal_is_used_when_asked_for_unless_switched_off(bench: Any) -> None:
    assert bench.text("bash", command="tty", pty=True).startswith("/dev/")
    bench.environment["PI_NO_PTY"] = "1"
    assert bench.text("bash", command="tty; true", pty=True) == "not a tty\n"


def test_what_is_left_on_a_terminal_ends_with_it_and_does_not_hold_the_result(bench: Any) -> None:
    text = bench.text("bash", command="trap '' HUP TERM; sleep 600 & echo $!", pty=True)
    assert _has_ended(int(text)) and bench.left_behind == []


def test_a_terminal_over_its_time_has_the_usual_text(bench: Any) -> None:
    fault = bench.fault("bash", command="echo in; sleep 60", pty=True, timeout=1)
    assert fault.replace("\r", "") == "in\n\nCommand timed out after 1 seconds"


def test_a_reader_that_is_slow_bounds_the_memory(bench: Any) -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        bench.run("bash", command="head -c 50000000 /dev/zero | tr '\\0' '\\n'")
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()


def test_a_callback_is_called_once_whoever_comes_first(bench: Any) -> None:
    calls: list[int] = []
    threads = [threading.Thread(target=bench.context.cancel) for _ in range(8)]
    bench.context.on_cancel(lambda: calls.append(1))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.context.on_cancel(lambda: calls.append(2))
    assert calls == [1, 2]
