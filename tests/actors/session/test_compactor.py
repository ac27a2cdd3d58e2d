"""The compaction of a real session between probes: who may end it, what joins it, and what comes too late."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from actors.mail import (
    BashFinished,
    CancelCall,
    CompactionWorked,
    NoMoreCommands,
    ReplyEnded,
    Retire,
    Retired,
    SessionGone,
)
from actors.probe import Probe
from actors.session.compaction.boundary import Proposal
from actors.session.compaction_work import worked
from actors.session.requests.compaction import wrong_parameter
from protocol.commands import Compact
from protocol.messages import AssistantMessage, BashExecutionMessage, TextContent, Usage
from tests.actors.session.test_session import END, USER, Bench

LINES = "\n".join(f"line {number}" for number in range(1, 41))
COMPACTED = ["compaction_start", "compaction_end", "compact ok"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session of two exchanges, the first of them 40 lines."""
    bench = Bench(tmp_path)
    for said in (LINES, "and now?"):
        bench.prompt(said)
        bench.reply()
    bench.writes()
    return bench


def serve(bench: Bench, **ports: Any) -> None:
    bench.session.services = replace(bench.session.services, **ports)


class Pumps:
    """Pumps whose work is done when the test says so."""

    def __init__(self, bench: Bench) -> None:
        self.tasks: list[tuple[int, Callable[[], Any]]] = []
        self._bench = bench
        serve(bench, work=lambda job, task, session: self.tasks.append((job, task)))

    def finish(self) -> None:
        job, task = self.tasks.pop(0)
        self._bench.tell(worked(job, task))


def plan(bench: Bench, text: str = "2,40", stop: Any = "stop", **fields: Any) -> None:
    message = AssistantMessage([TextContent(text)], "scripted", "p", "m", Usage(), stop, 5, **fields)
    bench.tell(ReplyEnded(bench.requests[-1].call, message))


def ended(bench: Bench) -> dict[str, Any]:
    (found,) = [record for record in bench.records() if record["type"] == "compaction_end"]
    return found


def finished_bash(output: str) -> BashFinished:
    return BashFinished(9, BashExecutionMessage("ls", output, False, False, 7, 0), Probe())


@pytest.mark.parametrize(("ratio", "shown"), [(1, "1"), (0, "0"), (-0.25, "-0.25"), (1.0000001, "1.0000001")])
def test_a_ratio_that_cannot_be_is_told_with_every_digit(ratio: float, shown: str) -> None:
    refusal = wrong_parameter(Compact(compression_ratio=ratio))
    assert refusal == f'compact: "compression_ratio" must be a number above 0 and below 1, not {shown}'


def test_the_parts_are_done_in_pumps_and_the_session_answers_meanwhile(bench: Bench) -> None:
    pumps = Pumps(bench)
    bench.send("compact")
    assert bench.told() == ["compaction_start"]
    for part in ("prepare", "number"):
        assert bench.ask("get_state")["isCompacting"] is True, part
        pumps.finish()
    plan(bench)
    pumps.finish()  # read the plan
    assert bench.ask("get_state")["compactionReason"] == "manual"
    pumps.finish()  # rebuild
    assert bench.told() == COMPACTED[1:]
    assert bench.ask("get_state")["isCompacting"] is False
    assert bench.roles() == ["custom"]


def test_a_second_command_joins_the_one_that_runs(bench: Bench) -> None:
    bench.send({"type": "compact", "id": "one"}, {"type": "compact", "id": "two"})
    plan(bench)
    told = bench.records()
    assert [record["type"] for record in told] == [*COMPACTED[:2], "response", "response"]
    assert [record["id"] for record in told[2:]] == ["one", "two"]
    assert told[2]["data"] == told[3]["data"]
    assert len(bench.requests) == 3


def test_what_a_pump_says_after_a_cancel_is_dropped_and_the_session_waits_for_it(bench: Bench) -> None:
    pumps = Pumps(bench)
    bench.send("compact", "abort_compaction")
    assert bench.told() == [
        "compaction_start",
        "abort_compaction ok",
        "compaction_end",
        "compact: Compaction cancelled",
    ]
    bench.tell(Retire(), NoMoreCommands())
    assert [type(mail) for mail in bench.desk.drain()] == [Retired]
    pumps.finish()
    assert [type(mail) for mail in bench.desk.drain()] == [SessionGone]
    assert bench.requests == bench.requests[:2] and pumps.tasks == []


def test_a_cancel_cuts_the_request_and_its_late_answer_finds_nobody(bench: Bench) -> None:
    bench.send("compact")
    call = bench.requests[-1].call
    bench.send("abort_compaction")
    assert bench.calls[-1].drain() == [CancelCall()]
    bench.writes()
    bench.tell(ReplyEnded(call, AssistantMessage([TextContent("2,40")], "a", "p", "m", Usage(), "stop", 5)))
    assert bench.told() == []
    assert bench.roles() == ["user", "assistant", "user", "assistant"]


def test_a_part_that_fails_ends_the_compaction_without_telling_what_it_held(bench: Bench) -> None:
    pumps = Pumps(bench)
    bench.send("compact")
    job, _ = pumps.tasks.pop()

    def fail() -> None:
        raise RuntimeError("the secret text")

    bench.tell(worked(job, fail))
    assert ended(bench)["errorMessage"] == "Compaction failed: the compaction failed: RuntimeError"


def test_a_boundary_that_cannot_be_journaled_is_an_error_and_changes_nothing(bench: Bench) -> None:
    bench.send("compact")
    path = Path(bench.session.history.path or "")
    path.unlink()
    plan(bench)
    assert ended(bench)["errorMessage"].startswith("Compaction failed: Session file was removed or replaced: ")
    assert bench.complaints[-1].startswith("Session file was removed or replaced: ")
    assert bench.roles() == ["user", "assistant", "user", "assistant"]


