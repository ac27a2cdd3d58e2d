"""A transcript in pieces: pages before, changes behind, and lines that keep their place."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from runtime.inspector.records import TaskTranscript, Transcript
from runtime.inspector.texts import cells
from runtime.inspector.transcript import Loaded, Place, find
from tests.runtime.inspector.scripted_door import entry
from tests.runtime.inspector.views import shown

WIDTH = 60


def page(first: int, last: int, total: int, **fields: Any) -> Transcript:
    entries = [entry(index, "assistant", f"said {index}") for index in range(first, last)]
    return msgspec.convert({"entries": entries, "first": first, "total": total, **fields}, Transcript)


def change(*entries: dict[str, Any], **fields: Any) -> TaskTranscript:
    first = entries[0]["index"] if entries else 0
    return msgspec.convert(
        {"type": "task_transcript", "taskId": "t", "first": first, "entries": entries, **fields}, TaskTranscript
    )


def text(loaded: Loaded) -> list[str]:
    return shown(loaded.lines(WIDTH)[0])


def test_pages_and_changes_make_one_transcript() -> None:
    loaded = Loaded()
    assert text(loaded) == [" ── Loading … ──"]
    loaded.is_absent = True
    assert text(loaded) == [" ── The transcript is not available ──"]
    loaded.take_page(page(50, 60, 60))
    assert text(loaded)[0] == " ── 50 earlier entries: page up at the top loads them ──"
    loaded.take_change(change(entry(59, "assistant", "said more"), entry(60, "notice", "the end")))
    assert loaded.total == 61
    assert text(loaded)[-3:] == ["  said more", "", " — the end"]
    loaded.take_page(page(0, 50, 61), is_tail=False)
    assert [each.index for each in loaded.entries] == list(range(61))
    assert not loaded.has_earlier
    assert loaded.entries[59].text == "said more"


def test_what_is_no_longer_kept_is_labelled_and_not_asked_for() -> None:
    loaded = Loaded()
    loaded.take_page(page(7, 20, 20, missing=7))
    assert not loaded.has_earlier
    assert text(loaded)[0] == " ── 7 earlier entries are no longer kept ──"


def test_a_hole_between_what_is_loaded_is_labelled_and_known() -> None:
    loaded = Loaded()
    loaded.take_page(page(0, 3, 3))
    loaded.take_change(change(entry(8, "assistant", "later")))
    assert loaded.gap == 8
    assert " ── 5 entries are not loaded ──" in text(loaded)
    loaded.take_page(page(3, 8, 9), is_tail=False)
    assert loaded.gap is None


def test_what_is_being_said_is_shown_last_until_it_has_been_said() -> None:
    loaded = Loaded()
    loaded.take_page(page(0, 1, 1))
    loaded.take_change(change(live=entry(1, "assistant", "half a sen")))
    assert text(loaded)[-2:] == [" Agent …", "  half a sen"]
    loaded.take_page(page(0, 1, 1), is_tail=False)  # an earlier page knows nothing of it
    assert text(loaded)[-1] == "  half a sen"
    loaded.take_change(change(entry(1, "assistant", "half a sentence")))
    assert text(loaded)[-2:] == [" Agent", "  half a sentence"]


def test_each_role_has_its_look() -> None:
    loaded = Loaded()
    entries = [
        entry(0, "user", "Do it."),
        entry(1, "assistant", "I do.\n\nNow."),
        entry(2, "toolCall", "ls -la", tool="bash", toolCallId="a"),
        entry(3, "toolResult", "a\nb", toolCallId="a"),
        entry(4, "toolCall", "echo 1\necho 2", tool="bash"),
        entry(5, "toolResult", ""),
        entry(6, "notice", "compacted"),
    ]
    loaded.take_page(msgspec.convert({"entries": entries, "first": 0, "total": 7}, Transcript))
    assert text(loaded) == [
        *("", " Task", "  Do it.", "", " Agent", "  I do.", "", "  Now."),
        *("", " ▸ bash  ls -la", "   a", "   b", "", " ▸ bash", "   echo 1", "   echo 2", "   (no output)"),
        *("", " — compacted"),
    ]


def test_a_long_result_is_cut_and_says_by_how_much() -> None:
    loaded = Loaded()
    long = entry(0, "toolResult", "\n".join(map(str, range(100))))
    loaded.take_page(msgspec.convert({"entries": [long], "first": 0, "total": 1}, Transcript))
    assert text(loaded)[-2:] == ["   39", "   … 60 more lines"]


def test_a_place_is_found_again_after_an_earlier_page_came() -> None:
    loaded = Loaded()
    loaded.take_page(page(50, 60, 60))
    before, places = loaded.lines(WIDTH)
    top = places.index(Place(52, 1))
    loaded.take_page(page(0, 50, 60), is_tail=False)
    after, moved = loaded.lines(WIDTH)
    assert after[find(moved, places[top]) :] == before[top:]
    assert find(moved, Place(1000, 0)) == len(moved) - 1


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "toolCall", "toolResult", "notice"]), st.text())),
    st.integers(20, 90),
)
def test_no_line_is_wider_than_the_screen_and_each_has_its_place(said: list[tuple[str, str]], width: int) -> None:
    entries = [
        entry(index, role, text.encode(errors="replace").decode(), tool="bash")
        for index, (role, text) in enumerate(said)
    ]
    loaded = Loaded()
    loaded.take_page(msgspec.convert({"entries": entries, "first": 0, "total": len(entries)}, Transcript))
    lines, places = loaded.lines(width)
    assert len(lines) == len(places) and places == sorted(places)
    assert [line for line in shown(lines) if cells(line) > width] == []


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 12), st.text("ab \n", max_size=30)), max_size=4), max_size=6),
    st.booleans(),
)
def test_lines_that_grew_are_those_that_are_made_at_once(batches: list[list[tuple[int, str]]], has_live: bool) -> None:
    grown = Loaded()
    live = entry(99, "assistant", "now") if has_live else None
    for batch in batches:
        grown.take_change(change(*(entry(index, "assistant", said) for index, said in batch), live=live))
        grown.lines(WIDTH)
    at_once = Loaded()
    at_once.take_change(change(*(msgspec.to_builtins(each) for each in grown.entries), live=live if batches else None))
    assert grown.lines(WIDTH) == at_once.lines(WIDTH)
