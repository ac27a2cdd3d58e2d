"""Subagents that work in git worktrees of their own: what comes back, and that no worktree outlives its agent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, Request, text, tool
from tests.e2e.test_subagents import alive, has_notices, job_of, launch, parent_and, result, said, settled, told

Start = Callable[..., Agent]


def git(home: Any, *words: str) -> str:
    run = ["git", "-c", "user.name=x", "-c", "user.email=x@x", *words]
    return subprocess.run(run, cwd=home.cwd, check=True, stdout=subprocess.PIPE).stdout.decode()


@pytest.fixture
def repository(home: Any) -> Any:
    """The project is one, with a commit."""
    (home.cwd / "a.txt").write_text("one\n")
    git(home, "init", "--quiet")
    git(home, "add", "--all")
    git(home, "commit", "--quiet", "-m", "x")
    return home


def is_clean(home: Any) -> bool:
    left = [path.name for path in (home.agent_dir / "worktrees").iterdir() if path.is_dir()]
    return len(git(home, "worktree", "list").splitlines()) == 1 and not git(home, "status", "--porcelain") and not left


def becomes_clean(home: Any) -> None:
    deadline = time.monotonic() + 20
    while not is_clean(home):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def working(marker: str) -> Callable[[Request], Any]:
    """A child that changes a file and then hangs about."""
    return lambda request: tool("bash", {"command": f"echo work >> a.txt; sleep {marker}"}, id="c")


def test_each_agent_changes_its_own_copy_and_the_patches_come_back(
    agent: Start, server: ModelServer, repository: Any
) -> None:
    def child(request: Request) -> Any:
        if "tool_result" in said(request):
            return text("done")
        return tool("bash", {"command": f"pwd; echo job {job_of(request)} >> a.txt"}, id="c")

    tasks = [{"agent": "worker", "task": f"job {job} ", "output": f"{job}.md"} for job in range(3)]
    wait = {"kind": "foreground"}
    server.default = parent_and(child, launch(tasks=tasks, worktree=True, wait=wait, context="fresh"))
    with agent() as a:
        a.prompt("go")
        slots = [slot["outcome"] for slot in told(result(a))["slots"]]
        for job, slot in enumerate(slots):
            patch = Path(slot["patch"])
            assert f"+job {job}" in patch.read_text() and patch.parent.name == "subagent-artifacts"
            assert "1 file changed, 1 insertion(+)" in slot["output"] and slot["output"].startswith("done")
            assert (repository.cwd / f"{job}.md").read_text() == "done"  # a saved answer is no part of it
            (repository.cwd / f"{job}.md").unlink()
        assert is_clean(repository)
    git(repository, "apply", slots[1]["patch"])
    assert (repository.cwd / "a.txt").read_text() == "one\njob 1\n"


def test_a_worktree_waits_for_an_agent_in_the_background_and_for_one_that_is_killed(
    agent: Start, server: ModelServer, repository: Any
) -> None:
    server.default = parent_and(working("341"), launch(agent="scout", task="x", worktree=True))
    with agent() as a:
        a.prompt("go")
        task_id = told(result(a))["observation"]["taskId"]
        alive(a, "sleep 341")
        (lock,) = (repository.agent_dir / "worktrees").glob("*/lock")
        assert (lock.parent / "tree" / "a.txt").read_text() == "one\nwork\n"
        a.request("cancel_task", taskId=task_id)
        (message,) = has_notices(a, 1)
        assert "stopped" in message["content"] and "+work" in message["content"]
        assert is_clean(repository)
        settled(a)
    (patch,) = repository.sessions.rglob("*.patch")
    assert "+work" in patch.read_text()


@pytest.mark.parametrize("end", ["new_session", "stdin"])
def test_a_worktree_goes_with_the_owner_of_its_agent(
    agent: Start, server: ModelServer, repository: Any, end: str
) -> None:
    server.default = parent_and(working("343"), launch(agent="scout", task="x", worktree=True))
    with agent() as a:
        a.prompt("go")
        alive(a, "sleep 343")
        if end == "stdin":
            a.close_stdin()
            assert a.wait_exit() == 0
            assert is_clean(repository)
        else:
            a.request("new_session")
            becomes_clean(repository)


def test_what_a_killed_program_left_is_removed_by_the_next(agent: Start, server: ModelServer, repository: Any) -> None:
    server.default = parent_and(working("347"), launch(agent="scout", task="x", worktree=True))
    with agent() as a:
        a.prompt("go")
        alive(a, "sleep 347")
        os.kill(a.pid, signal.SIGKILL)
        a.wait_exit()
        for left in a.orphans():
            os.kill(left.pid, signal.SIGKILL)
    (folder,) = (repository.agent_dir / "worktrees").iterdir()
    os.utime(folder, (0, 0))
    wait = {"kind": "foreground"}
    server.default = parent_and(lambda request: text("ok"), launch(agent="scout", task="x", worktree=True, wait=wait))
    with agent(session=False) as a:
        a.prompt("go")
        assert told(result(a))["output"] == "ok\n\nNo changes in its worktree."
    assert is_clean(repository)


def test_a_call_that_cannot_have_worktrees_is_refused_as_a_whole(
    agent: Start, server: ModelServer, repository: Any
) -> None:
    elsewhere = {"tasks": [{"agent": "scout", "task": "x"}, {"agent": "scout", "task": "y", "cwd": "sub"}]}
    (repository.cwd / "sub").mkdir()
    calls = [{**elsewhere, "worktree": True}, {"agent": "scout", "task": "x", "cwd": "/", "worktree": True}]
    server.script(*(launch(f"s{place}", **call) for place, call in enumerate(calls)), text("ok"))
    with agent() as a:
        a.prompt("go")
        texts = [result(a, f"s{place}")["result"]["content"][0]["text"] for place in range(2)]
        shared = f"worktree isolation requires the shared cwd {repository.cwd}, and task 2 has {repository.cwd}/sub"
        assert texts == [shared, "worktree isolation requires a git repository with a commit, and / is in none."]
        (repository.cwd / "a.txt").write_text("changed")
        server.script(launch("s3", agent="scout", task="x", worktree=True), text("ok"))
        a.prompt("again")
        assert result(a, "s3")["result"]["content"][0]["text"] == (
            "worktree isolation requires a clean git working tree. Commit or stash changes first."
        )
        assert a.request("get_tasks")["data"]["tasks"] == []


def test_a_hook_of_the_settings_prepares_each_worktree_or_the_agent_does_not_begin(
    agent: Start, server: ModelServer, repository: Any
) -> None:
    hook = repository.path / "prepare"
    hook.write_text("""#!/bin/sh\n[ -e ~/ready ] || exec sleep 353\ntouch dep; echo '{"ignore": ["dep"]}'\n""")
    hook.chmod(0o755)
    repository.write_settings({"subagents": {"worktreeHook": "~/prepare", "worktreeHookTimeoutMs": "2s"}})
    call: Any = {"agent": "scout", "task": "x", "worktree": True, "wait": {"kind": "foreground"}}

    def child(request: Request) -> Any:
        return text("done") if "tool_result" in said(request) else tool("bash", {"command": "ls dep"}, id="c")

    server.default = parent_and(child, launch("s0", **call), launch("s1", **call))
    with agent() as a:
        a.send("prompt", message="go")
        failed = told(result(a, "s0"))["observation"]["result"]
        assert failed["code"] == "SpawnFailed" and "did not end within 2.0 seconds" in failed["message"]
        assert a.orphans("sleep 353", deadline=5) == []
        (repository.path / "ready").touch()
        settled(a)
        server.default = parent_and(child, launch("s2", **call))
        a.prompt("again")
        assert told(result(a, "s2"))["output"] == "done\n\nNo changes in its worktree."
    assert is_clean(repository)