def test_a_backup_that_cannot_be_made_is_one_line_for_stderr(bench: Bench) -> None:
    class Full:
        def back_up(self, session_path: str, label: str) -> str:
            raise OSError(28, "No space left on device")

        def keep_answer(self, session_path: str, category: str, facts: Any) -> None:
            return None

    serve(bench, compaction_files=Full)
    bench.send("compact")
    plan(bench)
    assert "backupPath" not in ended(bench)["result"]
    assert bench.complaints[-1].endswith(": No space left on device")


# ---- what comes in between ----------------------------------------------------------------------------------------


def test_a_shell_result_becomes_the_tail_when_nothing_else_is_kept(bench: Bench) -> None:
    bench.send({"type": "compact", "preserve_recent": 0})
    bench.tell(finished_bash("in between"))
    plan(bench)
    result = ended(bench)["result"]
    (kept,) = [entry for entry in bench.ask("get_entries")["entries"] if entry["id"] == result["firstKeptEntryId"]]
    assert kept["message"]["output"] == "in between"
    (message,) = bench.ask("get_messages")["messages"]
    assert message["content"][0]["text"].count("in between") == 1


def test_a_shell_result_of_a_compaction_that_fails_is_in_the_context(bench: Bench) -> None:
    bench.send("compact")
    bench.tell(finished_bash("in between"))
    plan(bench, "no plan")
    assert bench.roles()[-1] == "bashExecution"


def test_a_label_in_between_needs_no_tail(bench: Bench) -> None:
    bench.send({"type": "compact", "preserve_recent": 0})
    bench.send({"type": "set_session_name", "name": "x"})
    plan(bench)
    assert ended(bench)["result"]["firstKeptEntryId"] is None


def test_a_command_ends_the_run_first_and_a_retirement_ends_both(bench: Bench) -> None:
    bench.prompt("work")
    bench.writes()
    bench.send("compact")
    assert bench.told() == []
    assert bench.calls[-1].drain() == [CancelCall()]
    bench.tell(Retire())
    assert bench.told() == ["compact: Compaction cancelled"]
    bench.reply(stop="aborted", text=None)
    assert bench.told()[-3:] == [*END, "agent_settled"]
    assert [type(mail) for mail in bench.desk.drain()] == [Retired]


def test_an_abort_before_the_run_has_ended_leaves_the_compaction(bench: Bench) -> None:
    bench.prompt("work")
    bench.send("compact", "abort")
    bench.reply(stop="aborted", text=None)
    plan(bench)
    assert [each for each in bench.told() if each.startswith(("comp", "abort", "agent"))] == [
        *("agent_start", "agent_end", "abort ok", *COMPACTED, "agent_settled"),
    ]


def test_a_run_that_was_aborted_and_failed_all_the_same_is_not_tried_again(bench: Bench) -> None:
    for interrupt in ("abort", "compact"):
        bench.prompt("work")
        bench.send(interrupt)
        message = AssistantMessage([], "scripted", "p", "m", Usage(), "error", 5, error_message="529 overloaded")
        bench.tell(ReplyEnded(bench.requests[-1].call, message))
        assert "auto_retry_start" not in bench.told()
        plan(bench)


# ---- extensions ---------------------------------------------------------------------------------------------------


def proposed(bench: Bench, proposal: Proposal) -> list[Any]:
    """Compacts while an extension says this; what it was asked."""
    asked: list[Any] = []

    def answer(reason: str, prepared: Any) -> Proposal:
        asked.append((reason, prepared.first_kept, len(prepared.region)))
        return proposal

    serve(bench, propose_compaction=answer)
    bench.send("compact")
    return asked


def test_an_extension_may_give_the_text(bench: Bench) -> None:
    ((reason, first_kept, lines),) = proposed(bench, Proposal("mine\ntoo"))
    assert (reason, lines) == ("manual", 42)
    result = ended(bench)["result"]
    assert (result["compactedText"], result["rung"], result["firstKeptEntryId"]) == (
        "mine\ntoo",
        "extension",
        first_kept,
    )
    assert (result["stats"]["linesDeleted"], result["stats"]["rangeCount"]) == (40, 0)
    *_, boundary = bench.ask("get_entries")["entries"]
    assert boundary["fromHook"] is True
    assert len(bench.requests) == 2


def test_an_extension_may_cancel_or_leave_it_to_the_planner(bench: Bench) -> None:
    proposed(bench, Proposal(cancel=True))
    assert bench.told() == ["compaction_start", "compaction_end", "compact: Compaction cancelled"]
    proposed(bench, Proposal())
    plan(bench)
    assert bench.told() == COMPACTED


def test_blank_text_of_an_extension_is_an_error(bench: Bench) -> None:
    proposed(bench, Proposal(" \n"))
    assert bench.told() == [
        "compaction_start",
        "compaction_end",
        "compact: No compacted text provided by extension",
    ]
    assert bench.roles() == ["user", "assistant", "user", "assistant"]


def test_mail_about_an_old_compaction_is_no_mail_about_this_one(bench: Bench) -> None:
    pumps = Pumps(bench)
    bench.send("compact", "abort_compaction", "compact")
    bench.tell(CompactionWorked(1, None))
    bench.writes()
    pumps.tasks.pop(0)
    pumps.finish()
    pumps.finish()
    plan(bench)
    pumps.finish()
    pumps.finish()
    assert bench.told() == COMPACTED[1:]
    bench.prompt("on")
    assert [each for each in bench.told() if each in USER] == USER
