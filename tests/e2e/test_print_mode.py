"""`-p` as a person or a script meets it: the answer on stdout, everything else on stderr, and an exit code to trust."""

from __future__ import annotations

import json
import signal
import subprocess
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from conformance.model_server import ModelServer, Usage, error, gate, text, tool

Start = Callable[..., "subprocess.Popen[bytes]"]
Run = Callable[..., tuple[int, str, str]]
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def asked(server: ModelServer, request: int = 0) -> str:
    """The text of the newest user message of a request."""
    content = server.requests[request].body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def test_the_answer_is_all_that_stands_on_stdout(run: Run, server: ModelServer) -> None:
    server.script(tool("bash", {"command": "echo noise"}), text("The answer"))
    assert run("-p", "question") == (0, "The answer\n", "")


def test_stdin_without_a_terminal_means_print(run: Run, server: ModelServer) -> None:
    server.script(text("yes"))
    assert run(stdin="is it?") == (0, "yes\n", "")
    assert asked(server) == "is it?"


def test_stdin_files_and_message_are_one_prompt_in_that_order(run: Run, server: ModelServer, home: Any) -> None:
    server.script(text("ok"))
    (home.cwd / "notes.md").write_text("noted")
    assert run("-p", "@notes.md", "and asked", stdin=" piped\n")[0] == 0
    assert asked(server) == f'piped<file name="{home.cwd}/notes.md">\nnoted\n</file>\nand asked'


def test_an_image_is_attached(run: Run, server: ModelServer, home: Any) -> None:
    server.script(text("a picture"))
    (home.cwd / "shot.bin").write_bytes(PNG)
    assert run("-p", "@shot.bin", "what is it?")[0] == 0
    content = server.requests[0].body["messages"][-1]["content"]
    assert [block["source"]["media_type"] for block in content if block["type"] == "image"] == ["image/png"]


def test_a_missing_file_ends_the_start(run: Run, server: ModelServer, home: Any) -> None:
    assert run("-p", "@gone.md", "x") == (1, "", f"atomic: File not found: {home.cwd}/gone.md\n")
    assert server.requests == []


def test_files_are_refused_in_rpc_mode(run: Run) -> None:
    assert run("--mode", "rpc", "@x") == (1, "", "atomic: @file arguments are not supported in RPC mode\n")


def test_only_the_last_of_several_answers_is_printed(run: Run, server: ModelServer) -> None:
    server.script(text("first"), text("second"))
    assert run("-p", "one", "two") == (0, "second\n", "")


def test_a_failed_answer_is_told_on_stderr(run: Run, server: ModelServer) -> None:
    server.script(error(400, message="no such thing"))
    code, out, err = run("-p", "hi")
    assert (code, out) == (1, "")
    assert err.startswith("atomic: ") and "no such thing" in err


def test_an_answer_that_stays_empty_is_no_success(run: Run, server: ModelServer, home: Any) -> None:
    home.write_settings({"retry": {"enabled": False}})
    server.script(*[text("", usage=Usage(output=0))] * 3)
    assert run("-p", "hi") == (1, "", "atomic: Provider returned an empty completion\n")
    assert run("-p", "-c") == (1, "", "atomic: Provider returned an empty completion\n")
    code, _, err = run("--mode", "json", "hi")
    assert (code, err) == (1, "")


def test_a_skill_that_cannot_be_had_is_told_and_the_prompt_goes_on(run: Run, server: ModelServer) -> None:
    server.script(text("ok"), text("ok"))
    code, out, err = run("-p", "/skill:nope@x y")
    assert (code, out) == (0, "ok\n")
    assert err.startswith("atomic: Extension error (skill:nope@x): ") and err.count("\n") == 1
    code, out, err = run("--mode", "json", "/skill:nope@x y")
    assert (code, '"type":"extension_error"' in out, err) == (0, True, "")


