"""Writes of the user's settings file, one after the other.

The session that asks does not wait: what a command promised is true for this process at once, and a file that cannot be
written is told in one line on stderr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.base import Actor
from actors.mail import PreferencesMail


class Preferences(Actor[PreferencesMail]):
    """`save` writes one value and raises `ValueError` with a clear text; `complain` takes a line for stderr."""

    def __init__(self, save: Callable[[tuple[str, ...], Any], None], complain: Callable[[str], None]) -> None:
        self._save = save
        self._complain = complain

    def receive(self, mail: PreferencesMail) -> None:
        try:
            self._save(mail.path, mail.value)
        except (OSError, ValueError) as error:
            self._complain(f'setting "{".".join(mail.path)}" was not saved: {error}')
