"""The sessions that run now: who answers behind the doors, and which of them was meant."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from protocol.codec import decode_any
from runtime.config_values import shown
from runtime.inspector.link import Link, LinkLost, NobodyThere
from runtime.inspector.programs import known_programs
from runtime.inspector.records import BadRecord, Hello
from runtime.inspector.texts import one_line

NO_SESSION = "No running session has tasks to look at; a session can be reached from its first task on"


class Door(NamedTuple):
    """Where a program listens."""

    pid: int
    address: str


class Live(NamedTuple):
    """A program that greeted. `link` is the connection, if it was kept."""

    door: Door
    hello: Hello
    link: Link | None = None


class Silent(NamedTuple):
    """A program that listens and did not greet, and why not."""

    pid: int
    reason: str

    def __str__(self) -> str:
        return f"the session of pid {self.pid} cannot be reached: {one_line(self.reason)}"


class Found(NamedTuple):
    """All programs that listen, by pid."""

    lives: list[Live]
    silent: list[Silent]


class NotFound(Exception):
    """No session, or no single one, is what was asked for; the text says why."""


async def find_sessions(*, keep: bool = False) -> Found:
    """Asks all at once. With `keep` the connections stay open, so that nobody has to be let in twice."""
    asked = await asyncio.gather(*(_greet(Door(*found), keep) for found in known_programs()))
    return Found(
        [answer for answer in asked if isinstance(answer, Live)],
        [answer for answer in asked if isinstance(answer, Silent)],
    )


def choose(found: Found, wanted: str | None) -> Live | None:
    """The session with this pid, else with an id that begins so; without a wish the only one, None for several. Raises
    `NotFound`."""
    lives = found.lives
    if wanted is None and lives:
        return lives[0] if len(lives) == 1 else None
    by_pid = [live for live in lives if str(live.door.pid) == wanted]
    fits = by_pid or [live for live in lives if wanted and live.hello.session_id.startswith(wanted)]
    if not fits:
        raise NotFound(_why_none(found, wanted))
    if len(fits) > 1:
        several = ", ".join(f"{live.door.pid} ({live.hello.session_id})" for live in fits)
        raise NotFound(f"{shown(wanted)} fits several sessions: {several}")
    return fits[0]


def _why_none(found: Found, wanted: str | None) -> str:
    """Whoever did not greet may be the one that was meant."""
    meant = [silent for silent in found.silent if str(silent.pid) == wanted] or found.silent
    words = "; ".join(map(str, meant))
    if not found.lives and not meant:
        return NO_SESSION
    if wanted is None or any(str(silent.pid) == wanted for silent in meant):
        return words
    none = f"No running session has the pid or an id like {shown(wanted)}; atomic tasks --list shows them"
    return f"{none}; {words}" if words else none


async def tasks_of(live: Live) -> Any:
    """The records of its tasks as JSON values. Raises `LinkLost`, `Refused` or `BadRecord`."""
    link = live.link or Link(live.door.address)
    try:
        if live.link is None:
            await link.connect(lambda _: None, lambda _: None)
        answer = await link.ask("get_tasks")
        return decode_any(bytes(answer.data))["tasks"]
    except (KeyError, TypeError):
        raise BadRecord("the answer to get_tasks holds no tasks") from None
    finally:
        link.close()


async def _greet(door: Door, keep: bool) -> Live | Silent | None:
    link = Link(door.address)
    try:
        hello = await link.connect(lambda _: None, lambda _: None)
    except NobodyThere:
        return None
    except LinkLost as lost:
        return Silent(door.pid, str(lost))
    if keep:
        return Live(door, hello, link)
    link.close()
    return Live(door, hello)
