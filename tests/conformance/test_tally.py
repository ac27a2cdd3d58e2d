"""Figures of a stress run, and the watch over the order of events."""

from __future__ import annotations

import json

import pytest

from conformance.tally import Tally, Watch, percentiles

RUN = ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]


def problems(*kinds: str) -> list[str]:
    watch = Watch()
    return [problem for kind in kinds if (problem := watch.broken(kind)) is not None]


def test_runs_one_after_another_are_fine_whatever_comes_between() -> None:
    other = ["queue_update", "bash_execution_update", "brand_new", "compaction_start"]
    assert problems(*RUN, *other, *RUN, "agent_settled", *other, *RUN, "agent_settled") == []


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (["agent_start", "agent_start"], "agent_start before the agent_end of the one before"),
        (["agent_end"], "agent_end without agent_start before it"),
        (["turn_start"], "turn_start without agent_start before it"),
        (["message_update"], "message_update without message_start before it"),
        ([*RUN, "agent_settled", "message_update"], "message_update without message_start before it"),
        (["agent_start", "agent_settled"], "agent_settled inside of a run"),
        (["agent_start", "message_start", "message_start"], "message_start before the message_end of the one before"),
    ],
)
def test_what_overlaps_or_stands_outside_is_told_once(kinds: list[str], told: str) -> None:
    assert problems(*kinds) == [told]


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentiles([0.001]) == {"count": 1, "p50": 1.0, "p95": 1.0, "p99": 1.0, "max": 1.0}
    hundred = [n / 1000 for n in range(100, 0, -1)]
    assert percentiles(hundred) == {"count": 100, "p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


def test_a_command_that_is_not_known_is_missing_and_any_other_refusal_is_a_violation() -> None:
    tally = Tally()
    for _ in range(2):
        tally.wrongly_refused("pause_queued_messages", "Unknown command: pause_queued_messages")
    tally.wrongly_refused("get_state", "not now")
    assert (tally.missing, tally.violations) == (["pause_queued_messages"], ["get_state was refused: not now"])
    assert "missing: pause_queued_messages\nVIOLATED: get_state was refused: not now\n" in tally.as_text()


def test_the_text_has_what_the_data_have() -> None:
    tally = Tally()
    tally.seconds, tally.exit_code, tally.peak_mib, tally.events = 2.0, 0, 33.3, 7
    tally.took("bash", 0.012)
    tally.took("get_state", 0.001)
    for _ in range(3):
        tally.refused("prompt", "busy " * 40)
    text = tally.as_text()
    assert text.startswith("2 answers in 2.0 s (1.0 a second), 7 events\n")
    assert "refused     3 x prompt: busy busy" in text and "peak memory 33 MiB, 0 processes" in text
    assert text.endswith("no violation\n")
    assert json.loads(tally.as_json())["latencyMs"]["bash"]["p50"] == 12.0
    for n in range(30):
        tally.violated(f"fault {n}")
    assert "VIOLATED: fault 19\nand 10 more\n30 violations\n" in tally.as_text()
