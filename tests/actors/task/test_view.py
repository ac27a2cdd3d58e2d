"""A task's output as answers show it: pages, everything, the end; what is missing is labelled where it is."""

from __future__ import annotations

import pytest

from actors.task.retained import Page
from actors.task.view import output_ref, page_text, settled_text, tail_text
from tests.actors.task.views import view

MORE = "[Additional output not shown; wait again to retrieve retained output.]"


def test_the_output_of_a_task_has_an_id_and_counts_all_that_there_was() -> None:
    ref = output_ref("owner-1", "task-1-0", 2**53 + 1, (10, 13))
    assert (ref.artifact_id, ref.byte_count) == ("output-task-1-0", "9007199254740993")
    assert [(each.start, each.end) for each in ref.omitted_ranges] == [("10", "13")]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (Page(b"one\n", 0, 4, False), "one\n"),
        (Page(b"one\n", 0, 4, True), f"one\n\n{MORE}"),
        (Page(b"", 4, 4, False), ""),
        (Page(b"", 4, 4, True), MORE),
        (Page(b"end", 13, 16, False, (10, 13)), "[Output omitted: bytes 10-13]\nend"),
    ],
)
def test_a_page_says_what_is_missing_before_it_and_whether_there_is_more(page: Page, text: str) -> None:
    assert page_text(page) == text


def test_all_of_it_is_shown_with_its_gap_and_whether_it_was_cut() -> None:
    assert settled_text(view("one\ntwo\n")) == "one\ntwo\n"
    assert settled_text(view("one\n", (10, 13))) == "[Output omitted: bytes 10-13]\none\n"
    long = "".join(f"{number}\n" for number in range(3001))
    assert settled_text(view(long)) == long.removeprefix("0\n") + "[Output truncated.]"


def test_the_end_says_if_something_stood_before_it() -> None:
    assert tail_text(view("\x1b[1mup\x1b[0m\n")) == "up\n"
    assert tail_text(view("up\n", is_cut=True)) == "[Earlier output omitted]\nup\n"
    assert tail_text(view("x" * 8000)) == "[Earlier output omitted]\n" + "x" * 7900
