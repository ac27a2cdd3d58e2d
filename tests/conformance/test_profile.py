"""Profiles: shipped ones are found by name and by the command, others are read from a file, wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.profile import ProfileError, detect_profile, read_profile


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("atomic --mode rpc", "atomic"),
        ("/usr/bin/python -m runtime.main --mode rpc", "atomic"),
        ("pi --mode rpc", "pi"),
        ("node /x/node_modules/@earendil-works/pi-coding-agent/dist/cli.js --mode rpc", "pi"),
        ("other --mode rpc", "atomic"),
    ],
)
def test_a_profile_is_found_by_the_command(command: str, name: str) -> None:
    assert detect_profile(command.split()).name == name


def test_a_profile_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "third.json"
    file.write_text('{"name": "third", "env": {"BASE_URL": "{{url}}"}, "lacks": {"bash": "no shell"}}')
    profile = read_profile(str(file))
    assert (profile.name, profile.env, profile.lacks) == ("third", {"BASE_URL": "{{url}}"}, {"bash": "no shell"})


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ('"env": {"A": "{{nope}}"}', "env has the name 'nope'; known are home, agent"),
        ('"env": {"A": "{{model}}"}', "env has the name 'model'"),
        ('"session_args": ["{{nope}}"]', "session_args has the name 'nope'"),
        ('"files": {"agent/a": {"$ref": "nope"}}', "files has the name 'nope'"),
        ('"files": {"agent/a": {"$ref": 5}}', "files: $ref needs a name, not 5"),
        ('"files": {"../x": {}}', "files is not an object whose keys are paths"),
        ('"files": {"agent/../../x": {}}', "and have no .."),
        ('"files": {"agent/a": ' + "[" * 5000 + "]" * 5000 + "}", "nested too deep"),
    ],
    ids=range(8),
)
def test_a_name_or_path_that_cannot_be_meant_is_refused(tmp_path: Path, field: str, told: str) -> None:
    file = tmp_path / "third.json"
    file.write_text('{"name": "x", ' + field + "}")
    with pytest.raises(ProfileError) as refused:
        read_profile(str(file))
    assert told in str(refused.value)
    assert "third.json: " in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "third.json"),
        ('{"name": "x", "flags": []}', "flags"),
        ('{"name": "x", "env": []}', "$.env"),
        ("{}", "name"),
    ],
)
def test_a_wrong_profile_is_refused(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "third.json"
    file.write_text(text)
    with pytest.raises(ProfileError) as refused:
        read_profile(str(file))
    assert told in str(refused.value)
    assert "the fields are name, detect, env" in str(refused.value)
