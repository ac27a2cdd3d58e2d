"""Slash commands over the wire: templates and skills in prompts, their list, and reading them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.model_server import ModelServer

SKILL = "---\nname: greet\ndescription: how to greet\n---\nSay hello twice.\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def sent(server: ModelServer) -> str:
    """The newest user text that reached the model."""
    content = server.requests[-1].body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@pytest.mark.shows("get_commands")
def test_templates_and_skills_are_listed_with_where_they_come_from(agent: Any, home: Any) -> None:
    write(home.agent_dir / "prompts" / "review.md", "---\ndescription: look at it\n---\nReview $1")
    write(home.agent_dir / "skills" / "greet" / "SKILL.md", SKILL)
    with agent() as a:
        listed = a.request("get_commands")["data"]["commands"]
    assert [(each["name"], each["source"], each["location"]) for each in listed] == [
        ("review", "prompt", "user"),
        ("skill:greet", "skill", "user"),
    ]
    assert listed[0]["path"].endswith("prompts/review.md") and listed[0]["sourceInfo"]["scope"] == "user"


def test_a_template_is_expanded_before_it_is_sent_and_before_it_is_queued(
    agent: Any, home: Any, server: ModelServer
) -> None:
    write(home.agent_dir / "prompts" / "review.md", "Review $1 with care")
    with agent() as a:
        a.prompt("/review this")
        assert sent(server) == "Review this with care"
        assert a.request("steer", message="/review that")["success"]
        update = a.wait({"type": "queue_update"})
        assert update["steering"] == ["Review that with care"]
        a.prompt("/unknown stays as it is")
    texts = [str(message["content"]) for message in server.requests[-1].body["messages"] if message["role"] == "user"]
    assert any("/unknown stays as it is" in text for text in texts)


def test_a_skill_is_told_to_the_model_and_expanded_on_demand(agent: Any, home: Any, server: ModelServer) -> None:
    write(home.agent_dir / "skills" / "greet" / "SKILL.md", SKILL)
    with agent() as a:
        a.prompt("/skill:greet the team")
    assert "how to greet" in str(server.requests[-1].body["system"])
    assert "Say hello twice." in sent(server) and sent(server).endswith("the team")


@pytest.mark.shows("prompt", events=["extension_error"])
def test_an_unknown_qualified_skill_is_an_extension_error_and_stays_literal(
    agent: Any, home: Any, server: ModelServer
) -> None:
    write(home.agent_dir / "skills" / "greet" / "SKILL.md", SKILL)
    with agent() as a:
        a.prompt("/skill:greet@nowhere hi")
        error = a.wait({"type": "extension_error"})
    assert error["event"] == "skill_expansion"
    assert sent(server) == "/skill:greet@nowhere hi"


@pytest.mark.shows("reload")
def test_reload_reads_templates_anew_and_a_new_session_does_too(agent: Any, home: Any) -> None:
    def names(a: Any) -> list[str]:
        return [each["name"] for each in a.request("get_commands")["data"]["commands"]]

    with agent() as a:
        assert names(a) == []
        write(home.agent_dir / "prompts" / "one.md", "1")
        assert names(a) == []
        assert a.request("reload")["success"]
        assert names(a) == ["one"]
        write(home.agent_dir / "prompts" / "two.md", "2")
        assert a.request("new_session")["success"]
        assert names(a) == ["one", "two"]


@pytest.mark.shows("get_shortcuts", "get_command_completions")
@pytest.mark.shows("invoke_shortcut", error="Shortcut not found: …")
def test_what_only_extensions_bring_is_empty_or_refused(agent: Any) -> None:
    with agent() as a:
        assert a.request("get_shortcuts")["data"] == {"shortcuts": []}
        assert a.request("invoke_shortcut", key="f2")["error"] == "Shortcut not found: f2"
        asked = a.request("get_command_completions", commandName="x", argumentPrefix="")
        assert asked["data"] == {"completions": None}
