"""How much of an answer its parent is shown."""

from __future__ import annotations

from typing import Any

import pytest

from actors.task.agent_view import KEPT_BYTES, agent_view


def shown(text: str, **fields: Any) -> str:
    return agent_view(text, **{"max_lines": 5000, "max_bytes": 204_800, **fields}).shown


def test_a_short_answer_is_shown_whole() -> None:
    assert shown("one\ntwo") == "one\ntwo"


@pytest.mark.parametrize(
    ("limits", "first"),
    [
        ({"max_lines": 2}, "[TRUNCATED: showing first 2 of 3 lines, 7B of 13B]"),
        ({"max_bytes": 8}, "[TRUNCATED: showing first 2 of 3 lines, 7B of 13B]"),
    ],
)
def test_of_a_long_one_the_beginning_is_shown_and_how_much_it_is(limits: dict[str, int], first: str) -> None:
    assert shown("one\ntwo\nthree", **limits) == f"{first}\none\ntwo"


def test_what_was_saved_is_told_and_may_stand_for_the_answer() -> None:
    saved = "Output saved to: /x (7B, 2 lines). Read this file if needed."
    assert shown("one\ntwo", saved_to="/x") == f"one\ntwo\n\n{saved}"
    assert shown("one\ntwo", saved_to="/x", only_file=True) == saved
    assert shown("one\ntwo", only_file=True) == "one\ntwo"  # it was not saved


def test_what_is_kept_of_it_is_bounded() -> None:
    view = agent_view("x\n" * KEPT_BYTES, max_lines=1, max_bytes=10)
    assert len(view.text) <= KEPT_BYTES
