"""Session ids: valid, unique, and sorted by age."""

from __future__ import annotations

import time
import uuid

from runtime.stamps import uuid7


def test_it_is_a_version_7_uuid_of_the_variant_of_rfc_9562() -> None:
    made = uuid7()
    assert (made.version, made.variant) == (7, uuid.RFC_4122)


def test_it_begins_with_the_milliseconds_at_which_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid7().int >> 80
    assert before <= made <= time.time_ns() // 1_000_000


def test_ids_of_different_milliseconds_sort_by_age() -> None:
    made = [uuid7()]
    while len(made) < 5:
        new = uuid7()
        if new.int >> 80 != made[-1].int >> 80:
            made.append(new)
    assert sorted(map(str, made)) == [str(one) for one in made]


def test_ids_of_one_moment_differ_in_every_random_bit_sooner_or_later() -> None:
    made = [uuid7().int for _ in range(300)]
    assert len(set(made)) == 300
    ones, zeros = 0, 0
    for one in made:
        ones |= one
        zeros |= ~one
    fixed = 0xF << 76 | 0b11 << 62
    random = (2**80 - 1) & ~fixed
    assert ones & random == random
    assert zeros & random == random
