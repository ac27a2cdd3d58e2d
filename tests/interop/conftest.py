"""Clients that others wrote, installed from npm and PyPI, against `atomic --mode rpc` and a scripted provider.

No part of `make test`: `make interop` runs the files named `interop_*.py`. The clients are installed once into
`$INTEROP_CACHE` (`~/.cache/atomic-interop`), each into a folder of its own. What a client does is in `clients/`: a
program in its language that goes through the same steps and prints what came of each as one JSON object.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = Path(__file__).with_name("clients")
CACHE = Path(os.environ.get("INTEROP_CACHE") or Path.home() / ".cache" / "atomic-interop")
NODE = "node@22.23.3"
_FOREIGN = ("ANTHROPIC", "OPENAI", "ATOMIC_", "PI_", "NODE_")

Facts = dict[str, Any]


def npm_modules(package: str) -> Path:
    """The `node_modules` that holds `name@version`. Only that of node itself may run scripts: it fetches the binary."""
    if shutil.which("npm") is None:
        pytest.fail("make interop needs npm: apt-get install npm", pytrace=False)
    folder = _folder(package)
    if not (folder / ".installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        options = ["--silent", "--no-fund", "--no-audit", *([] if package == NODE else ["--ignore-scripts"])]
        subprocess.run(["npm", "install", *options, package], cwd=folder, check=True)
        (folder / ".installed").touch()
    return folder / "node_modules"


def python_with(requirement: str) -> Path:
    """The interpreter of a virtual environment that holds `name==version`."""
    folder = _folder(requirement)
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", "--no-input", requirement], check=True)
        (folder / ".installed").touch()
    return python


def _folder(requirement: str) -> Path:
    return CACHE / re.sub(r"[^\w.]+", "-", requirement).strip("-")


class Stage:
    """Folders of a throw-away user, a model provider, and a command `pi` that is ours."""

    def __init__(self, root: Path, server: ModelServer) -> None:
        self.server = server
        self.home, self.agent_dir, self.cwd = root / "home", root / "agent", root / "project"
        self.node = self.npm_package(NODE) / "bin"
        for folder in (self.home, self.agent_dir, self.cwd):
            folder.mkdir()
        self._write_settings(server.url)
        self.flags = ["--provider", "fa", "--model", "m"]
        self.pi = root / "pi"
        self.pi.write_text(f'#!/bin/sh\nexec {shlex.join(self.atomic())} {shlex.join(self.flags)} "$@"\n')
        self.pi.chmod(0o755)

    def _write_settings(self, url: str) -> None:
        large = {"contextWindow": 200_000, "maxTokens": 8000}
        models = [{"id": "m", "name": "M", "reasoning": True, **large}, {"id": "m2", "name": "M2", **large}]
        provider = {"baseUrl": url, "api": "anthropic-messages", "apiKey": "k", "models": models}
        settings = {"retry": {"enabled": True, "maxRetries": 2, "baseDelayMs": 50}, "quietStartup": True}
        (self.agent_dir / "models.json").write_text(json.dumps({"providers": {"fa": provider}}))
        (self.agent_dir / "settings.json").write_text(json.dumps(settings))

    @staticmethod
    def npm_package(package: str) -> Path:
        """`name@version`, installed: the folder of the package itself."""
        return npm_modules(package) / package.rpartition("@")[0]

    @staticmethod
    def python_with(requirement: str) -> Path:
        """The interpreter of a virtual environment that holds `name==version`."""
        return python_with(requirement)

    @staticmethod
    def client(name: str) -> Path:
        return CLIENTS / name

    def atomic(self) -> list[str]:
        """How our command is started."""
        script = Path(sys.executable).with_name("atomic")
        return [str(script)] if script.exists() else [sys.executable, "-m", "runtime.main"]

    def environment(self) -> dict[str, str]:
        """No keys and settings of whoever runs the tests. `PI_CODING_AGENT_DIR` is what pi-acp reads for itself."""
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(_FOREIGN)}
        return kept | {
            "HOME": str(self.home),
            "PATH": f"{self.node}{os.pathsep}{os.environ['PATH']}",
            "PI_CODING_AGENT_DIR": str(self.agent_dir),
            "PI_OFFLINE": "1",
            "PYTHONPATH": str(ROOT),
        }

    def facts(self, command: Sequence[str | Path], given: Mapping[str, Any]) -> Facts:
        """Lets a client play its part: `given` goes to its stdin, what it found comes back."""
        run = subprocess.run(
            [str(word) for word in command],
            cwd=self.cwd,
            env=self.environment(),
            input=json.dumps({"cwd": str(self.cwd), **given}),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
        found: Facts = json.loads(run.stdout.splitlines()[-1])
        return found


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with ModelServer() as server:
        yield Stage(tmp_path_factory.mktemp("interop"), server)
