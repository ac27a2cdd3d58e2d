"""Arguments of prompt templates: how they are split, and what each placeholder becomes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.expansion import split_arguments, substitute


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t ", []),
        ("a b\tc", ["a", "b", "c"]),
        ("a \"b c\" 'd'", ["a", "b c", "d"]),
        ("a\"b c\"d'e f'", ["ab cde f"]),
        ("one\ntwo three", ["one\ntwo", "three"]),
        ('"" a \'\' b""', ["a", "b"]),
        ("it's all one", ["its all one"]),
        ("'say \"hi\"'", ['say "hi"']),
        (r"a\ b \"c d\"", ["a\\", "b", "\\c d\\"]),
        ("a\u00a0b", ["a\u00a0b"]),
    ],
)
def test_words_are_split_at_spaces_and_tabs_and_held_together_by_quotes(text: str, words: list[str]) -> None:
    assert split_arguments(text) == words


@given(st.text(), st.text("ab \t'\"\\\n"))
def test_only_quotes_and_space_between_words_are_lost(any_text: str, quoted: str) -> None:
    for text in (any_text, quoted):
        left = "".join(split_arguments(text))
        assert [c for c in left if c not in " \t'\""] == [c for c in text if c not in " \t'\""]


def test_a_megabyte_of_arguments_is_split_in_linear_time() -> None:
    begun = time.perf_counter()
    assert split_arguments("a'b" * 350_000) == ["ab" * 350_000]
    assert time.perf_counter() - begun < 5


@pytest.mark.parametrize(
    ("body", "expanded"),
    [
        ("[$1][$2][$@][${@:2}][${@:1:1}][${3:-def}][$1.5]", "[a][b c][a b c d][b c d][a][d][a.5]"),
        ("$ARGUMENTS|$@", "a b c d|a b c d"),
        ("$0|$4|$10|$", "|||$"),
        ("$01|$001", "a|a"),
        ("${@:0}|${@:3}|${@:4}|${@:0:2}|${@:2:0}|${@:2:9}", "a b c d|d||a b c||b c d"),
        ("${4:-x y}|${0:-z}|${1:-x}|${4:-}", "x y|z|a|"),
        ("${@:-none}|${ARGUMENTS:-none}", "a b c d|a b c d"),
        ("${4:-one\ntwo}|${4:-$1}", "one\ntwo|$1"),
        ("${1}|${x:-y}|${@:x}|${@:-1}|$x|$$1|$\u0661", "${1}|${x:-y}|${@:x}|a b c d|$x|$a|$\u0661"),
        ("${4:-" + "x" * 1024 + "}", "x" * 1024),
        ("${4:-" + "x" * 1025 + "}", "${4:-" + "x" * 1025 + "}"),
        ("$" + "9" * 5000 + "|${@:" + "9" * 5000 + "}|${@:1:" + "9" * 5000 + "}", "||a b c d"),
    ],
)
def test_placeholders_become_arguments(body: str, expanded: str) -> None:
    assert substitute(body, ["a", "b c", "d"]) == expanded


def test_a_default_stands_for_an_empty_argument_as_for_a_missing_one() -> None:
    assert substitute("${1:-x}|${@:-y}|${2:-z}", [""]) == "x|y|z"


def test_what_arguments_and_defaults_bring_in_is_never_expanded() -> None:
    assert substitute("$1 $2 ${3:-$1}", ["$2", "${@:1}"]) == "$2 ${@:1} $1"


@given(st.text("ab $@{}:-19ARGUMENTS\n"), st.lists(st.text("ab$1{}@\\", min_size=1)))
def test_text_without_a_dollar_is_kept_and_no_template_fails(body: str, arguments: list[str]) -> None:
    substitute(body, arguments)
    plain = body.replace("$", "")
    assert substitute(plain, arguments) == plain
