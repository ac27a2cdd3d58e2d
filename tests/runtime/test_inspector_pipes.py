"""How the pipes of Windows are called, who may open them, and which of them are found; on any system."""

from __future__ import annotations

import re
from asyncio.proactor_events import BaseProactorEventLoop

import pytest

from runtime.inspector_pipes import descriptor_of, listening, pipe_name

USER = "S-1-5-21-1004336348-1177238915-682003330-1001"
LONGEST_USER = "S-1-" + "-".join(["4294967295"] * 16)
PIPE_CHARS = 256
"""A pipe's name may be no longer, with what stands before it."""


def test_a_name_tells_user_and_process() -> None:
    assert pipe_name(USER, 4242) == rf"\\.\pipe\atomic-{USER}-t4242"
    names = {pipe_name(user, pid) for user in (USER, USER[:-1], "S-1-5-18") for pid in (1, 11, 2**32 - 1)}
    assert len(names) == 9


def test_the_longest_name_is_no_longer_than_the_system_takes() -> None:
    name = pipe_name(LONGEST_USER, 2**32 - 1)
    assert len(name) <= PIPE_CHARS
    assert "\\" not in name.removeprefix(r"\\.\pipe" + "\\")


@pytest.mark.parametrize("user", [USER, "S-1-5-18", "S-1-12-1-7-7-7-7"])
def test_a_pipe_is_its_users_and_open_to_nobody_but_them_and_the_system(user: str) -> None:
    descriptor = descriptor_of(user)
    owner, _, rest = descriptor.partition("D:")
    assert owner == f"O:{user}"
    flags, _, entries = rest.partition("(")
    assert flags == "P"  # nothing is inherited
    grants = [entry.split(";") for entry in re.findall(r"\(([^)]*)\)", f"({entries}")]
    assert [(kind, who) for kind, _, _, _, _, who in grants] == [("A", user), ("A", "SY")]


def test_only_processes_at_whose_pipe_somebody_listens_are_found_and_each_is_asked_once() -> None:
    asked: list[str] = []

    def has_listener(name: str) -> bool:
        asked.append(name)
        return name.endswith(("t7", "t4242"))

    found = listening(USER, [4242, 1, 7, 0, 7], has_listener)
    assert found == [(7, pipe_name(USER, 7)), (4242, pipe_name(USER, 4242))]
    assert asked == [pipe_name(USER, pid) for pid in (0, 1, 7, 4242)]
    assert listening(USER, [], has_listener) == []


def test_asyncio_still_has_what_the_inspector_reads_a_pipe_with() -> None:
    """It is private there, so a later Python may have another."""
    assert callable(getattr(BaseProactorEventLoop, "_make_duplex_pipe_transport", None))
