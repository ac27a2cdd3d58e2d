"""Mail as lines for bug reports: who told whom what, without secrets and without much text."""

from __future__ import annotations

import json
from typing import Any

from actors.mail import BashAdopted, Commands, RunBash, ShellPlan, StdinBytes, StdinEnded, Tick, Ticket
from actors.probe import Probe
from actors.trace import trace_line
from protocol.codec import read_command


class Named(Probe[Any]):
    name = "session-1"


def traced(mail: Any) -> dict[str, Any]:
    line = trace_line("intake", "session-1", mail)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    record: dict[str, Any] = json.loads(line)
    return record


def test_a_line_names_sender_receiver_and_mail() -> None:
    assert traced(StdinEnded()) == {"from": "intake", "to": "session-1", "mail": "StdinEnded", "fields": {}}
    assert traced(Tick("deadline"))["fields"] == {"key": "deadline"}


def test_bytes_and_environments_are_told_by_size_or_type_only() -> None:
    plan = ShellPlan("echo $KEY", "/", "s", {"KEY": "hunter2"}, False)
    line = trace_line("a", "b", RunBash(Ticket(7, b'"1"', "bash"), plan, Named()))
    assert b"hunter2" not in line
    fields = json.loads(line)["fields"]
    assert fields["home"] == "<session-1>"
    assert fields["ticket"] == {"serial": 7, "id": "<3 bytes>", "command": "bash", "visitor": 0}
    assert traced(StdinBytes(b'{"credential":"hunter2"}'))["fields"]["data"] == "<24 bytes>"


def test_a_prompt_does_not_show_its_text() -> None:
    command = read_command(b'{"type":"prompt","message":"my secret plan"}')
    line = trace_line("a", "b", Commands(((Ticket(1, b"", "prompt"), command),)))
    assert b"secret" not in line
    assert b"<Prompt>" in line


def test_long_strings_and_long_lists_are_cut() -> None:
    assert traced(Tick("x" * 500))["fields"]["key"] == "x" * 80 + "…"
    shown = traced(BashAdopted(frozenset(range(9))))["fields"]["serials"]
    assert (len(shown), shown[-1]) == (6, "<4 more>")


def test_mail_that_is_no_struct_is_named_only() -> None:
    assert traced("text") == {"from": "intake", "to": "session-1", "mail": "str", "fields": {}}
