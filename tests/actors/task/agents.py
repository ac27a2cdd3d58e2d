"""What the tests of subagents are made of: models, a parent, definitions, plans, entries."""

from __future__ import annotations

import json
from typing import Any, cast

from msgspec.structs import replace

from actors.catalog_view import CatalogView, Defaults
from actors.mail import AgentPlan, ParentView
from actors.session.tree import Entry
from actors.task.definition import AgentDefinition
from protocol.entry_head import read_entry
from protocol.model import Model, ModelCost


def model(name: str, *, reasoning: bool = True) -> Model:
    provider, _, model_id = name.partition("/")
    return Model(model_id, model_id, "a", provider, "", reasoning, ("text",), ModelCost(), 1000, 100)


class Catalog:
    """The models that are available."""

    def __init__(self, *names: str) -> None:
        self.models = [model(name) for name in names]

    def available(self) -> list[Model]:
        return self.models


def parent(*available: str, **fields: Any) -> ParentView:
    view = ParentView(
        path="/sessions/p.jsonl",
        is_saved=True,
        branch=(entry("u", None),),
        model=model("a/own"),
        level="high",
        catalog=cast(CatalogView, Catalog("a/own", *available)),
        defaults=Defaults(level="low"),
        tools=("read", "bash", "kill", "subagent"),
    )
    return replace(view, **fields)


def agent(name: str = "scout", **fields: Any) -> AgentDefinition:
    return AgentDefinition(name, f"{name} does it", "Do it.", "user", f"/{name}.md", **fields)


def plan(**fields: Any) -> AgentPlan:
    whole = AgentPlan(
        agent=agent(),
        task="find x",
        cwd="/project",
        context="fresh",
        model=model("a/own"),
        level="high",
        fallback_models=(),
        tools=("read",),
        parent=parent(),
        run="r1",
        index=None,
    )
    return replace(whole, **fields)


def entry(entry_id: str, parent_id: str | None, message: Any = None, **fields: Any) -> Entry:
    """A message, of the user unless another is given, or an entry of another type."""
    body = fields or {"type": "message", "message": message or {"role": "user", "content": "hi"}}
    raw = json.dumps({**body, "id": entry_id, "parentId": parent_id, "timestamp": ""}).encode()
    head = read_entry(raw)
    assert head is not None
    return Entry(raw, head)
