"""What a command wanted saved is written, and a file that cannot be written is told of."""

from __future__ import annotations

from typing import Any

import pytest

from actors.mail import PreferenceSaved, SavePreference
from actors.preferences import Preferences
from actors.probe import Probe


def test_every_value_is_saved_in_order() -> None:
    saved: list[Any] = []
    preferences = Preferences(lambda path, value: saved.append((path, value)), saved.append)
    preferences.receive(SavePreference(("steeringMode",), "all"))
    preferences.receive(SavePreference(("compaction", "enabled"), False))
    assert saved == [(("steeringMode",), "all"), (("compaction", "enabled"), False)]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("settings.json is broken")])
def test_a_value_that_cannot_be_saved_is_one_line_on_stderr_and_the_next_one_is_still_tried(error: Exception) -> None:
    lines: list[str] = []

    def refuse(path: tuple[str, ...], value: Any) -> None:
        raise error

    preferences = Preferences(refuse, lines.append)
    for _ in range(2):
        preferences.receive(SavePreference(("compaction", "enabled"), True))
    assert lines == [f'setting "compaction.enabled" was not saved: {error}'] * 2


def test_the_session_that_asked_hears_of_each_value_written_or_not() -> None:
    session = Probe[Any]()
    answers = iter((None, OSError(28, "No space left on device")))

    def save(path: tuple[str, ...], value: Any) -> None:
        error = next(answers)
        if error is not None:
            raise error

    preferences = Preferences(save, lambda line: None)
    for _ in range(2):
        preferences.receive(SavePreference(("steeringMode",), "all", session))
    assert session.drain() == [PreferenceSaved()] * 2


def test_a_session_waits_for_nothing_that_died_unwritten() -> None:
    session, lines = Probe[Any](), list[str]()
    preferences = Preferences(lambda path, value: None, lines.append)
    preferences.last_words([SavePreference(("steeringMode",), "all", session), SavePreference(("a", "b"), 1)])
    assert session.drain() == [PreferenceSaved()]
    assert lines == ['setting "steeringMode" was not saved', 'setting "a.b" was not saved']
