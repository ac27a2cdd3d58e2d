"""The last section of docs/protocol.md: for everything that the contract promises, the test that shows it.

Tests say so themselves with the marker `shows`; this module reads the markers from the sources and writes the section.
`make contract` (or `python -m tests.house.contract_table`) writes it anew. What a marker claims is checked while its
test runs (`unseen`), so neither a claim nor a gap can go unnoticed.

    @pytest.mark.shows("fork")                                     the test gets a success of `fork`
    @pytest.mark.shows("fork", error="Invalid entry ID for forking")   it gets this error (`…`: any text)
    @pytest.mark.shows("steer", events=["queue_update"])           `steer` succeeds and causes these events
    @pytest.mark.shows("*", error="Unknown command: …")            the error is that of any command, or of none
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from protocol import events
from protocol.commands import COMMAND_NAMES, REPLIES
from tests.house.contract_facts import ANY, BEYOND, CONTRACT, CONTRACT_EVENTS, LATER, Facts, when

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "protocol.md"
HEAD = "## What shows it\n"
OPENING = f"""{HEAD}
`make contract` writes this section from the tests, and `make test` compares it with them: every command and event of
the contract, and those beyond it, with a test that shows it. What a test in `tests/e2e/` claims here is checked while
it runs: the response, the error or the event must have come over the wire. In an error `…` stands for what differs.
That our records have the keys and types of the contract's examples is shown by `tests/e2e/test_contract.py`.
"""


class Claim(NamedTuple):
    """One thing that a test shows. `command` is empty for an event alone; `what` is the error or the event."""

    command: str
    kind: str  # "success", "error" or "event"
    what: str = ""


class Witness(NamedTuple):
    file: str  # below tests/
    name: str


def claims(commands: Iterable[str], error: str | None = None, events: Iterable[str] = ()) -> Iterator[Claim]:
    """What a marker with these arguments claims."""
    for command in commands:
        yield Claim(command, "success") if error is None else Claim(command, "error", error)
        yield from (Claim(command, "event", event) for event in events)
    yield from (Claim("", "event", event) for event in events)


def unseen(claimed: Iterable[Claim], records: list[dict[str, Any]]) -> list[Claim]:
    """The claims for which there is no record."""
    return [claim for claim in claimed if not any(_is_shown(claim, record) for record in records)]


def _is_shown(claim: Claim, record: Mapping[str, Any]) -> bool:
    if claim.kind == "event":
        return bool(record["type"] == claim.what)
    if record["type"] != "response" or claim.command not in ("*", record.get("command")):
        return False
    if claim.kind == "success":
        return record["success"] is True
    return record["success"] is False and fits(claim.what, record["error"])


def fits(shape: str, error: str) -> bool:
    """Whether an error reads as `shape` says; the lines that follow a whole first line are help."""
    pattern = ".*".join(map(re.escape, shape.split("…")))
    return re.fullmatch(pattern + r"(\n.*)?", error, re.DOTALL) is not None


def shown(tests: Path = ROOT / "tests") -> dict[Claim, list[Witness]]:
    """Every claim of the tests below `tests`, in the order of files and lines."""
    found: dict[Claim, list[Witness]] = {}
    for file in sorted(tests.rglob("test_*.py")):
        source = file.read_text(encoding="utf-8")
        if "mark.shows" not in source:
            continue
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                test = Witness(file.relative_to(tests).as_posix(), node.name)
                for claim in _claims_of(node):
                    found.setdefault(claim, []).append(test)
    return found


def _claims_of(node: ast.FunctionDef) -> Iterator[Claim]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.shows":
            named = {word.arg: ast.literal_eval(word.value) for word in decorator.keywords if word.arg}
            yield from claims([ast.literal_eval(word) for word in decorator.args], **named)


def event_names() -> set[str]:
    """The `type` of every event of ours; the inner ones of `message_update` are none."""
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type) and hasattr(kind, "__struct_config__")]
    inner = set(get_args(events.AssistantMessageEvent))
    tags = {kind.__struct_config__.tag for kind in kinds if kind.__module__ == events.__name__ and kind not in inner}
    return {tag for tag in tags if isinstance(tag, str)}


def command_names() -> set[str]:
    return set(COMMAND_NAMES - REPLIES)


def expected() -> list[Claim]:
    """Everything that a test must show."""
    commands = [claim for facts in (CONTRACT, BEYOND) for name, fact in facts.items() for claim in _of(name, fact)]
    seen = [Claim("", "event", name) for name in sorted(event_names()) if name not in LATER]
    return [*commands, *(Claim("*", "error", error) for error in ANY), *seen]


def _of(name: str, facts: Facts) -> list[Claim]:
    success = [] if name in LATER else [Claim(name, "success")]
    errors = [Claim(name, "error", error) for error in facts.errors]
    return [*success, *errors, *(Claim(name, "event", event) for event in facts.events)]


# ---- the section -------------------------------------------------------------------------------------------------


def section(tests: dict[Claim, list[Witness]]) -> str:
    beyond = sorted(event_names() - set(CONTRACT_EVENTS))
    parts = [
        OPENING,
        "### Commands of the contract\n",
        *_commands(CONTRACT, tests),
        "\n### Commands beyond the contract\n",
        *_commands(BEYOND, tests),
        "\n### Errors of any command, and of lines that are none\n",
        *_table("Error", ((f"`{error}`", Claim("*", "error", error)) for error in ANY), tests),
        "\n### Events of the contract\n",
        *_events(CONTRACT_EVENTS, tests),
        "\n### Events beyond the contract\n",
        *_events(beyond, tests),
    ]
    return "\n".join(parts) + "\n"


def written() -> str:
    """The section as it stands in the page. Raises ValueError if there is none."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(HEAD) :]


def write() -> None:
    """Puts what the tests show today in the place of the section, which is the last of its page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.partition(HEAD)[0] + section(shown()), encoding="utf-8")


def _commands(facts: Mapping[str, Facts], tests: dict[Claim, list[Witness]]) -> Iterator[str]:
    yield "| Command | What | Shown by |\n|---|---|---|"
    for name, fact in facts.items():
        cell = f"`{name}`"
        if name in LATER:
            yield f"| {cell} | success | not yet: {LATER[name]} |"
            cell = ""
        for claim in _of(name, fact):
            what = "success" if claim.kind == "success" else f"{claim.kind} `{_cell(claim.what)}`"
            yield f"| {cell} | {what} | {_shown_by(claim, tests)} |"
            cell = ""


def _events(names: Iterable[str], tests: dict[Claim, list[Witness]]) -> Iterator[str]:
    return _table("Event", ((f"`{name}`", Claim("", "event", name)) for name in names), tests)


def _table(head: str, rows: Iterable[tuple[str, Claim]], tests: dict[Claim, list[Witness]]) -> Iterator[str]:
    yield f"| {head} | Shown by |\n|---|---|"
    for cell, claim in rows:
        yield f"| {cell} | {_shown_by(claim, tests)} |"


def _shown_by(claim: Claim, tests: dict[Claim, list[Witness]]) -> str:
    """The first test is enough to follow; a claim may have many."""
    if claim.kind == "event" and claim.what in LATER:
        return when(claim.what)
    if claim not in tests:
        return "**nothing**"
    test = tests[claim][0]
    return f"[{Path(test.file).stem}](../tests/{test.file}) `{test.name}`"


def _cell(error: str) -> str:
    return error.replace("\n", " ").replace("|", r"\|")


if __name__ == "__main__":
    write()
