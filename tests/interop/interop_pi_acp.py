"""pi-acp, which makes an agent of the Agent Client Protocol (as editors speak it) from pi's RPC mode."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "pi-acp@0.0.34"
Json = dict[str, Any]


class Editor:
    """The editor's side: one JSON object a line. `updates` are the `session/update` notifications so far."""

    def __init__(self, child: subprocess.Popen[bytes], cwd: Path) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self._stdin, self._stdout = child.stdin, child.stdout
        self.cwd = cwd
        self.updates: list[Json] = []
        self._last = 0
        self._answers: dict[int, Json] = {}

    def send(self, method: str, **params: Any) -> int:
        self._last += 1
        self._write({"id": self._last, "method": method, "params": params})
        return self._last

    def tell(self, method: str, **params: Any) -> None:
        self._write({"method": method, "params": params})

    def answer(self, number: int) -> Json:
        while number not in self._answers:
            self._read()
        found = self._answers.pop(number)
        assert "result" in found, found
        return dict(found["result"])

    def ask(self, method: str, **params: Any) -> Json:
        return self.answer(self.send(method, **params))

    def wait(self, wanted: Callable[[Json], bool], since: int = 0) -> Json:
        while True:
            for update in self.updates[since:]:
                if wanted(update):
                    return update
            since = len(self.updates)
            self._read()

    def said(self, since: int) -> str:
        chunks = [update for update in self.updates[since:] if update["sessionUpdate"] == "agent_message_chunk"]
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    def _write(self, record: Json) -> None:
        self._stdin.write(json.dumps({"jsonrpc": "2.0", **record}).encode() + b"\n")
        self._stdin.flush()

    def _read(self) -> None:
        line = self._stdout.readline()
        assert line, "pi-acp ended"
        record = json.loads(line)
        if record.get("method") == "session/update":
            self.updates.append(record["params"]["update"])
        else:
            self._answers[record["id"]] = record


