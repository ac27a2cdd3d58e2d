"""What an actor is and how it is reached.

An `Actor` owns its state and does one thing for each mail that it receives. It never waits and never asks: it tells.
Nothing here knows threads: a host (`runtime.threads` with pykka, `runtime.simulate` with a seeded scheduler) holds the
inbox, hands over one mail at a time, and turns an exception into a `Down` for the owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct

Mail = TypeVar("Mail")
Mail_contra = TypeVar("Mail_contra", contravariant=True)


class Address(Protocol[Mail_contra]):
    """Where mail of the types that the receiver takes can be told. Telling never blocks and never fails: if the
    receiver is gone, the mail is lost, and the `Down` that its owner got covers the loss."""

    def tell(self, mail: Mail_contra) -> None: ...


class Child(Address[Mail_contra], Protocol[Mail_contra]):
    """The address of an actor as its owner and it itself hold it: only these may stop it. `stop` queues behind the
    mail."""

    def stop(self) -> None: ...


class Down(Struct, frozen=True):
    """An actor died of an exception. `key` is what its owner called it, `error` the kind and place of the exception,
    never its values (they may hold secrets)."""

    key: Any
    error: str


class Actor(Generic[Mail]):
    """Base of all actors. The host sets `me` before `begin`."""

    me: Child[Mail]
    apart: ClassVar[bool] = False
    """Whether it needs a thread of its own: because it waits for somebody outside, or because it has to be there
    while another one hangs. All others share one."""

    def begin(self) -> None:
        """Runs once, in the actor's own turn, before the first mail."""

    def receive(self, mail: Mail) -> None:
        raise NotImplementedError

    def ended(self) -> None:
        """Runs once it has been stopped, after its last mail: the place to stop what it started for good."""

    def let_go(self) -> None:
        """For the end of `ended`, of those that own much: their parts point back at them, so all that they own would
        wait for the garbage collector, which comes late to a quiet process and never to what was there at its start."""
        vars(self).clear()

    def last_words(self, unread: list[Mail]) -> None:
        """Runs after an exception killed the actor, before its owner hears of it. `unread` is the mail that died with
        it, first the one that it was reading."""

    def idle(self) -> None:
        """Runs after a mail that left the inbox empty: the place to send what was gathered."""


class Host(Protocol):
    """Starts actors. `key` names the actor in the `Down` that `owner` gets if it dies."""

    def start(self, actor: Actor[Mail], name: str, owner: Address[Down], key: Any = None) -> Child[Mail]: ...


StartPump = Callable[[str, Callable[[], None]], None]
"""Runs a blocking function on a thread of its own: `start_pump(name, work)`. `work` must not raise."""
