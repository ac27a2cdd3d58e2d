"""Who is looked for when a child is killed, and how often everybody is asked."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from actors.shell import group
from actors.shell.group import Census, Sessions
from actors.shell.process import Process, ProcessSpec, shell_argv

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the tests watch strangers by pidfd")
DEADLINE_S = 20.0


class Look:
    """Looks that are numbered from 1; each says that it has begun, and ends when the test lets it."""

    def __init__(self) -> None:
        self.begun: SimpleQueue[int] = SimpleQueue()
        self.go: SimpleQueue[None] = SimpleQueue()
        self._number = 0

    def __call__(self) -> Sessions:
        self._number += 1
        self.begun.put(self._number)
        self.go.get(timeout=DEADLINE_S)
        return {0: [self._number]}


def ask(census: Census, answers: SimpleQueue[Sessions]) -> None:
    threading.Thread(target=lambda: answers.put(census.sessions()), daemon=True).start()


def wait_until_asked(census: Census, count: int) -> None:
    end = time.monotonic() + DEADLINE_S
    while census._asked.qsize() < count:
        assert time.monotonic() < end
        os.sched_yield()


def test_whoever_asks_during_a_look_shares_the_next_one() -> None:
    look, first, later = Look(), SimpleQueue[Sessions](), SimpleQueue[Sessions]()
    census = Census(look)
    ask(census, first)
    assert look.begun.get(timeout=DEADLINE_S) == 1
    for _ in range(20):
        ask(census, later)
    wait_until_asked(census, 20)
    look.go.put(None)
    look.go.put(None)
    assert first.get(timeout=DEADLINE_S) == {0: [1]}
    assert [later.get(timeout=DEADLINE_S) for _ in range(20)] == [{0: [2]}] * 20


def test_a_look_that_fails_leaves_nobody_waiting() -> None:
    look, failing, answers = Look(), [True], SimpleQueue[Sessions]()

    def fail_once() -> Sessions:
        sessions = look()
        if failing:
            raise OSError("no")
        return sessions

    census = Census(fail_once)
    census._asked.put(answers)  # somebody who waits for this look too
    look.go.put(None)
    with pytest.raises(OSError, match="no"):
        census.sessions()
    assert answers.get(timeout=DEADLINE_S) == {}
    failing.clear()
    look.go.put(None)
    assert census.sessions() == {0: [2]}


# ---- real families


class Family:
    """A started child, and the pids that its command printed."""

    def __init__(self, command: str, pids: int) -> None:
        self.process = Process()
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self.process.start(ProcessSpec(shell_argv("bash", command), "/", dict(os.environ)))
        self._pump = threading.Thread(target=lambda: self.process.pump(self._take), daemon=True)
        self._pump.start()
        text = b""
        while text.count(b"\n") < pids:
            text += self._lines.get(timeout=DEADLINE_S)
        self.pids = [int(word) for word in text.split()]
        self._fds = [os.pidfd_open(pid) for pid in self.pids]

    def _take(self, channel: str, data: bytes) -> None:
        self._lines.put(data)

    def join(self) -> None:
        self._pump.join(DEADLINE_S)
        assert not self._pump.is_alive()

    def live(self) -> list[int]:
        """Which of the printed pids have not ended within some seconds; those that are killed end at once."""
        pairs = zip(self.pids, self._fds, strict=True)
        return [pid for pid, fd in pairs if not select.select([fd], [], [], DEADLINE_S)[0]]

    def end(self) -> None:
        self.process.kill_group_leftovers()
        for fd in self._fds:
            os.close(fd)


@pytest.fixture
def families() -> Iterator[list[Family]]:
    started: list[Family] = []
    yield started
    for family in started:
        family.end()


@pytest.fixture(params=["lists of children", "table"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every kernel lists the children of a process."""
    if request.param == "table":
        monkeypatch.setattr(group, "_below", group.descendants)


IGNORE = "trap '' TERM HUP INT; echo $BASHPID;"


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    "command",
    [
        f"({IGNORE} exec sleep 297) & echo $$; wait",
        f"set -m; (({IGNORE} exec sleep 297) >&3 2>/dev/null &) 3>&1; echo $$; sleep 297",
        "echo $$; setsid bash -c 'echo $$; sleep 297; true'; echo no",
        "echo $$; setsid bash -c 'setsid bash -c \"echo \\$\\$; sleep 297; true\"; true'; echo no",
    ],
    ids=["group", "adopted job", "own session", "session below a session"],
)
def test_a_kill_reaches(command: str, families: list[Family]) -> None:
    family = Family(command, 2)
    families.append(family)
    family.process.kill()
    family.join()
    assert family.live() == []
    assert family.process.close() is False


def test_a_job_that_forks_all_the_time_leaves_nobody(families: list[Family]) -> None:
    family = Family("set -m; (echo $BASHPID; while :; do sleep 297 & sleep 0.001; done) & echo $$; wait", 2)
    families.append(family)
    leader = family.pids[-1] if os.getsid(family.pids[-1]) == family.pids[-1] else family.pids[0]
    family.process.kill()
    watched = []
    for pid in group.live_members(leader):
        try:
            watched.append(os.pidfd_open(pid))
        except ProcessLookupError:
            continue
    assert [fd for fd in watched if not select.select([fd], [], [], DEADLINE_S)[0]] == []
    for fd in watched:
        os.close(fd)
    assert group.live_members(leader) == []


def test_without_a_descriptor_left_the_group_is_killed_all_the_same(
    families: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    family = Family(f"({IGNORE} exec sleep 297) & echo $$; wait", 2)
    families.append(family)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        family.process.kill()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    family.join()
    assert family.live() == []


def test_a_command_is_remembered_until_the_last_of_its_background_has_ended(families: list[Family]) -> None:
    family = Family("for i in 1 2; do sleep 297 >/dev/null 2>&1 & echo $!; done", 2)
    families.append(family)
    family.join()
    first, second = family.pids
    assert family.process.close() is True
    os.kill(first, signal.SIGKILL)
    select.select([family._fds[0]], [], [], DEADLINE_S)
    assert family.process.close() is True
    os.kill(second, signal.SIGKILL)
    assert family.live() == [] and family.process.close() is False
