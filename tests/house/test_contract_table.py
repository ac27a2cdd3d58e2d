"""docs/protocol.md names a test for everything that the contract promises, and is what the tests say today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.contract_facts import BEYOND, CONTRACT, CONTRACT_EVENTS, LATER
from tests.house.contract_table import (
    Claim,
    Witness,
    claims,
    command_names,
    event_names,
    expected,
    fits,
    section,
    shown,
    unseen,
    written,
)


@pytest.fixture(scope="module")
def tests() -> dict[Claim, list[Witness]]:
    return shown()


def test_every_command_and_event_that_there_is_has_its_place() -> None:
    assert set(CONTRACT) & set(BEYOND) == set()
    assert set(CONTRACT) | set(BEYOND) == command_names()
    assert set(CONTRACT_EVENTS) <= event_names()
    caused = {event for facts in (CONTRACT, BEYOND) for fact in facts.values() for event in fact.events}
    assert caused <= event_names()
    assert set(LATER) <= command_names() | event_names()


def test_everything_that_the_contract_promises_is_shown_by_a_test(tests: dict[Claim, list[Witness]]) -> None:
    assert [claim for claim in expected() if claim not in tests] == []


def test_no_test_shows_what_the_table_does_not_list(tests: dict[Claim, list[Witness]]) -> None:
    unlisted = [(claim, tests[claim]) for claim in tests.keys() - set(expected())]
    assert unlisted == [], "tests/house/contract_facts.py does not have it: add it there, then make contract"


def test_the_section_is_what_the_tests_say(tests: dict[Claim, list[Witness]]) -> None:
    assert written() == section(tests), "docs/protocol.md is stale: make contract"


def test_markers_are_read_from_the_source_as_pytest_reads_them(tmp_path: Path) -> None:
    source = '@pytest.mark.shows("a", "b")\n@pytest.mark.shows("c", error="no …")\n@pytest.mark.shows(events=["e"])\n'
    (tmp_path / "test_some.py").write_text(f"{source}def test_it() -> None: ...\n")
    one = [Witness("test_some.py", "test_it")]
    assert shown(tmp_path) == {
        Claim("a", "success"): one,
        Claim("b", "success"): one,
        Claim("c", "error", "no …"): one,
        Claim("", "event", "e"): one,
    }


@pytest.mark.parametrize(
    ("shape", "error", "does"),
    [
        ("Entry … not found", "Entry x not found", True),
        ("Entry … not found", "Entry x not found here", False),
        ("Model not found: …/…", "Model not found: a/b", True),
        ("No model selected.", "No model selected.\nDo this.", True),
        ("No model selected.", "No model selected. Do this.", False),
        ("a.b", "axb", False),
    ],
)
def test_an_error_fits_its_shape_as_a_whole(shape: str, error: str, does: bool) -> None:
    assert fits(shape, error) is does


def test_a_claim_that_no_record_bears_out_is_told() -> None:
    ok = {"type": "response", "command": "steer", "success": True}
    bad = {"type": "response", "command": "fork", "success": False, "error": "no such"}
    made = [*claims(["steer"], events=["queue_update"]), *claims(["fork"]), *claims(["fork"], error="no …")]
    assert unseen(made, [ok, {"type": "queue_update"}, bad]) == [Claim("fork", "success")]
    assert unseen(claims(["*"], error="no …"), [bad]) == []
    assert unseen(claims(["steer"], error="no …"), [ok, bad]) == [Claim("steer", "error", "no …")]
