"""What a replacing command leads to: a file, a session that lives already, or a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.session.file import OpenedSession, Stamps, new_session
from actors.session.target import Living, Refusal, Target, destination_of, same_file
from protocol import commands as c

STAMPS = Stamps(lambda: 0, lambda: "id", lambda: "entry")


def nobody(path: str) -> int | None:
    return None


@pytest.fixture
def current(tmp_path: Path) -> OpenedSession:
    return new_session(STAMPS, str(tmp_path), str(tmp_path))


def test_a_new_session_names_its_parent_unless_that_is_blank(current: OpenedSession) -> None:
    assert destination_of(c.NewSession(parent_session="/p"), current, nobody) == Target(
        "new", current, parent_session="/p"
    )
    assert destination_of(c.NewSession(parent_session=""), current, nobody) == Target("new", current)


def test_a_path_is_opened_unless_a_session_that_lives_has_it(current: OpenedSession) -> None:
    switch = c.SwitchSession(session_path="/s.jsonl")
    assert destination_of(switch, current, nobody) == Target("file", current, path="/s.jsonl")
    assert destination_of(switch, current, {"/s.jsonl": 3}.get) == Living(3)


def test_an_import_goes_beside_the_current_session_and_never_over_a_live_one(
    current: OpenedSession, tmp_path: Path
) -> None:
    here, other = tmp_path / "s.jsonl", tmp_path / "elsewhere" / "s.jsonl"
    command = c.ImportSession(input_path=str(other), cwd_override="/work")
    assert destination_of(command, current, nobody) == Target(
        "import", current, path=str(other), destination=str(here), cwd="/work"
    )
    assert isinstance(destination_of(command, current, {str(here): 2}.get), Refusal)
    assert destination_of(c.ImportSession(input_path=str(here)), current, {str(here): 2}.get) == Living(2)


@pytest.mark.parametrize("path", ["/a\0b", "/a\ud83db", "\udfff" * 100])
@pytest.mark.parametrize("field", ["sessionPath", "inputPath", "cwdOverride"])
def test_what_can_be_no_path_is_refused_and_the_field_is_named(current: OpenedSession, field: str, path: str) -> None:
    commands: dict[str, c.Command] = {
        "sessionPath": c.SwitchSession(session_path=path),
        "inputPath": c.ImportSession(input_path=path),
        "cwdOverride": c.ImportSession(input_path="/s", cwd_override=path),
    }
    refusal = destination_of(commands[field], current, {path: 1}.get)
    assert isinstance(refusal, Refusal) and refusal.error.startswith(f"Invalid {field} '")
    assert len(refusal.error) < 700 and refusal.error.isascii()


def test_other_commands_replace_nothing(current: OpenedSession) -> None:
    assert destination_of(c.GetState(), current, nobody) == Refusal("get_state replaces no session")


def test_a_file_is_the_same_by_another_name_and_before_it_is_there(tmp_path: Path) -> None:
    file, link = tmp_path / "a", tmp_path / "b"
    assert same_file(str(file), str(tmp_path / "." / "a")) and not same_file(str(file), str(link))
    file.write_text("")
    link.hardlink_to(file)
    assert same_file(str(file), str(link))
