"""The whole program as a client meets it: a throw-away home, a scripted provider, and agents that run as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer
from conformance.schema_check import check_line
from tests.house.contract_table import claims, unseen

ROOT = Path(__file__).resolve().parents[2]
_OWN_PREFIXES = ("ANTHROPIC", "OPENAI", "ATOMIC_", "PI_")
_OWN_SUFFIXES = ("_API_KEY", "_PROXY")  # other providers' keys add models; a proxy would see what is for 127.0.0.1


class Home:
    """The folders of one test: `path` (HOME), `agent_dir`, `cwd` and `sessions`; and the environment to run in."""

    def __init__(self, root: Path, url: str) -> None:
        self.path, self.agent_dir = root / "home", root / "agent"
        self.cwd, self.sessions = root / "project", root / "sessions"
        for folder in (self.path, self.agent_dir, self.cwd, self.sessions):
            folder.mkdir()
        self.write_models(models(url))
        self.write_settings({})

    def write_models(self, content: Mapping[str, Any]) -> None:
        (self.agent_dir / "models.json").write_text(json.dumps(content))

    def write_settings(self, content: Mapping[str, Any]) -> None:
        """The settings that tests rest on (short retries, no request of its own), with `content` over them."""
        retry = {"enabled": True, "maxRetries": 2, "baseDelayMs": 100}
        rest = {"sessionSummary": {"enabled": False}, "enableInstallTelemetry": False}
        (self.agent_dir / "settings.json").write_text(json.dumps({"retry": retry, **rest, **content}))

    def session_files(self) -> list[Path]:
        return sorted(self.sessions.rglob("*.jsonl"))

    def environment(self) -> dict[str, str]:
        """This process's environment without keys, proxies and settings of ours, pointed at this home."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().startswith(_OWN_PREFIXES) and not name.upper().endswith(_OWN_SUFFIXES)
        }
        own = {"HOME": str(self.path), "ATOMIC_CODING_AGENT_DIR": str(self.agent_dir), "ATOMIC_OFFLINE": "1"}
        return {**kept, **own}


def models(url: str) -> dict[str, Any]:
    """A models.json whose providers all are the model server at `url`, one for each dialect."""
    large = {"contextWindow": 200_000, "maxTokens": 8000}
    anthropic = [
        {"id": "m", **large, "input": ["text", "image"]},
        {"id": "m2", **large},
        {"id": "think", **large, "reasoning": True},
        {"id": "small", "contextWindow": 20_000, "maxTokens": 2000},
    ]
    openai = [{"id": "m", "contextWindow": 128_000, "maxTokens": 8000}]
    return {
        "providers": {
            "fa": {"baseUrl": url, "api": "anthropic-messages", "apiKey": "k", "models": anthropic},
            "fo": {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "k", "models": openai},
            "fr": {"baseUrl": f"{url}/v1", "api": "openai-responses", "apiKey": "k", "models": openai},
        }
    }


def program() -> list[str]:
    """How `atomic` is started: its script if it is installed beside this Python, else its module."""
    script = Path(sys.executable).with_name("atomic")
    return [str(script)] if script.exists() else [sys.executable, "-m", "runtime.main"]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, server: ModelServer) -> Home:
    return Home(tmp_path, server.url)


_AGENTS = pytest.StashKey[list[Agent]]()


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> list[Agent]:
    """The agents whose records bear out the markers `shows` of this test."""
    agents: list[Agent] = request.node.stash.setdefault(_AGENTS, [])
    return agents


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that passes has seen what its markers `shows` claim."""
    yield
    claimed = [claim for mark in item.iter_markers("shows") for claim in claims(mark.args, **mark.kwargs)]
    records = [record for agent in item.stash.get(_AGENTS, []) for record in agent.records]
    assert unseen(claimed, records) == []


@pytest.fixture
def agent(home: Home, watched: list[Agent]) -> Iterator[Callable[..., Agent]]:
    """`agent(*args, provider="fa", model="m", session=True, env={}, cwd=None)` starts `atomic --mode rpc`, with its
    session dir or with `--no-session`. The end of the test closes every one and fails for any fault of the protocol."""
    with ExitStack() as running:

        def start(
            *args: str,
            provider: str = "fa",
            model: str = "m",
            session: bool = True,
            env: Mapping[str, str] | None = None,
            cwd: Path | None = None,
        ) -> Agent:
            where = ["--session-dir", str(home.sessions)] if session else ["--no-session"]
            command = [*program(), "--mode", "rpc", "--provider", provider, "--model", model, *where, *args]
            # without an installed script the packages are found by path, since the working folder is another one
            path = {"PYTHONPATH": str(ROOT)} if "-m" in command[:2] else {}
            environment = {**home.environment(), **path, **(env or {})}
            watched.append(
                running.enter_context(Agent(command, cwd=cwd or home.cwd, env=environment, check=check_line))
            )
            return watched[-1]

        yield start


OneShot = subprocess.Popen[bytes]


@pytest.fixture
def one_shot(home: Home) -> Iterator[Callable[..., OneShot]]:
    """`one_shot(*args, model="fa/m", cwd=None)` starts `atomic` with all three streams piped. The end of the test kills
    what still runs."""
    with ExitStack() as running:

        def start(*args: str, model: str | None = "fa/m", cwd: Path | None = None) -> OneShot:
            command = [*program(), "--session-dir", str(home.sessions), *(("--model", model) if model else ()), *args]
            path = {"PYTHONPATH": str(ROOT)} if "-m" in command[:2] else {}
            environment, pipe = {**home.environment(), **path}, subprocess.PIPE
            child = running.enter_context(
                subprocess.Popen(command, cwd=cwd or home.cwd, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
            )
            running.callback(child.kill)
            return child

        yield start


@pytest.fixture
def run(one_shot: Callable[..., OneShot]) -> Callable[..., tuple[int, str, str]]:
    """`run(*args, stdin="", ...)` lets one run end: exit code, stdout and stderr."""

    def finished(*args: str, stdin: str = "", **more: Any) -> tuple[int, str, str]:
        child = one_shot(*args, **more)
        out, err = child.communicate(stdin.encode(), timeout=30)
        return child.returncode, out.decode(), err.decode()

    return finished
