"""Code and terminal output as HTML: highlighted, coloured, and folded by lines.

Promises: the text is escaped and the only tag that appears is `span` with a class of ours; no span crosses a line end,
so that markup can be cut between lines. What is long or in no known language is shown without colours, since a lexer's
time is not bounded by the length of its input. Source: `sessions.md` 9.
"""

from __future__ import annotations

import os
import re
from typing import Any

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
BUDGET = 150_000  # characters of a page that get colours; 100,000 take a lexer 0.3 to 0.6 seconds
BLOCK = 10_000  # characters of one block
_LINE = 300  # characters of one line; some lexers take quadratic time for it

# Only lexers for ordinary languages are asked: the rare ones are slow to load and their patterns less tried.
_LANGUAGES = frozenset(
    (
        *("bash", "c", "cmake", "cpp", "csharp", "css", "dart", "diff", "docker", "elixir", "go", "graphql", "haskell"),
        *("html", "ini", "java", "javascript", "json", "kotlin", "lua", "make", "markdown", "nix", "perl", "php"),
        *("powershell", "protobuf", "python", "ruby", "rust", "scala", "scss", "sql", "swift", "terraform", "toml"),
        *("tsx", "typescript", "xml", "yaml", "zig"),
    )
)
_ALIASES = {
    "c++": "cpp", "cc": "cpp", "cfg": "ini", "cjs": "javascript", "console": "bash", "cs": "csharp", "ex": "elixir",
    "dockerfile": "docker", "exs": "elixir", "h": "c", "hcl": "terraform", "hpp": "cpp", "hs": "haskell", "htm": "html",
    "js": "javascript", "jsonc": "json", "jsonl": "json", "jsx": "javascript", "kt": "kotlin", "makefile": "make",
    "md": "markdown", "mjs": "javascript", "mk": "make", "patch": "diff", "pl": "perl", "proto": "protobuf",
    "ps1": "powershell", "py": "python", "pyi": "python", "rb": "ruby", "rs": "rust", "sh": "bash", "shell": "bash",
    "svg": "xml", "tf": "terraform", "ts": "typescript", "yml": "yaml", "zsh": "bash",
}  # fmt: skip


def escape(text: str) -> str:
    """`text` for an element or a quoted attribute."""
    return text.translate(_ESCAPED)


def language_of(path: str) -> str:
    """What a file's name says about its language; a name without suffix stands for itself (`Makefile`)."""
    name = os.path.basename(path.replace("\\", "/"))
    return name.rpartition(".")[2]


class Highlighter:
    """Colours code until its budget, in characters, is used up."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._left = budget
        self._lexers: dict[str, Any] = {}
        self._formatter: Any = None

    def html(self, code: str, language: str) -> str:
        """`code` as lines of spans. Never raises."""
        wanted = language.strip().lower()
        name = _ALIASES.get(wanted, wanted)
        if name not in _LANGUAGES or len(code) > min(BLOCK, self._left) or _has_long_line(code):
            return escape(code)
        self._left -= len(code)
        try:
            return self._coloured(code, name)
        except Exception:
            return escape(code)

    def _coloured(self, code: str, name: str) -> str:
        from pygments import highlight
        from pygments.formatters.html import HtmlFormatter
        from pygments.lexers import get_lexer_by_name

        if self._formatter is None:
            self._formatter = HtmlFormatter(nowrap=True)
        if name not in self._lexers:
            self._lexers[name] = get_lexer_by_name(name, stripnl=False, ensurenl=False)
        shown: str = highlight(code.replace("\r\n", "\n"), self._lexers[name], self._formatter)
        return shown if code.endswith("\n") else shown.removesuffix("\n")


def _has_long_line(code: str) -> bool:
    return len(code) > _LINE and any(len(line) > _LINE for line in code.split("\n"))


def diff_html(rows: str) -> str:
    """Rows of a diff: what begins with `+` or `-` is marked as added or removed."""
    marks = {"+": "gi", "-": "gd"}
    lines = []
    for row in rows.split("\n"):
        mark = marks.get(row[:1])
        lines.append(f'<span class="{mark}">{escape(row)}</span>' if mark else escape(row))
    return "\n".join(lines)


def fold(markup: str, limit: int) -> tuple[str, str, int]:
    """The first `limit` lines, the others, and how many those are. Markup is that of this module."""
    lines = markup.rstrip("\n").split("\n")
    return "\n".join(lines[:limit]), "\n".join(lines[limit:]), max(len(lines) - limit, 0)


# ---- terminal output ---------------------------------------------------------------------------------------------

_SEQUENCE = re.compile(
    r"\x1b\[([0-9;:]*)m"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_PALETTE = (
    (0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
    (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255),
    (255, 255, 255),
)  # fmt: skip
_CUBE = (0, 95, 135, 175, 215, 255)
_STYLES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 9: "struck"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 29: ("struck",)}


def ansi_html(text: str) -> str:
    """Terminal output: colours and styles as classes (any colour as the nearest of the sixteen that the page knows),
    other control sequences and characters left out."""
    style: dict[str, str] = {}
    parts: list[str] = []
    done = 0
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for found in _SEQUENCE.finditer(text):
        parts.append(_styled(text[done : found.start()], style))
        done = found.end()
        if found[1] is not None:
            _apply(style, [int(code[:9] or 0) for code in found[1].replace(":", ";").split(";")])
    return "".join((*parts, _styled(text[done:], style)))


def _styled(text: str, style: dict[str, str]) -> str:
    if not style or not text:
        return escape(text)
    opening = f'<span class="{" ".join(style.values())}">'
    return "\n".join(f"{opening}{escape(line)}</span>" if line else "" for line in text.split("\n"))


def _apply(style: dict[str, str], codes: list[int]) -> None:
    """Change `style` (aspect -> class) as one sequence says."""
    at = 0
    while at < len(codes):
        code = codes[at]
        at += 1
        if code == 0:
            style.clear()
        elif code in (38, 48):
            colour, at = _extended(codes, at)
            style["fg" if code == 38 else "bg"] = f"a-{'f' if code == 38 else 'b'}{colour}"
        elif code in (39, 49):
            style.pop("fg" if code == 39 else "bg", None)
        elif code in _STYLES:
            style[_STYLES[code]] = f"a-{_STYLES[code]}"
        elif code in _ENDS:
            for aspect in _ENDS[code]:
                style.pop(aspect, None)
        else:
            _apply_colour(style, code)


def _apply_colour(style: dict[str, str], code: int) -> None:
    for first, aspect, bright in ((30, "fg", 0), (40, "bg", 0), (90, "fg", 8), (100, "bg", 8)):
        if first <= code < first + 8:
            style[aspect] = f"a-{aspect[0]}{code - first + bright}"


def _extended(codes: list[int], at: int) -> tuple[int, int]:
    """The colour that `5;N` or `2;R;G;B` at `at` means, and where it ends."""
    kind, values = (codes[at : at + 1] or [0])[0], codes[at + 1 : at + 4]
    if kind == 5 and values:
        return _indexed(min(values[0], 255)), at + 2
    if kind == 2 and len(values) == 3:
        return _nearest(values[0], values[1], values[2]), at + 4
    return 7, len(codes)


def _indexed(number: int) -> int:
    if number < 16:
        return number
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return _nearest(grey, grey, grey)
    number -= 16
    return _nearest(_CUBE[number // 36], _CUBE[number // 6 % 6], _CUBE[number % 6])


def _nearest(red: int, green: int, blue: int) -> int:
    distances = [(r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2 for r, g, b in _PALETTE]
    return distances.index(min(distances))
