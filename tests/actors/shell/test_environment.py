"""The environment of a command: of this session, with nothing stale."""

from __future__ import annotations

from collections.abc import Mapping

from actors.shell.environment import SESSION_VARIABLES, shell_environment


def of(base: Mapping[str, str], session_file: str | None = None, windows: bool = False) -> dict[str, str]:
    return shell_environment(
        base,
        agent_bin="/agent/bin",
        session_id="s1",
        session_file=session_file,
        provider="p",
        model="m",
        level="high",
        windows=windows,
    )


def test_the_session_is_told_under_both_prefixes() -> None:
    environment = of({"PATH": "/bin", "HOME": "/root"}, "/f.jsonl")
    for prefix in ("ATOMIC_", "PI_"):
        assert environment[prefix + "SESSION_ID"] == "s1"
        assert environment[prefix + "SESSION_FILE"] == "/f.jsonl"
        assert environment[prefix + "PROVIDER"] == "p"
        assert environment[prefix + "MODEL"] == "m"
        assert environment[prefix + "REASONING_LEVEL"] == "high"
    assert environment["HOME"] == "/root"


def test_stale_variables_are_gone_also_those_that_this_session_does_not_set() -> None:
    stale = dict.fromkeys(SESSION_VARIABLES, "stale") | {"AI_AGENT": "other", "ATOMIC_OTHER": "kept", "PATH": "/bin"}
    environment = of(stale)
    assert len(SESSION_VARIABLES) == 10
    assert "stale" not in environment.values()
    assert not {"ATOMIC_SESSION_FILE", "PI_SESSION_FILE"} & environment.keys()
    assert (environment["AI_AGENT"], environment["ATOMIC_OTHER"]) == ("atomic", "kept")


def test_the_agents_folder_comes_first_in_the_path_unless_it_is_in_there() -> None:
    assert of({"PATH": "/bin:/usr/bin"})["PATH"] == "/agent/bin:/bin:/usr/bin"
    assert of({"PATH": "/bin:/agent/bin"})["PATH"] == "/bin:/agent/bin"


def test_without_a_path_the_system_folders_stay_in_reach() -> None:
    assert of({})["PATH"].startswith("/agent/bin:") and "/bin" in of({})["PATH"].split(":")[1:]


def test_names_on_windows_have_no_case() -> None:
    environment = of({"Path": "C:\\x", "atomic_Session_File": "stale"}, windows=True)
    assert environment["Path"] == "/agent/bin;C:\\x"
    assert "stale" not in environment.values() and "PATH" not in environment
