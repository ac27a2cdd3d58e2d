"""The system prompt: its parts, their order, and what leaves a part out."""

from __future__ import annotations

from typing import Any

from runtime.resources import ContextFile
from runtime.system_prompt import PLAIN_WRITING, SHELL_FOR_FILES, build_system_prompt


def prompt(**given: Any) -> str:
    return build_system_prompt(**{"cwd": "/work", "date": "2026-11-30", "tools": {"bash": "Run commands"}, **given})


def test_the_parts_come_in_order() -> None:
    text = prompt(
        append=["APPENDED"],
        context_files=[ContextFile("/a/AGENTS.md", "FIRST\n"), ContextFile("/b/AGENTS.md", "SECOND")],
        model_name="Big One",
        thinking_level="high",
    )
    marks = [
        "You are atomic",
        "- bash: Run commands",
        PLAIN_WRITING[0],
        "APPENDED",
        "FIRST",
        "SECOND",
        "Big One",
        "high",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert text.endswith("Date: 2026-11-30\nWorking directory: /work")


def test_the_model_and_its_level_are_named_last() -> None:
    assert prompt(model_name="M", thinking_level="low").endswith(
        "Model: M\nReasoning level: low\nDate: 2026-11-30\nWorking directory: /work"
    )


def test_only_tools_with_a_line_are_listed() -> None:
    text = prompt(tools={"read": "Read files", "silent": " "})
    assert "- read: Read files" in text
    assert "silent" not in text
    assert "(none)" in prompt(tools={"silent": ""})


def test_the_shell_is_for_files_only_where_no_other_tool_is() -> None:
    assert SHELL_FOR_FILES in prompt()
    assert SHELL_FOR_FILES not in prompt(tools={"bash": "b", "find": "f"})
    assert SHELL_FOR_FILES not in prompt(tools={"read": "r"})


def test_a_guideline_is_said_once() -> None:
    assert prompt(guidelines=["Do X.", " Do X. ", PLAIN_WRITING[0]]).count("Do X.") == 1
    assert prompt(guidelines=[PLAIN_WRITING[0]]).count(PLAIN_WRITING[0]) == 1


def test_a_custom_prompt_takes_the_place_of_the_base_alone() -> None:
    text = prompt(custom_prompt="CUSTOM\n", append=["MORE"], context_files=[ContextFile("/a", "CONTEXT")])
    assert text.startswith("CUSTOM\n\nMORE\n\n")
    assert "You are atomic" not in text
    assert "CONTEXT" in text
    assert "Working directory: /work" in text


def test_blank_parts_leave_no_trace() -> None:
    assert prompt(append=["", "  "], context_files=[ContextFile("/a", " \n")], custom_prompt=" ") == prompt()


def test_a_context_files_path_cannot_break_its_tag() -> None:
    assert '<instructions path="/a&quot;&lt;b>&amp;.md">' in prompt(context_files=[ContextFile('/a"<b>&.md', "x")])


def test_a_windows_path_is_written_with_slashes() -> None:
    assert prompt(cwd="C:\\work").endswith("Working directory: C:/work")


def test_the_products_pages_are_named_where_they_are_installed() -> None:
    assert "/opt/docs" in prompt(docs_dir="/opt/docs")
    assert "None" not in prompt()
