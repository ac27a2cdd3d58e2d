"""The command line: flags become options, everything else one line on stderr and an exit code."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

import pytest

from runtime.cli import Options, parse_arguments
from runtime.main import SUBCOMMANDS

FLAGS = [
    *("--mode", "rpc", "--provider", "fa", "--model", "m", "--thinking", "high", "--session-dir", "/s"),
    *("--session", "x.jsonl", "-n", "work", "-ne", "-ns", "-np", "--no-themes", "-nc", "--approve"),
    *("--offline", "--trace", "t.jsonl"),
]


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    """Exit code and the one line of stderr; stdout stays empty."""
    with pytest.raises(SystemExit) as stopped:
        parse_arguments(argv, {})
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return int(str(stopped.value.code)), err.rstrip("\n")


def test_flags_that_clients_send_all_parse() -> None:
    options = parse_arguments(
        FLAGS,
        {},
    )
    assert options == Options(
        provider="fa",
        model="m",
        session_dir="/s",
        session="x.jsonl",
        name="work",
        thinking="high",
        no_extensions=True,
        no_skills=True,
        no_prompt_templates=True,
        no_themes=True,
        no_context_files=True,
        offline=True,
        trace="t.jsonl",
        approve=True,
    )


def test_the_flags_about_models_parse() -> None:
    options = parse_arguments(["--mode", "rpc", "--models", "a/*,b:high", "--api-key", "k", "--model", "a/m"], {})
    assert (options.models, options.api_key, options.list_models) == ("a/*,b:high", "k", None)


@pytest.mark.parametrize(("argv", "search"), [(["--list-models"], ""), (["--list-models", "gpt mini"], "gpt mini")])
def test_a_list_of_models_needs_no_mode(argv: list[str], search: str) -> None:
    assert parse_arguments(argv, {}).list_models == search


def test_a_page_of_a_session_needs_no_mode_and_takes_its_place_from_the_next_word() -> None:
    options = parse_arguments(["--export", "s.jsonl", "page.html"], {})
    assert (options.export, options.messages) == ("s.jsonl", ("page.html",))
    assert parse_arguments(["--mode", "rpc", "--export", "s.jsonl", "page.html"], {}).export == "s.jsonl"


@pytest.mark.parametrize("flag", ["-r", "--resume"])
def test_resume_names_a_session_and_lists_none(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert parse_arguments(["--mode", "rpc", flag, "abc"], {}).session == "abc"
    code, line = refusal(capsys, "--mode", "rpc", flag)
    assert code == 1 and "--resume needs the path or id" in line
    for other in (("--session", "x"), ("--continue",), ("--fork", "x"), ("--no-session",)):
        code, line = refusal(capsys, "--mode", "rpc", flag, "abc", *other)
        assert code == 1 and "cannot be combined" in line


def test_skills_and_templates_may_be_named_one_by_one() -> None:
    options = parse_arguments(["--mode", "rpc", "--skill", "a", "--prompt-template", "b", "--skill", "c", "-ns"], {})
    assert (options.skill, options.prompt_template, options.no_skills) == (("a", "c"), ("b",), True)


@pytest.mark.parametrize("flag", ["--skill", "--prompt-template", "--export", "--fork", "--session", "--name"])
def test_an_empty_path_or_name_is_refused(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert refusal(capsys, "--mode", "rpc", flag, " ") == (1, f"atomic: {flag} must not be empty")


@pytest.mark.parametrize("flag", ["--models", "--api-key"])
def test_an_empty_flag_about_models_is_refused(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert refusal(capsys, "--mode", "rpc", flag, " ") == (1, f"atomic: {flag} must not be empty")


def test_no_refusal_shows_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--api-keys=s3cret"], ["--api-key"], ["--mode", "cobol", "--api-key", "s3cret"]):
        assert "s3cret" not in refusal(capsys, "--mode", "rpc", *argv)[1]


def test_neither_approve_flag_leaves_trust_undecided() -> None:
    assert parse_arguments(["--mode", "rpc"], {}).approve is None
    assert parse_arguments(["--mode", "rpc", "-na"], {}).approve is False


def test_version_goes_to_stdout_with_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_arguments(["--version"], {})
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("atomic ")


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_arguments(["--help"], {})
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for flag in ("--mode", "--provider", "--model", "--session", "--session-dir", "--no-session", "--continue"):
        assert flag in text
    assert f"atomic {{{','.join(SUBCOMMANDS)}}}" in text


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_help_of_a_subcommand_fits_into_80_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with suppress(SystemExit):
        import_module(SUBCOMMANDS[name]).run(["--help"], {}, "/")
    text = capsys.readouterr().out
    assert text.startswith(f"usage: atomic {name}")
    assert max(map(len, text.splitlines())) <= 80


def test_an_unknown_flag_is_refused_with_the_nearest_known_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refusal(capsys, "--mode", "rpc", "--no-sesion")
    assert code == 2
    assert line == 'atomic: Unknown option: "--no-sesion"; did you mean --no-session?'


@pytest.mark.parametrize(
    ("flag", "meant"), [("--modle", "--model"), ("--moed", "--mode"), ("--mode1", "--mode"), ("--sesion", "--session")]
)
def test_a_flag_with_letters_exchanged_is_known_again(
    capsys: pytest.CaptureFixture[str], flag: str, meant: str
) -> None:
    assert refusal(capsys, "-p", flag)[1].endswith(f"did you mean {meant}?")


def test_a_flag_is_never_completed_from_its_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, "--mode", "rpc", "--prov", "x")[0] == 2


def test_an_unknown_short_flag_is_not_read_as_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refusal(capsys, "--mode", "rpc", "-nz")
    assert (code, "-nz" in line) == (2, True)


def test_a_flag_without_its_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refusal(capsys, "--mode", "rpc", "--model")
    assert (code, "--model" in line) == (2, True)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["@notes.md"], "@file arguments are not supported in RPC mode"),
        (["hello"], 'Unexpected argument: "hello"'),
        (["--", "@x"], 'Unexpected argument: "@x"'),
        (["--json-deltas"], "--json-deltas needs --mode json"),
        (["--fork", "a", "--no-session"], "--fork cannot be combined with --no-session"),
        (["--fork", "a", "-c"], "--continue cannot be combined with --fork"),
        (["--session", "a", "--session-id", "b"], "--session cannot be combined with --session-id"),
        (["--name", "  "], "--name must not be empty"),
        (["--session", "a", "--no-session"], "--session cannot be combined with --no-session"),
        (["--session", "a", "-c"], "--session cannot be combined with --continue"),
        (["--session-dir", ""], "--session-dir must not be empty"),
    ],
)
def test_what_cannot_be_meant_ends_the_start_with_code_1(
    capsys: pytest.CaptureFixture[str], argv: list[str], told: str
) -> None:
    code, line = refusal(capsys, "--mode", "rpc", *argv)
    assert code == 1
    assert told in line


@pytest.mark.parametrize(
    ("argv", "told"),
    [([], "There is no interactive mode"), (["--mode", "cobol"], 'Invalid --mode: "cobol"; allowed: rpc, json, text')],
)
def test_a_mode_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str], argv: list[str], told: str) -> None:
    code, line = refusal(capsys, *argv)
    assert (code, told in line) == (1, True)


@pytest.mark.parametrize(
    ("argv", "terminal", "mode"),
    [
        (["--mode", "rpc"], False, "rpc"),
        (["--mode", "rpc", "-p"], True, "rpc"),
        (["--mode", "json", "-p"], True, "json"),
        (["--mode", "text"], True, "text"),
        (["-p"], True, "text"),
        (["hello"], False, "text"),
    ],
)
def test_without_a_mode_print_is_meant_when_asked_for_or_without_a_terminal(
    argv: list[str], terminal: bool, mode: str
) -> None:
    assert parse_arguments(argv, {}, terminal=terminal).mode == mode


def test_messages_and_files_may_stand_between_flags() -> None:
    options = parse_arguments(["-p", "one", "@a.md", "--model", "m", "two", "@b.png"], {})
    assert (options.messages, options.files, options.model) == (("one", "two"), ("a.md", "b.png"), "m")


def test_after_two_dashes_everything_is_a_message() -> None:
    options = parse_arguments(["-p", "--", "@x", "--model", "-y"], {})
    assert (options.messages, options.files, options.model) == (("@x", "--model", "-y"), (), None)


def test_a_prompt_after_print_may_begin_with_three_dashes() -> None:
    assert parse_arguments(["-p", "--- title"], {}).messages == ("--- title",)


def test_three_dashes_elsewhere_are_an_unknown_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, "--mode", "json", "---x")[0] == 2


def test_a_value_may_begin_with_a_dash_unless_it_is_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_arguments(["-p", "--append-system-prompt", "- short", "-n", "-x"], {}).append_system_prompt == (
        "- short",
    )
    assert refusal(capsys, "-p", "--system-prompt", "--offline")[0] == 2


def test_tool_flags_are_lists_and_their_short_forms_are_known() -> None:
    options = parse_arguments(["-p", "-t", "read, ls,", "-xt", "bash", "-nt"], {})
    assert (options.tools, options.exclude_tools, options.no_tools) == (("read", "ls"), ("bash",), True)


def test_the_help_of_a_mode_for_programs_leaves_stdout_empty(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_arguments(["--mode", "json", "--help"], {})
    out, err = capsys.readouterr()
    assert (stopped.value.code, out, "--json-deltas" in err) == (0, "", True)


def test_the_help_fits_into_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parse_arguments(["--help"], {})
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_a_bad_thinking_level_is_ignored_with_a_warning() -> None:
    options = parse_arguments(["--mode", "rpc", "--thinking", "hard"], {})
    assert options.thinking is None
    assert 'Invalid thinking level "hard"' in options.warnings[0]


@pytest.mark.parametrize(
    ("env", "offline"),
    [
        ({"ATOMIC_OFFLINE": "1"}, True),
        ({"PI_OFFLINE": "yes"}, True),
        ({"ATOMIC_OFFLINE": "", "PI_OFFLINE": "1"}, False),
        ({"ATOMIC_OFFLINE": "0"}, False),
        ({}, False),
    ],
)
def test_the_newer_variable_wins_even_when_empty(env: dict[str, str], offline: bool) -> None:
    assert parse_arguments(["--mode", "rpc"], env).offline is offline