@pytest.fixture(scope="module")
def editor(stage: Any) -> Iterator[Editor]:
    """pi-acp passes no flags of its own on but `--no-themes`, so the model comes with the command that it starts."""
    command = [str(stage.node / "node"), str(stage.npm_package(PACKAGE) / "dist" / "index.js")]
    environment = {**stage.environment(), "PI_ACP_PI_COMMAND": str(stage.pi)}
    with subprocess.Popen(
        command, cwd=stage.cwd, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        yield Editor(child, stage.cwd)
        assert child.stdin is not None
        child.stdin.close()
        child.terminate()


@pytest.fixture(scope="module")
def session(editor: Editor) -> Json:
    assert editor.ask("initialize", protocolVersion=1, clientCapabilities={})["protocolVersion"] == 1
    return editor.ask("session/new", cwd=str(editor.cwd), mcpServers=[])


@pytest.fixture
def prompt(editor: Editor, session: Json) -> Callable[[str], int]:
    def send(said: str) -> int:
        return editor.send("session/prompt", sessionId=session["sessionId"], prompt=[{"type": "text", "text": said}])

    return send


def test_a_new_session_shows_models_and_levels(session: Json) -> None:
    assert "fa/m" in json.dumps(session["models"])
    assert "high" in [mode["id"] for mode in session["modes"]["availableModes"]]


def test_a_prompt_streams_and_ends(editor: Editor, prompt: Callable[[str], int]) -> None:
    since = len(editor.updates)
    assert editor.answer(prompt("SAY hello there"))["stopReason"] == "end_turn"
    assert "hello there" in editor.said(since)
    assert "usage_update" in [update["sessionUpdate"] for update in editor.updates[since:]]


def test_line_separators_of_unicode_arrive_as_text(editor: Editor, prompt: Callable[[str], int]) -> None:
    (editor.cwd / "lines.txt").write_text("a\u2028b\u2029c", encoding="utf-8")
    since = len(editor.updates)
    editor.answer(prompt('TOOL read {"path": "lines.txt"}'))
    assert any("a\\u2028b\\u2029c" in json.dumps(update) for update in editor.updates[since:])


def test_a_tool_shows_with_its_result(editor: Editor, prompt: Callable[[str], int]) -> None:
    (editor.cwd / "note.txt").write_text("what is written")
    since = len(editor.updates)
    editor.answer(prompt('TOOL read {"path": "note.txt"}\nSAY tool done'))
    calls = [update for update in editor.updates[since:] if update["sessionUpdate"].startswith("tool_call")]
    assert (calls[0]["sessionUpdate"], calls[-1]["status"]) == ("tool_call", "completed")
    assert "what is written" in json.dumps(calls[-1])


def test_a_shell_tool_shows_its_output(editor: Editor, prompt: Callable[[str], int]) -> None:
    since = len(editor.updates)
    editor.answer(prompt('TOOL bash {"command": "echo from the tool"}\nSAY tool done'))
    calls = [update for update in editor.updates[since:] if update["sessionUpdate"].startswith("tool_call")]
    assert "from the tool" in json.dumps(calls)
    assert calls[-1]["status"] == "completed"


def test_an_edit_shows_as_a_diff(editor: Editor, prompt: Callable[[str], int]) -> None:
    (editor.cwd / "edited.txt").write_text("before\n")
    since = len(editor.updates)
    editor.answer(prompt('TOOL write {"path": "edited.txt", "content": "after\\n"}\nSAY tool done'))
    contents = [update.get("content") for update in editor.updates[since:]]
    diffs = [part for content in contents if isinstance(content, list) for part in content if part["type"] == "diff"]
    assert [(diff["oldText"], diff["newText"]) for diff in diffs] == [("before\n", "after\n")]


def test_cancel_ends_the_turn(editor: Editor, session: Json, prompt: Callable[[str], int]) -> None:
    since = len(editor.updates)
    running = prompt("HANG half an answer")
    editor.wait(lambda update: update["sessionUpdate"] == "agent_message_chunk", since)
    editor.tell("session/cancel", sessionId=session["sessionId"])
    assert editor.answer(running)["stopReason"] == "cancelled"


def test_a_second_prompt_waits_for_the_first(editor: Editor, prompt: Callable[[str], int]) -> None:
    first, second = prompt("SLOW 5 20"), prompt("SAY the second")
    since = len(editor.updates)
    assert [editor.answer(number)["stopReason"] for number in (first, second)] == ["end_turn", "end_turn"]
    assert "the second" in editor.said(since)


def test_a_failed_request_is_tried_again(editor: Editor, prompt: Callable[[str], int]) -> None:
    since = len(editor.updates)
    assert editor.answer(prompt("ERR 529 x1 Overloaded\nSAY recovered"))["stopReason"] == "end_turn"
    assert "recovered" in editor.said(since)


def test_model_and_level_are_chosen(editor: Editor, session: Json) -> None:
    chosen = {"sessionId": session["sessionId"]}
    editor.ask("session/set_mode", modeId="high", **chosen)
    told = editor.ask("session/set_config_option", configId="model", value="fa/m2", **chosen)
    assert "fa/m2" in [option["currentValue"] for option in told["configOptions"]]


@pytest.mark.parametrize("command", ["/name named", "/session", "/steering all", "/follow-up all", "/autocompact on"])
def test_commands_of_the_adapter_are_answered(editor: Editor, prompt: Callable[[str], int], command: str) -> None:
    since = len(editor.updates)
    assert editor.answer(prompt(command))["stopReason"] == "end_turn"
    assert editor.said(since) or len(editor.updates) > since
    assert "fail" not in editor.said(since).lower()


def test_a_session_is_exported(editor: Editor, prompt: Callable[[str], int]) -> None:
    since = len(editor.updates)
    editor.answer(prompt("/export"))
    assert "Session exported" in editor.said(since)
    assert list(editor.cwd.glob("pi-session-*.html"))


def test_the_session_is_listed_and_loaded_and_goes_on(
    editor: Editor, session: Json, prompt: Callable[[str], int]
) -> None:
    listed = editor.ask("session/list", cwd=str(editor.cwd))["sessions"]
    assert session["sessionId"] in [each["sessionId"] for each in listed]
    since = len(editor.updates)
    editor.ask("session/load", sessionId=session["sessionId"], cwd=str(editor.cwd), mcpServers=[])
    assert "hello there" in editor.said(since)
    since = len(editor.updates)
    assert editor.answer(prompt("SAY alive"))["stopReason"] == "end_turn"
    assert "alive" in editor.said(since)
