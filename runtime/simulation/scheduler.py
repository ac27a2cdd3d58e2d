"""Hosts actors without threads: one mail at a time, in an order that a seed decides, or that is given.

What may happen next is a list: the actors that have mail, and the pumps of the simulated world, the one that waited
longest first. Each step picks one of them. The mail of an actor stays in the order in which it was told, as on threads;
everything else may overtake.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Generic, Protocol, TypeVar

from actors.base import Actor, Address, Child, Down
from runtime.simulation.order import Order
from runtime.threads import describe

Mail = TypeVar("Mail")

PATIENCE = 30
"""After so many picks in a row that could not move, all are tried in order: either one moves, or nothing can."""
MAX_STEPS = 40_000
DEEPEST = 3
"""How many handlers may be under way at once: one runs, the others are held up in the middle of a tell."""

_BEGIN: Any = object()
_STOP: Any = object()


class Injected(Exception):
    """The fault that a seed puts into a handler."""


class Runnable(Protocol):
    """Something that takes steps. `step` returns whether it moved; `is_over` tells that it never will again."""

    slow: bool
    is_over: bool

    def step(self) -> bool: ...


class Fault:
    """Where a seed puts its exception: in the `at`-th mail that is handled, before the handler runs, after it, or with
    the first mail that the handler tells."""

    def __init__(self, at: int, moment: str, spared: frozenset[str]) -> None:
        self.at = at
        self.moment = moment
        self.spared = spared
        self.struck: str | None = None
        self.on_strike: Callable[[], None] = lambda: None
        self._armed = False
        self._handled = 0

    def before(self, name: str) -> None:
        self._handled += 1
        if self.struck is None and self._handled >= self.at and name not in self.spared:
            if self.moment == "before":
                self._strike(name)
            self._armed = self.moment == "inside"

    def inside(self, name: str | None) -> None:
        if self._armed and name is not None:
            self._armed = False
            self._strike(name)

    def after(self, name: str) -> None:
        self._armed = False
        if self.moment == "after" and self.struck is None and self._handled >= self.at and name not in self.spared:
            self._strike(name)

    def _strike(self, name: str) -> None:
        self.struck = name
        self.on_strike()
        raise Injected(name)


class SimulatedAddress(Generic[Mail]):
    """The address and the inbox of one actor."""

    def __init__(self, scheduler: Scheduler, actor: Actor[Any], name: str, owner: Address[Down], key: Any) -> None:
        self.name = name
        self.actor = actor
        self.is_over = False
        self.is_held = False
        self.slow = False
        self.scheduled = False
        self._scheduler = scheduler
        self._owner = owner
        self._key = key
        self._inbox: deque[Any] = deque((_BEGIN,))

    def tell(self, mail: Mail) -> None:
        self._scheduler.told(self, mail)
        if not self.is_over:
            self._inbox.append(mail)
            self._scheduler.wake(self)
        self._scheduler.preempt()

    def stop(self) -> None:
        if not self.is_over:
            self._inbox.append(_STOP)
            self._scheduler.wake(self)

    def step(self) -> bool:
        """Handles one mail."""
        if not self._inbox or self.is_over or self.is_held:
            return False
        mail = self._inbox.popleft()
        if mail is _STOP:
            self._end()
            return True
        try:
            self._scheduler.handle(self, mail)
        except Exception as error:
            self._die(mail, error)
        return True

    def handle(self, mail: Any) -> None:
        if mail is _BEGIN:
            self.actor.begin()
        else:
            self.actor.receive(mail)
            if not self._inbox:
                self.actor.idle()

    @property
    def has_mail(self) -> bool:
        return bool(self._inbox)

    def _die(self, mail: Any, error: Exception) -> None:
        unread = [one for one in (mail, *self._inbox) if one is not _BEGIN and one is not _STOP]
        self._close()  # as on a thread: who dies has last words and no `ended`
        self._scheduler.died(self.name, error)
        teller = self._scheduler.tell_as(self.name)
        try:
            self.actor.last_words(unread)
        finally:
            self._owner.tell(Down(self._key, describe(error)))
            self._scheduler.tell_as(teller)

    def _end(self) -> None:
        self.actor.ended()
        self._close()

    def _close(self) -> None:
        self.is_over = True
        self._inbox.clear()

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Scheduler:
    """`order` decides who is next; `slow` names runnables (the part of their name before the number) that a seeded
    order holds back."""

    def __init__(self, order: Order, slow: Collection[str] = (), fault: Fault | None = None) -> None:
        self.order = order
        self.steps = 0
        self.trace: list[tuple[str, str, Any]] = []
        self.lost: list[tuple[str, str, Any]] = []
        self.deaths: list[tuple[str, Exception]] = []
        self.actors: list[SimulatedAddress[Any]] = []
        self._slow = slow
        self._fault = fault
        self._ready: list[Any] = []
        self._running = "world"
        self._under_way = 0

    # -- what hosts do

    def start(self, actor: Actor[Mail], name: str, owner: Address[Down], key: Any = None) -> Child[Mail]:
        address: SimulatedAddress[Mail] = SimulatedAddress(self, actor, name, owner, key)
        address.slow = kind_of(name) in self._slow
        actor.me = address
        self.actors.append(address)
        self.wake(address)
        return address

    def add_pump(self, pump: Runnable, name: str) -> None:
        pump.slow = kind_of(name) in self._slow
        self._ready.append(pump)

    # -- what addresses report

    def wake(self, address: SimulatedAddress[Any]) -> None:
        if not address.scheduled:
            address.scheduled = True
            self._ready.append(address)

    def told(self, receiver: SimulatedAddress[Any], mail: Any) -> None:
        if self._fault is not None and self._running != "world":
            self._fault.inside(self._running)
        self.trace.append((self._running, receiver.name, mail))
        if receiver.is_over:
            self.lost.append((self._running, receiver.name, mail))

    def died(self, name: str, error: Exception) -> None:
        self.deaths.append((name, error))

    def handle(self, address: SimulatedAddress[Any], mail: Any) -> None:
        fault = self._fault if mail is not _BEGIN else None
        teller = self.tell_as(address.name)
        try:
            if fault is not None:
                fault.before(address.name)
            address.handle(mail)
            if fault is not None:
                fault.after(address.name)
        finally:
            self._running = teller

    def tell_as(self, name: str) -> str:
        """From now on `name` is who tells; who was it before."""
        teller, self._running = self._running, name
        return teller

    def preempt(self) -> None:
        """Others run while the teller is still in its handler, as they do on threads."""
        if self._under_way and self._under_way < DEEPEST and self._ready and self.order.preempts():
            teller = self.tell_as("world")
            self._step(self.order.pick(self._ready))
            self._running = teller

    # -- running

    def run(self, until: Callable[[], bool]) -> bool:
        """Steps until `until` holds, and then true; false when nothing can move any more."""
        idle_picks = 0
        while not until():
            if not self._ready or self.steps > MAX_STEPS:
                return False
            if idle_picks > PATIENCE:
                if not any(self._ready and self._step(0) for _ in range(len(self._ready))):
                    return False
                idle_picks = 0
            else:
                idle_picks = 0 if self._step(self.order.pick(self._ready)) else idle_picks + 1
        return True

    def _step(self, place: int) -> bool:
        """Runs one that is ready; it goes behind the others, or leaves the list when it has no more to do."""
        chosen = self._ready.pop(place)
        self.steps += 1
        self._under_way += 1
        try:
            moved: bool = chosen.step()
        finally:
            self._under_way -= 1
        if isinstance(chosen, SimulatedAddress):
            chosen.scheduled = chosen.has_mail and not chosen.is_over
            if chosen.scheduled:
                self._ready.append(chosen)
        elif not chosen.is_over:
            self._ready.append(chosen)
        return moved


def kind_of(name: str) -> str:
    """The name of an actor or pump without what tells it from others of its kind."""
    if name.startswith(("task-", "tasks-", "agent-task-")):
        return name.partition("-")[0]
    return name.rstrip("0123456789").rstrip("-")
