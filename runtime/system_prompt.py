"""The system prompt: one text made from the tools that are on, the project's instructions and the day.

Pure. Owns the wording and the order of the parts. Promises that the parts which change least come first, so that a
provider's prompt cache holds as long as it can. Source: sessions 7.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from protocol.model import ThinkingLevel
    from runtime.resources import ContextFile

IDENTITY = (
    "You are atomic, a coding agent. A person or a program gives you tasks in a code base, and you carry them out with"
    " the tools below: look first, change what the task needs, and check that it works."
)
OTHER_TOOLS = "Your host may offer further tools; use them as they describe themselves."
SHELL_FOR_FILES = "List and find files with bash (ls, find, rg)."
READ_BEFORE_EDIT = "Read a file before you edit it."
PLAIN_WRITING = (
    "Write plainly: short sentences, common words, one idea in each.",
    "Begin with the answer or the result; reasons come after it.",
    "Say what you know, and mark what you only suppose.",
    "Name things exactly: the function, the file, the command, the error text.",
    "Leave out praise, apologies and announcements of what you are about to do.",
    "Report failures as plainly as successes, and never claim a check that you did not run.",
)
BE_CONCISE = "Be concise."
SHOW_PATHS = "Show the path of each file that you talk about."
DOCUMENTATION = "When asked about atomic itself (its protocol, configuration, models), read the pages in {} first."
CONTEXT_HEADING = (
    "# Project context\n\nInstructions that came with the project or its user; a later one outranks an earlier one."
)


def build_system_prompt(
    *,
    cwd: str,
    date: str,
    tools: Mapping[str, str],
    context_files: Iterable[ContextFile] = (),
    custom_prompt: str | None = None,
    append: Sequence[str] = (),
    guidelines: Iterable[str] = (),
    skills: str = "",
    model_name: str | None = None,
    thinking_level: ThinkingLevel | None = None,
    docs_dir: str | None = None,
) -> str:
    """`tools` maps the name of each active tool to its line, blank for one that has none; `date` is `YYYY-MM-DD` in
    local time; `custom_prompt` takes the place of the default base; `append` are texts to put after it;
    `skills` is the section that lists them; `docs_dir` is where the product's own pages lie, if they were installed."""
    base = custom_prompt.strip() if custom_prompt and custom_prompt.strip() else _base(tools, guidelines, docs_dir)
    parts = [base, *(text.strip() for text in append), _context(context_files), skills]
    parts.append(_facts(model_name, thinking_level, date, cwd))
    return "\n\n".join(part for part in parts if part)


def _base(tools: Mapping[str, str], guidelines: Iterable[str], docs_dir: str | None) -> str:
    listed = "\n".join(f"- {name}: {snippet}" for name, snippet in tools.items() if snippet.strip()) or "(none)"
    rules = "\n".join(f"- {rule}" for rule in _rules(tools, guidelines))
    parts = [IDENTITY, f"Tools:\n{listed}", OTHER_TOOLS, f"Guidelines:\n{rules}"]
    return "\n\n".join([*parts, DOCUMENTATION.format(docs_dir)] if docs_dir else parts)


def _rules(tools: Mapping[str, str], guidelines: Iterable[str]) -> list[str]:
    """In order, each once."""
    rules = [SHELL_FOR_FILES] if "bash" in tools and not {"find", "ls"} & set(tools) else []
    if {"read", "edit"} <= set(tools):
        rules.append(READ_BEFORE_EDIT)
    rules += [rule.strip() for rule in guidelines if rule.strip()]
    return list(dict.fromkeys([*rules, *PLAIN_WRITING, BE_CONCISE, SHOW_PATHS]))


def _context(files: Iterable[ContextFile]) -> str:
    blocks = [
        f'<instructions path="{_attribute(file.path)}">\n{file.text.strip()}\n</instructions>'
        for file in files
        if file.text.strip()
    ]
    if not blocks:
        return ""
    return "\n\n".join([CONTEXT_HEADING, *blocks])


def _attribute(path: str) -> str:
    return path.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _facts(model_name: str | None, thinking_level: ThinkingLevel | None, date: str, cwd: str) -> str:
    said = {
        "Model": model_name,
        "Reasoning level": thinking_level,
        "Date": date,
        "Working directory": cwd.replace("\\", "/"),
    }
    return "\n".join(f"{name}: {value}" for name, value in said.items() if value)