def test_an_answer_that_was_cut_is_printed_but_is_no_success(run: Run, server: ModelServer) -> None:
    server.script(text("half")._replace(stop="length"))
    code, out, err = run("-p", "hi")
    assert (code, out) == (1, "half\n")
    assert "output token limit" in err


def test_a_session_is_gone_on_with_and_its_last_answer_can_be_printed_again(run: Run, server: ModelServer) -> None:
    server.script(text("one"), text("two"))
    run("-p", "first")
    assert run("-p", "-c", "second")[1] == "two\n"
    assert len(server.requests[1].body["messages"]) == 3
    assert run("-p", "-c") == (0, "two\n", "")
    assert len(server.requests) == 2


def test_a_fork_begins_with_the_history_and_leaves_the_source_as_it_is(
    run: Run, server: ModelServer, home: Any
) -> None:
    server.script(text("one"), text("two"))
    run("-p", "first")
    (source,) = home.session_files()
    before = source.read_bytes()
    assert run("-p", "--fork", str(source), "second")[0] == 0
    assert len(server.requests[1].body["messages"]) == 3
    assert source.read_bytes() == before
    (fork,) = set(home.session_files()) - {source}
    assert json.loads(fork.read_text().splitlines()[0])["parentSession"] == str(source)


def test_a_session_id_names_a_session_that_is_made_once_and_then_found(
    run: Run, server: ModelServer, home: Any
) -> None:
    server.script(text("one"), text("two"))
    code, _, err = run("-p", "--session-id", "nightly", "first")
    assert (code, "no session with the id nightly" in err) == (0, True)
    assert run("-p", "--session-id", "nightly", "second") == (0, "two\n", "")
    (file,) = home.session_files()
    assert json.loads(file.read_text().splitlines()[0])["id"] == "nightly"
    code, _, err = run("-p", "--fork", "nightly", "--session-id", "nightly", "x")
    assert (code, "a fork needs a new id" in err) == (1, True)


def test_the_prompt_flags_take_texts_and_files(run: Run, server: ModelServer, home: Any) -> None:
    server.script(text("ok"))
    (home.cwd / "more.md").write_text("From a file.")
    run("-p", "--system-prompt", "Base.", "--append-system-prompt", "Text.", "--append-system-prompt", "more.md", "x")
    system = json.dumps(server.requests[0].body["system"])
    assert system.index("Base.") < system.index("Text.") < system.index("From a file.")


def test_the_tool_flags_choose_what_the_model_is_offered(run: Run, server: ModelServer) -> None:
    server.script(text("ok"))

    def offered(*args: str) -> list[str]:
        run("-p", *args, "x")
        return sorted(each["name"] for each in server.requests[-1].body.get("tools", ()))

    assert offered("--tools", "read,ls") == ["ls", "read"]
    assert offered("--tools", "read,ls", "-xt", "ls") == ["read"]
    assert offered("--no-tools") == []
    _, _, err = run("-p", "--tools", "read,fly", "x")
    assert 'There is no tool "fly"' in err


def test_verbose_tells_the_session_on_stderr(run: Run, server: ModelServer) -> None:
    server.script(text("ok"))
    code, out, err = run("-p", "--verbose", "x")
    assert (code, out) == (0, "ok\n")
    assert err.startswith("atomic: session ") and "model fa/m" in err


def test_nothing_to_ask_is_a_mistake(run: Run) -> None:
    assert run("-p") == (1, "", "atomic: No prompt: give it as an argument, as @file or on stdin\n")


def test_a_signal_leaves_no_half_answer_on_stdout(one_shot: Start, server: ModelServer) -> None:
    server.script(gate("half an answer"))
    child = one_shot("-p", "hi")
    assert child.stdin and child.stdout
    child.stdin.close()
    server.wait_for_requests(1)
    child.send_signal(signal.SIGTERM)
    assert child.stdout.read() == b""
    assert child.wait(20) == 143
