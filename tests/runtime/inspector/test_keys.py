"""Keys: the defaults, what a setting changes, and what nobody may take away."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.inspector.keys import Keys, read_keys


def test_the_default_keys() -> None:
    keys = Keys()
    asked = [
        keys.ask(key, None)
        for key in ("up", "down", "enter", "escape", "left", "x", "pageup", "pagedown", "home", "end")
    ]
    assert asked == ["up", "down", "enter", "leave", "back", "stop", "pageUp", "pageDown", "home", "end"]
    assert keys.ask("q", "q") is None
    assert (keys.name("back"), keys.name("stop"), keys.name("pageUp")) == ("←", "x", "PgUp")


def test_configured_keys_take_the_place_of_the_default_ones() -> None:
    keys = Keys({"stop": ("k", "ctrl+k"), "back": ("x",)})
    assert [keys.ask(key, None) for key in ("k", "ctrl+k", "x", "left")] == ["stop", "stop", "back", None]
    assert keys.name("stop") == "k"
    assert keys.ask("escape", None) == "leave"


def test_a_key_with_a_name_of_its_own_is_known_by_what_it_types() -> None:
    assert Keys({"stop": ("!",)}).ask("exclamation_mark", "!") == "stop"


@pytest.mark.parametrize("value", ["k", ["k", "ctrl+shift+k"], "f5", "f12", "alt+pageup", "tab", "~"])
def test_keys_that_can_be_chosen(value: Any) -> None:
    assert read_keys("stop", value) == tuple(value if isinstance(value, list) else [value])


@pytest.mark.parametrize(
    "value", ["", "enter", "escape", "y", "ctrl+c", "hyper+k", "kk", 5, None, [], ["k", 3], "\x1b"]
)
def test_keys_that_cannot(value: Any) -> None:
    with pytest.raises(ValueError, match="key"):
        read_keys("stop", value)


def test_an_action_that_has_no_key_to_choose_is_named() -> None:
    with pytest.raises(ValueError, match="keys for back, stop, pageUp, pageDown"):
        read_keys("enter", "k")