@pytest.mark.parametrize("stop", ["cancel_task", "abort", "new_session", "the end"])
def test_a_hook_ends_with_whatever_stops_its_agent(
    agent: Start, server: ModelServer, repository: Any, stop: str
) -> None:
    hook = repository.path / "prepare"
    hook.write_text("#!/bin/sh\nexec sleep 357\n")
    hook.chmod(0o755)
    repository.write_settings({"subagents": {"worktreeHook": "~/prepare", "worktreeHookTimeoutMs": "10m"}})
    wait = {"kind": "foreground", "budgetMs": 600_000}
    server.default = parent_and(lambda _: text("done"), launch(agent="scout", task="x", worktree=True, wait=wait))
    with agent() as a:
        a.request("set_task_subscription", enabled=True)
        a.send("prompt", message="go")
        alive(a, "sleep 357")
        if stop == "cancel_task":
            update = a.wait(lambda record: record["type"] == "task_update")
            a.request(stop, taskId=update["task"]["ref"]["taskId"])
            assert told(result(a))["observation"]["result"] == {"kind": "cancelled", "cause": "user"}
        elif stop != "the end":
            assert a.request(stop)["success"]
        if stop != "the end":
            assert a.orphans("sleep 357", deadline=5) == []
            becomes_clean(repository)
    assert is_clean(repository)


def test_an_agent_in_the_background_holds_nobody_while_a_hook_prepares_its_worktree(
    agent: Start, server: ModelServer, repository: Any
) -> None:
    hook, go = repository.path / "prepare", repository.path / "go"
    os.mkfifo(go)
    hook.write_text(f"#!/bin/sh\nread word < {go}\necho $word\n")
    hook.chmod(0o755)
    repository.write_settings({"subagents": {"worktreeHook": "~/prepare"}})
    server.default = parent_and(lambda _: text("done"), launch(agent="scout", task="x", worktree=True))
    with agent() as a:
        a.prompt("go")
        assert told(result(a))["observation"]["reason"] == "default-background"
        go.write_text("no\n")
        (notice,) = has_notices(a, 1)
        assert "SpawnFailed" in notice["content"] or "worktree hook" in notice["content"]


def test_instructions_of_the_project_count_in_its_worktrees_if_it_is_trusted(
    agent: Start, server: ModelServer, repository: Any
) -> None:
    (repository.cwd / "AGENTS.md").write_text("The project speaks.")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", "y")
    wait = {"kind": "foreground"}
    seen: list[bool] = []
    for flag in ("--approve", "--no-approve"):
        server.default = parent_and(
            lambda request: seen.append("The project speaks." in json.dumps(request.body["system"])) or text("ok"),  # type: ignore[func-returns-value]
            launch(agent="scout", task="x", worktree=True, wait=wait),
        )
        with agent(flag) as a:
            a.prompt("go")
            assert told(result(a))["kind"] == "admitted"
    assert seen == [True, False]
