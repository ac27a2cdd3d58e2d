"""Faults for readers: what was awaited, what came, and which record was nearest."""

from __future__ import annotations

from conformance.fault import Fault, compared, missing_record
from conformance.matching import Difference


def test_a_fault_is_told_in_lines() -> None:
    told = Fault("something", 7, "a: 1", "a: 2", '{"a": 2}').text()
    assert told == 'line 7: something\n  awaited  a: 1\n  came     a: 2\n  nearest  {"a": 2}'
    assert Fault("something", rule="runs").text() == "rule runs: something"


def test_a_difference_keeps_its_place() -> None:
    assert compared("x", 3, Difference("data.a", "1", "2")) == Fault("x", 3, "data.a: 1", "data.a: 2")
    assert compared("x", 3, Difference("", "1", "2")) == Fault("x", 3, "1", "2")


RECORDS = [
    {"type": "agent_start"},
    {"type": "response", "id": "1", "success": True},
    {"type": "response", "id": "2", "success": True},
]


def test_the_nearest_record_has_the_type_and_the_id() -> None:
    shape = {"type": "response", "id": "2", "success": False}
    fault = missing_record(shape, RECORDS, {}, 4, "within 1 s")
    assert (fault.awaited, fault.came) == ("success: false", "success: true")
    assert '"id": "2"' in fault.nearest


def test_nothing_is_near_when_nothing_came() -> None:
    assert missing_record({"type": "x"}, [], {}, 4, "within 1 s") == Fault(
        'no record {"type": "x"} (within 1 s)', 4, came="no record like it"
    )
