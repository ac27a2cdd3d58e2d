"""Writes of the user's settings file, one after the other.

The session that asks does not wait with its answer: what a command promised is true for this process at once, and a
file that cannot be written is told in one line on stderr. It waits with its end, so that nothing is lost then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.base import Actor
from actors.mail import PreferenceSaved, PreferencesMail


class Preferences(Actor[PreferencesMail]):
    """`save` writes one value and raises `ValueError` with a clear text; `complain` takes a line for stderr."""

    apart = True  # another process may hold the lock of the file

    def __init__(self, save: Callable[[tuple[str, ...], Any], None], complain: Callable[[str], None]) -> None:
        self._save = save
        self._complain = complain

    def receive(self, mail: PreferencesMail) -> None:
        try:
            self._save(mail.path, mail.value)
        except (OSError, ValueError) as error:
            self._complain(f'setting "{".".join(mail.path)}" was not saved: {error}')
        if mail.session is not None:
            mail.session.tell(PreferenceSaved())

    def last_words(self, unread: list[PreferencesMail]) -> None:
        """Nobody shall wait for what is not written any more."""
        for mail in unread:
            self._complain(f'setting "{".".join(mail.path)}" was not saved')
            if mail.session is not None:
                mail.session.tell(PreferenceSaved())
