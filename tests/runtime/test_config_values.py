"""Config values: variables, commands and literals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.config_values import UnresolvedValue, decode_document, missing_variables, resolve_value, shown

ENV = {"NAME": "value", "OTHER": "more", "EMPTY": ""}


def no_command(command: str) -> str | None:
    raise AssertionError(f"ran {command}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("MY_KEY", "MY_KEY"),
        ("$NAME", "value"),
        ("${NAME}", "value"),
        ("a-$NAME-${OTHER}!", "a-value-more!"),
        ("$$NAME", "$NAME"),
        ("$!date", "!date"),
        ("cost: 5$", "cost: 5$"),
        ("$1 ${} ${a b}", "$1 ${} ${a b}"),
        ("$NAMEé", "valueé"),
    ],
)
def test_a_value_resolves(value: str, text: str) -> None:
    assert resolve_value(value, "x", ENV, no_command) == text


@pytest.mark.parametrize(("value", "name"), [("$GONE", "GONE"), ("a${EMPTY}b", "EMPTY")])
def test_an_unset_or_empty_variable_leaves_the_whole_value_unresolved(value: str, name: str) -> None:
    with pytest.raises(UnresolvedValue) as failure:
        resolve_value(value, "API key", ENV, no_command)
    assert str(failure.value) == f"Failed to resolve API key from environment variable: {name}"
    assert missing_variables(value, ENV) == (name,)


def test_a_command_yields_its_trimmed_output() -> None:
    assert resolve_value("!get key", "x", ENV, lambda command: f" <{command}>\n") == "<get key>"


@pytest.mark.parametrize("output", [None, "", "  \n"])
def test_a_command_without_output_is_unresolved_and_named(output: str | None) -> None:
    with pytest.raises(UnresolvedValue, match="Failed to resolve API key from shell command: get key"):
        resolve_value("!get key", "API key", ENV, lambda _: output)


def test_a_lone_exclamation_mark_runs_nothing() -> None:
    with pytest.raises(UnresolvedValue):
        resolve_value("!", "x", ENV, no_command)


@given(st.text(st.characters(exclude_characters="$!")))
def test_text_without_marks_is_literal(text: str) -> None:
    assert resolve_value(text, "x", {}, no_command) == text


@given(st.text(max_size=30))
def test_doubling_the_marks_makes_any_text_literal(text: str) -> None:
    quoted = text.replace("$", "$$")
    quoted = "$!" + quoted[1:] if quoted.startswith("!") else quoted
    assert resolve_value(quoted, "x", {}, no_command) == text


def test_a_document_may_begin_with_a_byte_order_mark() -> None:
    assert decode_document(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_a_lone_surrogate_in_a_document_is_read() -> None:
    assert decode_document(b'{"a": "\\ud83d"}') == {"a": "\ud83d"}


@pytest.mark.parametrize("data", [b"", b"{", b"[1,]", b"NaN", b'{"a": Infinity}', b"\xff", b"[" * 5000])
def test_what_is_no_document_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_document(data)


@given(
    st.recursive(
        st.none() | st.text() | st.floats() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_value_is_shown_on_one_short_line(value: object) -> None:
    assert len(shown(value)) <= 80
    assert "\n" not in shown(value)
