"""Each way to break an agent does that and no more, to the same records for the same seed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.mutation import Choice
from conformance.mutations import KINDS, Mutator


def response(command: str, id: Any = "1", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "response", "command": command, "success": True, **more}


def delta(text: str, index: int = 0) -> dict[str, Any]:
    return {
        "type": "message_update",
        "assistantMessageEvent": {"type": "text_delta", "contentIndex": index, "delta": text},
    }


def shell(text: str, id: str = "b", channel: str = "stdout") -> dict[str, Any]:
    return {"type": "bash_execution_update", "id": id, "channel": channel, "delta": text}


START, SETTLED, NOISE = {"type": "agent_start"}, {"type": "agent_settled"}, {"type": "noise", "n": 1}


def raw(record: Any) -> bytes:
    return record if isinstance(record, bytes) else json.dumps(record, separators=(",", ":")).encode()


def mutated(kind: str, argument: str, *records: Any, seed: int = 1, chance: float = 1.0) -> list[Any]:
    """What comes, as records where it is any."""
    mutator = Mutator([Choice(kind, argument)], seed, chance)
    lines = [line for record in records for line in mutator.lines(raw(record))] + mutator.ended()
    return [read(line) for line in lines]


def read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line


def messages(**message: Any) -> list[Any]:
    return [{"type": type_, "message": message} for type_ in ("message_start", "message_end")]


def ended(tool: str, details: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_execution_end", "toolName": tool, "result": {"details": details}}


NOTICE = messages(role="custom", customType="task-completion", content="x")
SAID = messages(role="toolResult", toolName="bash", details={"exitCode": 1})
(_, BACKGROUND) = messages(role="toolResult", toolName="bash", details={"observation": {}})
STOPPED = {"kind": "settled", "result": {"kind": "cancelled", "cause": "user"}}
ENVELOPE = {"completionId": "completion-task-x-0-0", "ownerId": "owner-x-0", "taskId": "task-x-0-0"}
MADE_UP = messages(
    role="custom",
    customType="task-completion",
    content="Background shell completed: it",
    display=True,
    timestamp=0,
    details={
        **ENVELOPE,
        "terminalSequence": "1",
        "result": {"kind": "completed", "exitCode": 0},
        "display": False,
        "notification": {"title": "it", "preview": "", "status": "completed", "taskId": "task-x-0-0"},
    },
)
UPDATE = {
    "type": "task_update",
    "task": {
        "ref": {
            "ownerId": "owner-x-0",
            "taskId": "task-x-0-0",
            "attemptId": "attempt-x-0-0-1",
            "generation": "x-0",
        },
        "launchOrdinal": 0,
        "kind": "command",
        "title": "it",
        "state": "completed",
        "execution": {"kind": "settled", "result": {"kind": "completed", "exitCode": 0}},
        "observation": {"kind": "none", "reason": "task-settled"},
        "cleanup": {"kind": "reaped"},
        "attention": {"kind": "none", "requestIds": []},
        "wasBackground": False,
        "acceptsInput": False,
    },
}
REFUSED = response("bash", success=False, error="no")
EXAMPLES: dict[str, tuple[str, list[Any], list[Any]]] = {
    "drop": ("agent_settled", [START, SETTLED, NOISE], [START, NOISE]),
    "drop-response": ("abort", [response("abort"), response("bash"), NOISE], [response("bash"), NOISE]),
    "lose-bash-result": (
        "",
        [shell("a"), response("bash"), response("user_bash"), response("abort")],
        [shell("a"), response("abort")],
    ),
    "double": ("response", [response("abort"), NOISE], [response("abort"), response("abort"), NOISE]),
    "wrong-type": ("noise", [START, NOISE], [START, {**NOISE, "type": "noise_x"}]),
    "mistype": (
        "n",
        [{**NOISE, "n": "a text"}, {**NOISE, "n": 1}, START],
        [{**NOISE, "n": 5}, {**NOISE, "n": "text"}, START],
    ),
    "wrong-id": (
        "",
        [response("abort"), response("bash", 7), shell("a", "1")],
        [response("abort", "1x"), response("bash", 8), shell("a", "1")],
    ),
    "false-success": ("", [REFUSED, response("abort")], [response("bash"), response("abort")]),
    "truncate": ("noise", [START, NOISE], [START, raw(NOISE)[: len(raw(NOISE)) // 2]]),
    "join": ("noise", [START, NOISE, NOISE, SETTLED], [START, raw(NOISE) * 2 + raw(SETTLED)]),
    "print": ("hello", [START, response("abort")], [START, b"hello", response("abort")]),
    "swap-deltas": (
        "",
        [delta("a"), delta("b"), delta("c"), NOISE, shell("1"), shell("2"), shell("3", "other"), shell("4", "other")],
        [delta("b"), delta("a"), delta("c"), NOISE, shell("2"), shell("1"), shell("4", "other"), shell("3", "other")],
    ),
    "late-event": (
        "",
        [START, delta("a"), delta("b"), SETTLED, NOISE],
        [START, delta("b"), SETTLED, delta("a"), NOISE],
    ),
    "early-result": (
        "",
        [shell("1", "x"), shell("2", "x"), shell("3", "y"), response("bash", "x"), response("bash", "y")],
        [shell("1", "x"), response("bash", "x"), shell("2", "x"), response("bash", "y"), shell("3", "y")],
    ),
    "silence": ("2", [START, NOISE, SETTLED, NOISE], [START, NOISE]),
    "lose-notice": ("", [*NOTICE, *SAID], SAID),
    "double-notice": ("", [*NOTICE, *SAID], [*NOTICE, *NOTICE, *SAID]),
    "foreground-notice": ("", [*SAID, BACKGROUND], [*SAID, *MADE_UP, BACKGROUND]),
    "patient-kill": (
        "",
        [ended("kill", {"taskId": "t", "cleanup": {"kind": "draining"}}), ended("bash", {})],
        [ended("kill", {"taskId": "t", "cleanup": {"kind": "reaped"}, "execution": STOPPED}), ended("bash", {})],
    ),
    "unasked-update": ("", [START, ended("bash", {})], [START, ended("bash", {}), UPDATE]),
}


def test_every_kind_has_an_example() -> None:
    assert set(EXAMPLES) == set(KINDS) and len(KINDS) >= 10


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_mutation_does_what_it_says(kind: str) -> None:
    argument, records, expected = EXAMPLES[kind]
    assert mutated(kind, argument, *records) == expected


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"silence"}))
def test_what_a_mutation_does_not_strike_passes_byte_for_byte(kind: str) -> None:
    lines = [b'{ "type" : "queue_update" }', b"no record", b"", b"\xff", b'{"type":"tool_execution_update"}']
    mutator = Mutator([Choice(kind, "nothing")], 1, 1.0)
    assert [out for line in lines for out in mutator.lines(line)] + mutator.ended() == lines


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"silence"}))
def test_with_no_chance_nothing_is_changed(kind: str) -> None:
    argument, records, _ = EXAMPLES[kind]
    assert mutated(kind, argument, *records, chance=0.0) == records


@given(st.integers(0, 50), st.lists(st.sampled_from([START, NOISE, delta("a"), shell("b"), SETTLED]), max_size=20))
def test_the_same_seed_strikes_the_same_records(seed: int, records: list[Any]) -> None:
    once, again = (mutated("double", "noise", *records, seed=seed, chance=0.5) for _ in range(2))
    assert once == again


def test_another_seed_strikes_others() -> None:
    assert (
        len(
            {
                str(mutated("drop", "noise", *[{**NOISE, "n": n} for n in range(20)], seed=seed, chance=0.5))
                for seed in range(9)
            }
        )
        > 5
    )


def test_mutations_work_one_on_what_the_other_made() -> None:
    mutator = Mutator([Choice("double", "noise"), Choice("wrong-type", "noise")], 1, 1.0)
    assert [read(line) for line in mutator.lines(raw(NOISE))] == [{**NOISE, "type": "noise_x"}] * 2
