"""Cases: the format of a transcript with expectations, and its reader.

A case is a JSONL file: a header line, `reply` lines (what the model answers, in order), then steps, one a line. Owns
the version of the format and every rule about what may stand where. Promises that a case which reads without CaseError
can be played: verbs, options, shapes, names and labels are all known. Reference: `docs/conformance/transcript.md`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conformance.folders import FOLDERS, check_files
from conformance.json_values import shorten
from conformance.model_play import Gates
from conformance.model_turns import check_reply
from conformance.names import bound_names, used_names, value_problem
from conformance.rules import RULES
from conformance.verbs import AT_THE_END, VERBS, Checker, content_problem, is_flag, is_object, is_text, is_texts
from protocol.commands import COMMAND_NAMES

FORMAT = 1
TOO_DEEP = "it is nested too deep to be read"
LEVELS = ("contract", "reference", "stricter")
GIVEN_NAMES = frozenset({*FOLDERS, "url", "pid", "project"})
_LEVEL: Checker = lambda value: None if value in LEVELS else f"one of {', '.join(LEVELS)}"  # noqa: E731
_FORMAT: Checker = lambda value: None if value == FORMAT else f"{FORMAT}"  # noqa: E731
_env: Checker = lambda value: (  # noqa: E731
    None
    if isinstance(value, dict) and all(one is None or isinstance(one, str) for one in value.values())
    else "an object of strings, or null to take one away"
)
_OR_NULL: Checker = lambda value: None if value is None or isinstance(value, str) else "a string or null"  # noqa: E731


def _rules(value: Any) -> str | None:
    known = {*RULES, "schema"}
    return is_texts(value) or (None if known.issuperset(value) else f"a list of {', '.join(sorted(known))}")


def _files(value: Any) -> str | None:
    return check_files(value) or next(filter(None, map(content_problem, value.values())), None)


_SHOWS: dict[str, Checker] = {"file": is_text, "heading": is_text, "says": is_text}
_START: dict[str, Checker] = {
    "args": is_texts,
    "env": _env,
    "settings": is_object,
    "models": is_object,
    "provider": is_text,
    "model": _OR_NULL,
    "files": _files,
    "session": is_text,
    "in_memory": is_flag,
}
_HEADER: dict[str, Checker] = {
    "format": _FORMAT,
    "title": is_text,
    "level": _LEVEL,
    "shows": is_object,
    "needs": is_texts,
    "start": is_object,
    "waive": _rules,
}


def check_start(value: Any) -> str | None:
    """What start conditions need instead, or nothing."""
    if not isinstance(value, dict):
        return "an object"
    if unknown := sorted(value.keys() - _START.keys()):
        return f"an object with {', '.join(_START)}, not {unknown[0]}"
    if wrong := [name for name in used_names(value) if name not in GIVEN_NAMES]:
        return f"an object without the name {wrong[0]!r}; known are {', '.join(sorted(GIVEN_NAMES))}"
    if problem := value_problem(value):
        return f"an object in which {problem}"
    problems = ((key, _START[key](inner)) for key, inner in value.items())
    return next((f"under {key} {problem}" for key, problem in problems if problem), None)


class CaseError(ValueError):
    """A case that cannot be read: the file, the line, and what is wrong there."""

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")


class Step(NamedTuple):
    """One line below the replies. `options` are the keys beside the verb."""

    line: int
    verb: str
    value: Any
    options: Mapping[str, Any]


class Case(NamedTuple):
    """`name` is `section/file`. `needs` are the features whose absence is told apart from a fault: names of commands,
    `event:<type>`, `field:<record or command>.<path>`, `flag:<--flag>`, `tool:<name>`, or a word that profiles list
    under `lacks`."""

    name: str
    path: str
    title: str
    level: str
    shows: Mapping[str, str]
    needs: tuple[str, ...]
    start: Mapping[str, Any]
    waive: tuple[str, ...]
    replies: tuple[Any, ...]
    steps: tuple[Step, ...]


def read_cases(folder: Path) -> list[Case]:
    """Every case below a folder, by name. CaseError for the first that cannot be read."""
    return [read_case(file, file.relative_to(folder)) for file in sorted(folder.rglob("*.jsonl"))]


def read_case(file: Path, name: Path | None = None) -> Case:
    """One case from its file; `name` is where it stands below the folder of cases."""
    try:
        text = file.read_bytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise CaseError(str(file), line, f"not UTF-8: {problem.reason}") from problem
    return parse_case(text, (name or Path(file.name)).with_suffix("").as_posix(), str(file))


def parse_case(text: str, name: str, path: str) -> Case:
    lines = list(_lines(text, path))
    if not lines:
        raise CaseError(path, 1, "the file is empty; its first line is the header")
    reader = _Reader(path)
    try:
        return reader.read(name, lines)
    except RecursionError:
        raise CaseError(path, reader.line, TOO_DEEP) from None


def _lines(text: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as problem:
            raise CaseError(path, number, f"not JSON: {problem}") from problem
        except RecursionError:
            raise CaseError(path, number, TOO_DEEP) from None
        if not isinstance(value, dict):
            raise CaseError(path, number, f"a line is a JSON object, not {shorten(value)}")
        yield number, value


class _Reader:
    """Reads one file; remembers the labels and names that its earlier lines made."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._line = 1
        self._labels: set[str] = set()
        self._names: set[str] = set(GIVEN_NAMES)
        self._gates = Gates()

    def read(self, name: str, lines: Sequence[tuple[int, dict[str, Any]]]) -> Case:
        self._line, header = lines[0]
        self._check_fields(header, _HEADER, "the header", ("format", "title", "level", "shows"))
        self._check_fields(header["shows"], _SHOWS, "shows", ("file", "heading", "says"))
        start = header.get("start", {})
        self._check_fields(start, _START, "start")
        self._check_names(start)
        self._check_value(start, "start")
        replies: list[tuple[int, Any]] = []
        steps: list[Step] = []
        for self._line, fields in lines[1:]:
            if "reply" in fields and not steps:
                self._check_fields(fields, {"reply": lambda value: None}, "a reply")
                self._check_reply(fields["reply"])
                replies.append((self._line, fields["reply"]))
            else:
                steps.append(self._step(fields))
        if not steps:
            self._refuse("the case has no steps")
        self._check_labels(steps)
        for self._line, reply in replies:
            self._check_reply_names(reply)
        needs = tuple(dict.fromkeys([*header.get("needs", ()), *_commands(steps)]))
        return Case(
            name, self._path, header["title"], header["level"], header["shows"], needs, start,
            tuple(header.get("waive", ())), tuple(reply for _, reply in replies), tuple(steps),
        )  # fmt: skip

    @property
    def line(self) -> int:
        """Where it is."""
        return self._line

    def _refuse(self, problem: str) -> None:
        raise CaseError(self._path, self._line, problem)

    def _check_fields(
        self, fields: Mapping[str, Any], allowed: Mapping[str, Checker], what: str, required: Sequence[str] = ()
    ) -> None:
        for key, value in fields.items():
            if key not in allowed:
                self._refuse(f"{what} has no field {key!r}; allowed are {', '.join(allowed)}")
            if problem := allowed[key](value):
                self._refuse(f"{what}: {key} is {shorten(value)}; allowed is {problem}")
        if missing := [key for key in required if key not in fields]:
            self._refuse(f"{what} lacks {', '.join(missing)}")

    def _check_names(self, value: Any) -> None:
        unknown = [name for name in used_names(value) if name not in self._names]
        if unknown:
            self._refuse(
                f"the name {unknown[0]!r} is used before it is bound; known are {', '.join(sorted(self._names))}"
            )

    def _check_value(self, value: Any, what: str) -> None:
        if problem := value_problem(value):
            self._refuse(f"{what}: {problem}")

    def _check_reply(self, value: Any) -> None:
        self._check_value(value, "a reply")
        try:
            check_reply(value, self._gates)
        except ValueError as problem:
            self._refuse(str(problem))

    def _check_reply_names(self, value: Any) -> None:
        """What a reply says may be bound by any step: it waits for that."""
        if unknown := [name for name in used_names(value) if name not in self._names]:
            self._refuse(f"a reply: no step binds the name {unknown[0]!r}; known are {', '.join(sorted(self._names))}")

    def _step(self, fields: dict[str, Any]) -> Step:
        verbs = [key for key in fields if key in VERBS]
        if "reply" in fields:
            self._refuse("a reply stands above the first step: replies are used up in their order")
        if len(verbs) != 1:
            found = ", ".join(verbs) or ", ".join(fields) or "nothing"
            self._refuse(f"a step has exactly one verb, not {found}; there are {', '.join(VERBS)}")
        verb = VERBS[verbs[0]]
        self._check_fields(fields, {verbs[0]: verb.value, **verb.options}, f"the step {verbs[0]}", verb.required)
        if verbs[0] in ("send", "let", "restart", "write"):
            self._check_value(fields, f"the step {verbs[0]}")
        if verbs[0] in ("open", "reached") and fields[verbs[0]] not in self._gates:
            self._refuse(f"no reply has the gate {fields[verbs[0]]!r}")
        self._note_names(verbs[0], fields)
        options = {key: value for key, value in fields.items() if key != verbs[0]}
        return Step(self._line, verbs[0], fields[verbs[0]], options)

    def _note_names(self, verb: str, fields: dict[str, Any]) -> None:
        made = set(bound_names(fields))
        if verb == "let":
            made |= fields["let"].keys()
        known, self._names = self._names, self._names | made | ({"n"} if "repeat" in fields else set())
        self._check_names(fields)
        self._names = known | made
        for label in (item.get("as") for item in (fields, *_items(fields)) if isinstance(item, dict)):
            if label in self._labels:
                self._refuse(f"the label {label!r} is taken by an earlier line")
            if label:
                self._labels.add(label)

    def _check_labels(self, steps: Sequence[Step]) -> None:
        """A step that waits knows the labels above it; what is checked at the end knows them all."""
        above = {"start"}
        for step in steps:
            self._line = step.line
            known = self._labels | {"start"} if step.verb in AT_THE_END else above
            if unknown := [label for label in _used_labels(step) if label not in known]:
                where = "line" if step.verb in AT_THE_END else "earlier line"
                self._refuse(f"no {where} has the label {unknown[0]!r}; there are {', '.join(sorted(known))}")
            fields = {step.verb: step.value, **step.options}
            above |= {item["as"] for item in (fields, *_items(fields)) if "as" in item}


def _used_labels(step: Step) -> list[str]:
    used = list(step.value) if step.verb == "order" else []
    for key in ("since", "after", "before"):
        value = step.options.get(key, [])
        used += value if isinstance(value, list) else [value]
    return used


def _items(fields: Mapping[str, Any]) -> list[Any]:
    value = fields.get("sequence", [])
    return [item for item in value if isinstance(item, dict) and "expect" in item]


def _commands(steps: Sequence[Step]) -> Iterator[str]:
    """The commands of the protocol that a case sends."""
    for step in steps:
        sent = step.value if step.verb == "send" else []
        for command in sent if isinstance(sent, list) else [sent]:
            if command.get("type") in COMMAND_NAMES:
                yield command["type"]
