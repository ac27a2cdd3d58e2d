"""What the session of a child is given: what any session is, but that its Writer and its desks are its subagent.

It owns no tasks, has the tools of its plan, and knows the models as its parent does. Source: `tasks.md` 3.2 and 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from actors.base import Address, Child
from actors.mail import AgentPlan, SessionMail, ToolCallMail, ToolRequest
from actors.session.fallback import Place
from actors.session.services import Services
from actors.session.surroundings import Surroundings
from actors.task.subagent.child_road import ChildRoad
from actors.tool.contact_call import contact_tool
from actors.tool.subagent import REFUSED, looking_tool
from actors.tool.talk_schema import CONTACT

if TYPE_CHECKING:
    from actors.task.planning import LoadAgents

CHILD_KEY = 0
"""Of a child's session; those of the desk count from 1, and the first one speaks for the command line."""

StartToolCall = Callable[[ToolRequest, Address[SessionMail]], Child[ToolCallMail]]


def child_services(
    services: Services,
    plan: AgentPlan,
    surroundings: Surroundings,
    road: ChildRoad,
    start_tool_call: StartToolCall,
    load_agents: LoadAgents,
) -> Services:
    """`services` are those of any session of the program."""
    known = {**services.tools, CONTACT: contact_tool()}
    tools = {name: known[name] for name in plan.tools}
    if "subagent" in tools:
        tools["subagent"] = looking_tool(load_agents)
    return replace(
        services,
        writer=road,
        shells=road,
        desk=road,
        start_task_desk=None,
        start_tool_call=start_tool_call,
        catalog=plan.parent.catalog,
        defaults=plan.parent.defaults,
        tools=tools,
        surroundings=surroundings,
        name=None,
        pi_compat=False,
        place=Place(plan.model, plan.level),
        absent_tools={"subagent": REFUSED},
    )
