"""`atomic completions` prints scripts that the shells take."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from runtime.completions import SHELLS, run, script
from runtime.flags import build_parser


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_every_long_flag(shell: str) -> None:
    text = script(shell)
    flags = [name for action in build_parser()._actions for name in action.option_strings if name.startswith("--")]
    assert len(flags) > 20
    assert [flag for flag in flags if flag.lstrip("-") not in text] == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_flags_and_the_modes(tmp_path: Path) -> None:
    (tmp_path / "atomic.bash").write_text(script("bash"))
    ask = (
        "source ./atomic.bash; COMP_WORDS=(atomic {0}); COMP_CWORD=$(({1})); COMP_LINE='atomic {0}'; "
        '_shtab_atomic atomic; echo "${{COMPREPLY[@]}}"'
    )

    def completed(words: str, place: int) -> list[str]:
        command = ["bash", "--norc", "-c", ask.format(words, place)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()

    assert completed("--json-d", 1) == ["--json-deltas"]
    assert completed("--mode j", 2) == ["json"]
    assert completed("ag", 1) == ["agents"]
    assert completed("sch", 1) == ["schema"]
    assert completed("schema e", 2) == ["events", "entries"]
    assert completed("completions z", 2) == ["zsh"]
    assert completed("doctor e", 2) == []
    (tmp_path / "notes.md").touch()
    assert completed("no", 1) == ["notes.md"]


@pytest.mark.parametrize("argv", [[], ["fish"], ["bash", "zsh"]])
def test_an_unknown_shell_is_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv, {}, "/") == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "atomic: completions needs one of: bash, zsh, tcsh\n")


def test_help_tells_how_to_install_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"], {}, "/") == 0
    assert 'eval "$(atomic completions bash)"' in capsys.readouterr().out
