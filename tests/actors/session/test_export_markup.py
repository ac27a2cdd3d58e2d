"""Markdown, code and terminal output become markup that shows what was written and does nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.session.export_code import Highlighter, ansi_html, fold, language_of
from actors.session.export_markdown import LIMIT, Markdown, is_safe_address


def markdown(text: str) -> str:
    return Markdown(Highlighter()).html(text)


def plain(markup: str) -> str:
    from html import unescape

    return unescape(re.sub(r"<[^>]*>", "", markup))


@pytest.mark.parametrize(
    "address",
    ["http://a/b", "HTTPS://a", "mailto:a@b", "tel:+1", "ftp://a", "a/b.md", "#x", "/a?b:c", "./a:b", "\x01https://a"],
)
def test_links_of_known_schemes_and_without_scheme_are_safe(address: str) -> None:
    assert is_safe_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "JaVaScRiPt:x", "java\tscript:x", "data:x",
        "java\x01script:x", "\u200bjavascript:x", " javascript:x",
        "java\u00adscript:x", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:x", "%6aavascript:x", "x:y",
        "//host/share", "\\\\host\\share", "/\\host", "", "\x00",
    ],
)  # fmt: skip
def test_all_other_addresses_are_refused(address: str) -> None:
    assert not is_safe_address(address)


@pytest.mark.parametrize(
    "text",
    [
        "[words](javascript:alert(1))", "[words](<java\x01script:alert>)", "[words](&#106;avascript:x)",
        "[words][r]\n\n[r]: data:x",
        "[words](<java\tscript:x>)", "[words](JAVASCRIPT&colon;x)",
    ],
)  # fmt: skip
def test_a_refused_link_leaves_its_words(text: str) -> None:
    shown = markdown(text)
    assert "href" not in shown
    assert plain(shown).strip() == "words"


def test_an_automatic_link_to_script_is_text() -> None:
    assert "href" not in markdown("<javascript:alert(1)>")


def test_a_link_opens_beside_the_page_and_tells_nothing_of_it() -> None:
    assert '<a href="https://a/?b=1&amp;c" target="_blank" rel="noopener noreferrer nofollow">x</a>' in markdown(
        '[x](https://a/?b=1&c "title")'
    )


def test_an_image_is_never_loaded() -> None:
    assert '<a href="https://a/b.png"' in markdown("![alt](https://a/b.png)")
    assert plain(markdown("![alt](javascript:x)")).strip() == "[alt]"
    assert markdown("[![alt](https://a/b.png)](https://c)").count("<a ") == 1


def test_markup_in_markdown_is_text() -> None:
    assert plain(markdown("a <b>c</b> <!-- d -->\n\n<script>e</script>")).split() == [
        "a", "<b>c</b>", "<!--", "d", "-->", "<script>e</script>"
    ]  # fmt: skip


def test_tables_are_aligned_without_inline_style() -> None:
    shown = markdown("| a |\n|--:|\n| 1 |")
    assert '<td class="right">1</td>' in shown
    assert "style" not in shown


def test_code_of_a_known_language_is_coloured_and_of_another_one_is_not() -> None:
    assert '<span class="k">def</span>' in markdown("```python\ndef f(): pass\n```")
    assert "<span" not in markdown('```"><script>\ndef f(): pass\n```')


def test_a_long_text_is_shown_as_it_stands() -> None:
    text = "*a* " * LIMIT
    assert plain(markdown(text)) == text


@pytest.mark.parametrize(
    "text", ["[" * 20_000, "![" * 10_000, "> " * 10_000, "*_" * 10_000, "`" * 20_000, "- " * 10_000]
)
def test_text_that_is_hard_to_parse_is_rendered(text: str) -> None:
    assert markdown(text)


@pytest.mark.parametrize(
    ("path", "language"), [("a/b.py", "py"), ("C:\\x\\a.rs", "rs"), ("Makefile", "Makefile"), ("", "")]
)
def test_the_language_is_told_by_the_name(path: str, language: str) -> None:
    assert language_of(path) == language


def test_colours_end_when_the_budget_is_used_up() -> None:
    highlighter = Highlighter(budget=10)
    assert "<span" in highlighter.html("x = 1", "py")
    assert highlighter.html("x = 12", "py") == "x = 12"


@settings(max_examples=60)
@given(
    st.text(alphabet="ab =\"'<>&#/*{}()\n\t", max_size=80),
    st.sampled_from(["py", "js", "json", "bash", "html", "yaml"]),
)
def test_highlighting_keeps_the_text_and_no_span_crosses_a_line(code: str, language: str) -> None:
    shown = Highlighter().html(code, language)
    assert plain(shown) == code
    assert [line for line in shown.split("\n") if line.count("<span") != line.count("</span>")] == []


def test_terminal_colours_become_classes() -> None:
    assert ansi_html("\x1b[1;31mred\x1b[0m <b>") == '<span class="a-bold a-f1">red</span> &lt;b&gt;'
    assert ansi_html("\x1b[38;5;196mx\x1b[39my") == '<span class="a-f9">x</span>y'
    assert ansi_html("\x1b[48;2;0;0;1mx") == '<span class="a-b0">x</span>'
    assert ansi_html("\x1b[3ma\nb\x1b[23mc") == '<span class="a-italic">a</span>\n<span class="a-italic">b</span>c'


def test_other_control_sequences_are_left_out() -> None:
    assert ansi_html("a\x1b[2Kb\x1b]8;;http://x\x07c\x1b]0;t\x1b\\d\x07e\x1b(Bf\x9bg\r\nh") == "abcdefg\nh"


@given(st.text(alphabet='\x1b[]m;:0123456789abK<"\n\x07\\?', max_size=60))
def test_terminal_output_holds_spans_of_classes_only(text: str) -> None:
    shown = ansi_html(text)
    assert "\x1b" not in shown
    assert re.sub(r'<span class="[a-z0-9 -]+">|</span>', "", shown).count("<") == 0
    assert [line for line in shown.split("\n") if line.count("<span") != line.count("</span>")] == []


@given(st.lists(st.text(alphabet="ab ", min_size=1), min_size=1, max_size=30), st.integers(1, 20))
def test_folding_parts_lines_and_loses_none(lines: list[str], limit: int) -> None:
    first, rest, more = fold("\n".join(lines), limit)
    assert (first.split("\n") + (rest.split("\n") if more else [])) == lines
    assert more == max(len(lines) - limit, 0)
