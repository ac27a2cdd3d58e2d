"""A place to run tools in: a real folder, a real environment, the real clock, and what was shown meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from actors.shell.process import Process
from actors.shell.spill import Spill
from actors.tool.schema import check_arguments
from actors.tool.table import ToolContext, ToolFailure, ToolOutput, builtin_tools
from protocol.messages import TextContent


class Bench:
    """Runs tools in `root`; arguments are checked as the program checks them."""

    def __init__(self, root: Path, temporary: Path) -> None:
        self.root = root
        self.updates: list[ToolOutput] = []
        self.left_behind: list[Process] = []
        self.environment = {name: value for name, value in os.environ.items() if name not in ("PI_NO_PTY",)}
        self.context = ToolContext(
            cwd=str(root),
            update=self.updates.append,
            now=time.monotonic,
            environment=lambda: dict(self.environment),
            spill=lambda: Spill(str(temporary), "session", os.getuid(), lambda: os.urandom(8).hex()),
            leave_behind=self.left_behind.append,
        )

    def run(self, name: str, **arguments: Any) -> ToolOutput:
        tool = builtin_tools()[name]
        fault = check_arguments(tool, arguments)
        if fault is not None:
            raise ToolFailure(fault)
        return tool.run(self.context, arguments)

    def text(self, name: str, **arguments: Any) -> str:
        blocks = self.run(name, **arguments).content
        return "".join(block.text for block in blocks if isinstance(block, TextContent))

    def failure(self, name: str, **arguments: Any) -> ToolFailure:
        with pytest.raises(ToolFailure) as caught:
            self.run(name, **arguments)
        return caught.value

    def fault(self, name: str, **arguments: Any) -> str:
        return str(self.failure(name, **arguments))

    def write(self, path: str, content: str | bytes = "") -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    root = tmp_path / "work"
    root.mkdir()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return Bench(root, temporary)
