"""Writes the page of a session in a pump: a long session takes seconds to render."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from actors.base import Address, StartPump
from actors.mail import Exported, SessionMail, Ticket
from actors.session.tree import Entry, Tree

if TYPE_CHECKING:
    from actors.model.prompt import ToolSpec
    from protocol.entry_head import EntryHead


class ExportPlan(Struct, frozen=True):
    """The session as it stood when the export was asked for. `session_path` is its file, `wanted` the client's path."""

    session_path: str
    wanted: str | None
    header: EntryHead
    entries: tuple[Entry, ...]
    leaf_id: str | None
    name: str | None
    system_prompt: str | None
    tools: tuple[ToolSpec, ...] | None
    theme: Literal["auto", "dark", "light"] = "auto"


class Exporter:
    """`cwd` is the program's: relative paths are the client's, not the session's."""

    def __init__(self, start_pump: StartPump, cwd: str, home: str) -> None:
        self._start_pump = start_pump
        self._cwd = cwd
        self._home = home

    def start(self, ticket: Ticket, plan: ExportPlan, session: Address[SessionMail]) -> None:
        self._start_pump("export", lambda: self._run(ticket, plan, session))

    def _run(self, ticket: Ticket, plan: ExportPlan, session: Address[SessionMail]) -> None:
        from actors.session.export import ExportError

        try:
            session.tell(Exported(ticket, render_to(plan, self._cwd, self._home)))
        except (ExportError, OSError, ValueError) as error:
            session.tell(Exported(ticket, None, str(error)))
        except Exception as error:  # nothing of it may leave the command unanswered
            session.tell(Exported(ticket, None, f"export_html failed: {type(error).__name__}"))


def render_to(plan: ExportPlan, cwd: str, home: str) -> str:
    """Writes the page and returns its path as the client may read it. Raises `ExportError` or `OSError`."""
    from actors.session.export import export_path, write_export
    from actors.session.export_page import render_page

    path = export_path(plan.session_path, plan.wanted, cwd, home)
    page = render_page(
        Tree(plan.entries),
        plan.header,
        leaf_id=plan.leaf_id,
        name=plan.name,
        system_prompt=plan.system_prompt,
        tools=plan.tools,
        theme=plan.theme,
    )
    write_export(path, page, cwd)
    return path
