"""`atomic completions SHELL`: a completion script for bash, zsh or tcsh on stdout, made by shtab from the flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.stdio import complain, say

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Mapping, Sequence

SHELLS = ("bash", "zsh", "tcsh")
USAGE = f"""usage: atomic completions {{{",".join(SHELLS)}}}

Print a completion script. For bash, in ~/.bashrc:

    eval "$(atomic completions bash)"

For zsh, in ~/.zshrc after compinit:

    eval "$(atomic completions zsh)"
"""
FILES = ("--session", "--fork", "--trace", "--system-prompt", "--append-system-prompt")
FOLDERS = ("--session-dir",)
WORDS = "_atomic_words"
# The first word may be a subcommand, the second what that one takes; a file may stand anywhere.
BASH_WORDS = """{name}() {{
  case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
    1:*) compgen -W "{subcommands}" -- "$1" ;;
{cases}
  esac
  compgen -f -- "$1"
}}"""
ZSH_WORDS = """{name}() {{
  case "$((CURRENT - 1)):${{words[2]}}" in
    1:*) compadd -- {subcommands} ;;
{cases}
  esac
  _files
}}"""


def run(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> int:
    """The exit code: 2 for a shell that it does not know."""
    if list(argv) in (["-h"], ["--help"]):
        say(USAGE, end="")
        return 0
    if len(argv) != 1 or argv[0] not in SHELLS:
        complain(f"completions needs one of: {', '.join(SHELLS)}")
        return 2
    say(script(argv[0]))
    return 0


def script(shell: str) -> str:
    """`shell` is one of SHELLS."""
    import shtab

    return str(shtab.complete(_described(), shell, preamble=_words(shell)))


def _words(shell: str) -> str:
    """A shell function that completes what is no flag; tcsh completes files there."""
    from runtime.main import SUBCOMMANDS
    from runtime.schema_command import ALLOWED

    if shell == "tcsh":
        return ""
    template, case = BASH_WORDS, '    2:{}) compgen -W "{}" -- "$1" ;;'
    if shell == "zsh":
        template, case = ZSH_WORDS, "    2:{}) compadd -- {} ;;"
    taken = {"completions": SHELLS, "schema": ALLOWED}
    cases = "\n".join(case.format(name, " ".join(words)) for name, words in taken.items())
    return template.format(name=WORDS, subcommands=" ".join(SUBCOMMANDS), cases=cases)


def _described() -> ArgumentParser:
    """The parser of the program, with what its values and its words are."""
    import shtab

    from protocol.model import THINKING_LEVELS
    from runtime.cli import MODES
    from runtime.flags import build_parser

    parser = build_parser()
    choices = {"--mode": MODES, "--thinking": THINKING_LEVELS}
    kinds = {**dict.fromkeys(FILES, shtab.FILE), **dict.fromkeys(FOLDERS, shtab.DIRECTORY)}
    for action in parser._actions:
        for name in action.option_strings:
            if name in choices:
                action.choices = choices[name]
            if name in kinds:
                action.complete = kinds[name]  # type: ignore[attr-defined]
    words = parser.add_argument("message", nargs="*", help="a prompt, an @file, or a subcommand")
    words.complete = {**shtab.FILE, "bash": WORDS, "zsh": WORDS}  # type: ignore[attr-defined]
    parser.usage = None  # shtab reads none, and zsh would show it
    return parser
