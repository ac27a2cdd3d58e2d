"""The classes of the actors that a simulated house is made of; a test puts a broken one in."""

from __future__ import annotations

from actors.catalog import Catalog
from actors.inspector.door import Door
from actors.inspector.visitor import Visitor
from actors.intake import Intake
from actors.model.actor import ModelCall
from actors.preferences import Preferences
from actors.session.actor import Session
from actors.session.desk.actor import SessionDesk
from actors.session.queue import Queue
from actors.shell.actor import Shell
from actors.shell.desk import ShellDesk
from actors.task.desk import TaskDesk
from actors.task.subagent.actor import Subagent
from actors.tool.actor import ToolCall
from actors.writer import Writer


class Parts:
    """One for each kind of actor."""

    session: type[Session] = Session
    queue: type[Queue] = Queue
    shell: type[Shell] = Shell
    writer: type[Writer] = Writer
    intake: type[Intake] = Intake
    desk: type[SessionDesk] = SessionDesk
    preferences: type[Preferences] = Preferences
    model_call: type[ModelCall] = ModelCall
    tool_call: type[ToolCall] = ToolCall
    shell_desk: type[ShellDesk] = ShellDesk
    catalog: type[Catalog] = Catalog
    task_desk: type[TaskDesk] = TaskDesk
    subagent: type[Subagent] = Subagent
    door: type[Door] = Door
    visitor: type[Visitor] = Visitor
