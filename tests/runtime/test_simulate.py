"""The real actors under the seeded scheduler: what holds in thousands of orders, and how they are played."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime import simulate
from runtime.simulate import Played, Tally, failures, main, play_all, play_chunk
from runtime.simulation.course import course_of, read_course
from runtime.simulation.coverage import known
from runtime.simulation.parts import Parts
from tests.runtime.simulation.broken_actors import Silent

ROOT = Path(__file__).parents[2]
SEEDS = 2000
SEEDS_WITH_AGENTS = 2500
SEEDS_WITH_VISITORS = 2000
SEEDS_WITH_A_FAULT = 300


def first_report(found: Any) -> str:
    played = next(found, None)
    return "" if played is None else played.shortened().report()


@pytest.fixture(scope="module")
def tally() -> Tally:
    """Three seeds of ten have a fault."""
    return play_chunk(0, SEEDS, "mixed", covers=True)


@pytest.fixture(scope="module")
def of_agents() -> Tally:
    """In all of them the model hands work to subagents; four of ten have a fault."""
    return play_chunk(0, SEEDS_WITH_AGENTS, "agents", covers=True)


@pytest.fixture(scope="module")
def of_visitors() -> Tally:
    """In all of them the model hands work to subagents, and inspectors look on; four of ten have a fault."""
    return play_chunk(0, SEEDS_WITH_VISITORS, "visitors", covers=True)


@pytest.fixture(scope="module")
def seen(tally: Tally, of_agents: Tally, of_visitors: Tally) -> set[str]:
    return {*tally.seen, *of_agents.seen, *of_visitors.seen}


@pytest.mark.timeout(300)  # some 10 s alone, more beside others
def test_no_order_of_the_mail_breaks_an_invariant(tally: Tally) -> None:
    failed = () if tally.failed is None else failures(range(tally.failed, tally.failed + 1))
    assert first_report(iter(failed)) == ""
    assert tally.seeds == SEEDS


@pytest.mark.timeout(300)  # some 25 s alone
def test_no_order_of_the_mail_breaks_one_while_subagents_work(of_agents: Tally) -> None:
    failed = () if of_agents.failed is None else failures(range(of_agents.failed, of_agents.failed + 1), "agents")
    assert first_report(iter(failed)) == ""
    assert of_agents.seeds == SEEDS_WITH_AGENTS >= 2000


@pytest.mark.timeout(300)  # some 35 s alone
def test_no_order_of_the_mail_breaks_one_while_inspectors_look_on(of_visitors: Tally) -> None:
    failed = (
        () if of_visitors.failed is None else failures(range(of_visitors.failed, of_visitors.failed + 1), "visitors")
    )
    assert first_report(iter(failed)) == ""
    assert of_visitors.seeds == SEEDS_WITH_VISITORS >= 2000


def test_the_seeds_meet_every_command_every_event_and_every_kind_of_mail(seen: set[str]) -> None:
    """What is rare may come some thousand seeds later."""
    for start in range(SEEDS, 4 * SEEDS, 500):
        if known() <= seen:
            break
        seen = seen | play_chunk(start, start + 500, "mixed", covers=True).seen.keys()
    assert known() - seen == set()


def test_the_seeds_meet_every_fault_and_faults_strike_actors_of_every_kind(seen: set[str]) -> None:
    faults = {name.removeprefix("fault ") for name in seen if name.startswith("fault ")}
    struck = {name.removeprefix("crash of ") for name in faults if name.startswith("crash of ")}
    assert {"intake", "writer", "sessions", "session", "queue", "model-call", "shells", "shell"} <= struck
    assert {"tasks", "task", "agent", "subagent-session", "tool-call", "door", "visitor"} <= struck
    assert {f"crash {moment} a mail" for moment in ("before", "inside", "after")} <= faults
    assert {
        "an append to a session file fails",
        "stdout is closed",
        "nobody reads stdout any more",
        "stdout is read slowly",
        "end of stdin",
        "signal 1",
        "signal 2",
        "signal 15",
        "a second signal",
        "a line that is no UTF-8",
        "a line larger than a read",
        "an inspector is let in",
        "an inspector is turned away",
        "an inspector goes",
        "an inspector says no more",
        "an inspector reads nothing any more",
        "an inspector that does not read is dropped",
    } <= faults


def test_the_seeds_meet_every_mishap_of_the_world(seen: set[str]) -> None:
    sources = [path.read_text() for path in (ROOT / "runtime" / "simulation").glob("*.py")]
    met = {name.removeprefix("mishap ") for name in seen if name.startswith("mishap ")}
    assert len(met) >= 40
    assert all(any(f'"{name}"' in source for source in sources) for name in met)
    named = {word for source in sources for word in source.split('"')[1::2] if ": " in word and word.islower()}
    assert {name for name in named if name.split(": ")[0] in {word.split(": ")[0] for word in met}} <= met


@pytest.mark.parametrize("mix", ["crash", "disk"])
def test_a_fault_in_each_seed_leaves_no_command_unanswered_and_loses_nothing_silently(mix: Any) -> None:
    assert first_report(failures(range(SEEDS_WITH_A_FAULT), mix)) == ""


# ---- repeating -----------------------------------------------------------------------------------------------------


def test_a_seed_plays_the_same_in_every_process(tmp_path: Path) -> None:
    traces = []
    for hash_seed in ("1", "2"):
        file = tmp_path / hash_seed
        command = [sys.executable, "-m", "runtime.simulate", "--start", "7", "--trace", str(file)]
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        traces.append(file.read_bytes())
    assert traces[0] == traces[1] != b""


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_a_seed_can_be_given_instead(seed: int) -> None:
    drawn = Played(course_of(seed))
    course = msgspec.structs.replace(drawn.course, choices=drawn.house.scheduler.order.taken)
    assert list(Played(course).trace()) == list(drawn.trace())


# ---- the command ---------------------------------------------------------------------------------------------------


def test_seeds_without_a_violation_end_with_0_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "3", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 seeds, no violation (") and "a second" in out and out.count("\n") == 1


def test_processes_play_the_same_seeds_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "CHUNK", 4)
    alone, shared = (list(play_all(range(5, 15), "mixed", jobs, covers=True)) for jobs in (1, 2))
    assert [(tally.messages, tally.seen) for tally in alone] == [(tally.messages, tally.seen) for tally in shared]
    assert [tally.seeds for tally in alone] == [4, 4, 2]


def test_coverage_lists_what_was_seen_and_what_was_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "5", "--jobs", "1", "--coverage"]) == 0
    rows = dict(line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines()[:-1])
    assert rows["command prompt"] == "5" or int(rows["command prompt"]) > 0
    assert int(rows["seeds"]) == 5
    assert "0" in rows.values()


@pytest.mark.timeout(120)
def test_a_seed_that_fails_is_shortened_printed_and_saved_so_that_it_can_be_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Parts, "shell", Silent)
    plan = tmp_path / "plan.json"
    assert main(["--seeds", "50", "--jobs", "1", "--save", str(plan)]) == 1
    report = capsys.readouterr().out.splitlines()
    assert report[0].startswith("seed ")
    assert any(line.startswith("responses: no response to") for line in report)
    mail = report[report.index(next(line for line in report if line.startswith("mail ("))) + 1 :]
    assert set(msgspec.json.decode(mail[0])) == {"from", "to", "mail", "fields"}
    assert read_course(plan.read_bytes()).note in report
    assert main(["--replay", str(plan)]) == 1
    monkeypatch.undo()
    assert main(["--replay", str(plan)]) == 0
