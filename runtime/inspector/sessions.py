"""The sessions that run now: who answers behind the doors, and which of them was meant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from protocol.codec import decode_any
from runtime.config_values import shown
from runtime.inspector.link import Link, LinkLost, Refused
from runtime.inspector.records import BadRecord, Hello
from runtime.inspector_sockets import live_sockets

NO_SESSION = "No running session has tasks to look at; a session can be reached from its first task on"
ID_CHARS = 13


class Door(NamedTuple):
    """Where a program listens."""

    pid: int
    address: str


class Live(NamedTuple):
    """A program that greeted."""

    door: Door
    hello: Hello


class NotFound(Exception):
    """No session, or no single one, is what was asked for; the text says why."""


async def live_sessions() -> list[Live]:
    """All that greet, by pid. What does not answer is passed over."""
    greeted = await asyncio.gather(*(_greet(Door(*found)) for found in live_sockets()))
    return [live for live in greeted if live is not None]


def choose(lives: Sequence[Live], wanted: str | None) -> Live | None:
    """The session with this pid, else with an id that begins so; without a wish the only one, None for several. Raises
    `NotFound`."""
    if not lives:
        raise NotFound(NO_SESSION)
    if wanted is None:
        return lives[0] if len(lives) == 1 else None
    by_pid = [live for live in lives if str(live.door.pid) == wanted]
    fits = by_pid or [live for live in lives if wanted and live.hello.session_id.startswith(wanted)]
    if not fits:
        raise NotFound(f"No running session has the pid or an id like {shown(wanted)}; atomic tasks --list shows them")
    if len(fits) > 1:
        several = ", ".join(f"{live.door.pid} ({live.hello.session_id})" for live in fits)
        raise NotFound(f"{shown(wanted)} fits several sessions: {several}")
    return fits[0]


async def tasks_of(live: Live) -> Any:
    """The records of its tasks as JSON values. Raises `LinkLost`, `Refused` or `BadRecord`."""
    link = Link(live.door.address)
    await link.connect(lambda _: None, lambda _: None)
    try:
        answer = await link.ask("get_tasks")
        return decode_any(bytes(answer.data))["tasks"]
    except (KeyError, TypeError):
        raise BadRecord("the answer to get_tasks holds no tasks") from None
    finally:
        link.close()


async def _greet(door: Door) -> Live | None:
    link = Link(door.address)
    try:
        return Live(door, await link.connect(lambda _: None, lambda _: None))
    except (LinkLost, Refused):
        return None
    finally:
        link.close()
