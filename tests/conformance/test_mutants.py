"""Our own program, broken on purpose in one way after another: the kit catches each, and passes what is not broken."""

from __future__ import annotations

import sys

import pytest

from conformance.player import Target
from conformance.profile import read_profile
from conformance.run import chosen, run
from conformance.run_command import schema_check
from conformance.verdict import Verdict
from tests.conformance.test_cases import program


def verdict(flags: str, case: str, deadline: float) -> Verdict:
    command = [sys.executable, "-m", "conformance", "mutate", "--seed", "7", *flags.split(), "--", *program()]
    target = Target(command, read_profile("atomic"), deadline, schema_check("strict"))
    (one,) = run(chosen([], [case], []), target, 1)
    return one


# what is broken -> the flags, a case that shows it, and what the report says
MUTANTS: dict[str, tuple[str, str, str]] = {
    "a dropped response": ("--drop-response get_state", "state/get-state", "no record"),
    "swapped deltas": ("--swap-deltas", "prompt/text", "the text of a message is not what its deltas said"),
    "a doubled record": ("--double message_end", "prompt/text", "another record in the sequence"),
    "a doubled response": ("--double response", "state/get-state", "a second response"),
    "a lost bash result": ("--lose-bash-result", "bash/deltas", "no record"),
    "an id echoed wrong": ("--wrong-id", "state/get-state", "a response with an id that was not sent"),
    "no agent_settled": ("--drop agent_settled", "session/fork", 'no record {"type": "agent_settled"}'),
    "a type that nobody knows": ("--wrong-type turn_start", "session/fork", "is unknown"),
    "a field of another type": ("--mistype usage", "session/fork", "not as the schema says"),
    "an event after the run settled": ("--late-event", "session/fork", "message_update outside of a run"),
    "an error answered as success": ("--false-success", "framing/unknown-command", "its response is another"),
    "a truncated line": ("--truncate agent_end", "session/fork", "is not one JSON object"),
    "two records on one line": ("--join turn_start", "session/fork", "is not one JSON object"),
    "a stray print": ("--print hello", "state/get-state", "is not one JSON object"),
    "a response before the last delta": ("--early-result", "bash/deltas", "a record that must not be there"),
    "silence": ("--silence 3", "session/fork", "no record"),
    "death in the middle of a run": ("--die-after 5", "session/fork", "no record"),
    "a lost notice": ("--chance 0.5 --lose-notice", "tasks/notice-each", "no record"),
    "a notice that comes twice": ("--double-notice", "tasks/notice", "how many records"),
    "a notice of an agent that comes twice": ("--double-notice", "subagents/notice", "how many records"),
    "a notice for the foreground": (
        "--foreground-notice",
        "tasks/notice-not-for-foreground",
        "how many records",
    ),
    "a kill that waits": ("--patient-kill", "tasks/kill-does-not-wait", 'execution.kind: anything but "settled"'),
    "an update unasked": ("--unasked-update", "tasks/no-updates-unasked", "a record that must not be there"),
}


@pytest.mark.parametrize("what", MUTANTS)
def test_each_mutant_is_caught(what: str) -> None:
    flags, case, told = MUTANTS[what]
    far = case.startswith(("tasks/", "subagents/"))  # these start processes before it comes to what is broken
    one = verdict(flags, case, deadline=8.0 if far else 2.0)
    assert one.outcome == "failed"
    assert told in "\n".join(fault.text() for fault in one.faults)


@pytest.mark.parametrize("case", sorted({case for _, case, _ in MUTANTS.values()}))
def test_what_is_not_broken_passes_through_the_same_proxy(case: str) -> None:
    one = verdict("--drop no_such_type", case, deadline=20.0)
    assert (one.outcome, one.faults) == ("passed", ())
