"""What is kept of a command's output: pages, the cap, one gap at most, files that fail, and what is typed at it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from actors.shell.truncate import MAX_BYTES
from actors.task.input import CREDIT_BYTES, InputLedger
from actors.task.retained import OUTPUT_CAP, PAGE_BYTES, ROLLING_BYTES, Retained


def opener(folder: Path) -> Any:
    def open_log() -> tuple[int, str]:
        path = str(folder / "log")
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL), path

    return open_log


def refused() -> tuple[int, str]:
    raise OSError("no room")


def test_short_output_needs_no_file_until_it_is_saved(tmp_path: Path) -> None:
    kept = Retained(opener(tmp_path))
    kept.write(b"short\n")
    assert kept.path is None and kept.page(0).data == b"short\n" and kept.tail().data == b"short\n"
    path = kept.save()
    assert path is not None and Path(path).read_bytes() == b"short\n"
    assert kept.page(2).data == b"ort\n"


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_a_character_across_the_edge_of_a_page_begins_the_next_one(tmp_path: Path, before: int) -> None:
    text = "x" * (PAGE_BYTES - before) + "€" * 3 + "end"
    for filler in (b"", b"y" * (MAX_BYTES + 1)):  # from memory, and from the file
        kept = Retained(refused if not filler else opener(tmp_path))
        kept.write(filler + text.encode())
        offset, pages = len(filler), []
        while (page := kept.page(offset)).data:
            pages.append(page.data.decode())
            offset = page.next
        assert "".join(pages) == text and len(pages) == 2
        assert not page.more and page.next == kept.total


def test_the_sizes_are_those_of_the_specification() -> None:  # 2.8
    assert (OUTPUT_CAP, PAGE_BYTES, CREDIT_BYTES) == (5_368_709_120, 8192, 65_536)


def test_exactly_the_cap_is_not_over_it_and_one_byte_more_is(tmp_path: Path) -> None:
    kept = Retained(opener(tmp_path), cap=100)
    kept.write(b"x" * 100)
    assert not kept.over_cap and kept.gap is None
    kept.write(b"y")
    assert kept.over_cap and kept.gap is None  # the end is still in memory


def test_over_the_cap_the_end_rolls_on_and_the_gap_is_told_where_it_is(tmp_path: Path) -> None:
    kept = Retained(opener(tmp_path), cap=10)
    kept.write(b"beginning!" + b"z" * ROLLING_BYTES + b"end")
    assert kept.gap == (10, 13)
    first = kept.page(0)
    assert (first.data, first.next, first.more) == (b"beginning!", 10, True)
    second = kept.page(first.next)
    assert second.omitted == (10, 13) and second.data == b"z" * PAGE_BYTES and second.start == 13
    assert kept.tail(4).data == b"zend"


def test_a_file_that_cannot_be_made_costs_the_middle_and_nothing_else(tmp_path: Path) -> None:
    kept = Retained(refused)
    for _ in range(10):
        kept.write(b"a" * 20_000)
    assert kept.path is None and kept.save() is None
    assert kept.total == 200_000 and kept.gap == (40_000, 200_000 - ROLLING_BYTES)
    kept.close()


@contextmanager
def a_disk_of(size: int) -> Iterator[None]:
    """No file of this process grows beyond that meanwhile."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_runs_full_costs_the_middle_and_the_file_is_no_longer_named(tmp_path: Path) -> None:
    kept = Retained(opener(tmp_path))
    with a_disk_of(90_000):
        kept.write(b"a" * 80_000)
        assert kept.path == str(tmp_path / "log")
        for _ in range(10):
            kept.write(b"b" * 20_000)
    assert kept.path is None and kept.save() is None
    assert kept.gap == (80_000, 280_000 - ROLLING_BYTES)
    first, second = kept.page(79_990), kept.page(80_000)
    assert first.data == b"a" * 10 and second.omitted == kept.gap and second.data == b"b" * PAGE_BYTES
    kept.close()


@pytest.mark.parametrize("removed", [False, True])
def test_a_disk_that_was_full_before_leaves_no_file(tmp_path: Path, removed: bool) -> None:
    def open_log() -> tuple[int, str]:
        fd, path = opener(tmp_path)()
        if removed:
            os.unlink(path)
        return fd, path

    kept = Retained(open_log)
    with a_disk_of(10_000):
        kept.write(b"a" * 40_000)
        kept.write(b"b" * 160_000)
    assert kept.path is None and kept.save() is None and list(tmp_path.iterdir()) == []
    assert kept.gap == (40_000, 200_000 - ROLLING_BYTES) and kept.page(0).data == b"a" * PAGE_BYTES
    kept.close()


def test_an_input_is_typed_once_and_its_receipt_is_given_again() -> None:
    ledger = InputLedger()
    assert ledger.begin("a", b"hello") is None
    assert ledger.end("a", 5).accepted == 5
    again = ledger.begin("a", b"hello")
    assert again is not None and (again.accepted, again.error) == (5, None)
    other = ledger.begin("a", b"other")
    assert other is not None and (other.error or "").startswith("OperationConflict: ")


def test_an_input_that_was_cut_off_is_never_sent_again() -> None:
    ledger = InputLedger()
    assert ledger.begin("a", b"hello") is None
    lost = ledger.end("a", 2)
    assert lost.error == "InputDeliveryUnknown: operationId=a; acceptedBytes=2"
    assert ledger.begin("a", b"hello") == lost


def test_what_waits_to_be_typed_is_bounded_and_nothing_is_no_end() -> None:
    ledger = InputLedger()
    empty = ledger.begin("empty", b"")
    assert empty is not None and (empty.accepted, empty.error) == (0, None)
    over = ledger.begin("much", b"x" * (CREDIT_BYTES + 1))
    assert over is not None and (over.error or "").startswith("InputBackpressure: ")
    assert ledger.begin("all", b"x" * CREDIT_BYTES) is None
    assert ledger.begin("more", b"x") is not None
