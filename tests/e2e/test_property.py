"""Whatever is sent, in whatever order and chunks: one response for each command, and one JSON object on each line."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.driver import Agent, line
from conformance.model_server import ModelServer
from conformance.schema_check import check_line
from protocol.commands import COMMAND_NAMES

Record = dict[str, Any]

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=4)
)
anything = st.recursive(
    st.one_of(scalars, st.text(max_size=12)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=5,
)
malformed = st.one_of(
    st.sampled_from([b"", b"   ", b"null", b"[]", b"{}", b"ls -la", b'{"id":1,"type":', b'{"type":null,"id":"t"}']),
    st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b"").replace(b"{", b"")),
    st.dictionaries(st.text(max_size=4), anything, max_size=3).map(lambda record: json.dumps(record).encode()),
    st.builds(lambda name, id_: json.dumps({"type": name, "id": id_}).encode(), st.text(max_size=6), scalars),
)

IDS = [None, True, False, 0, -7, 0.5, 10**25, "", "a", "a", "b", "\u00e9\u2028"]
PATHS = ["one.jsonl", "two.jsonl", "deep/three.jsonl", "", "/proc/nope/x.jsonl", "notes.md", "a\0b", "\ud83d.jsonl"]
SHELL = ["true", "echo x; echo y >&2", "exit 3", "kill -9 $$", "sleep 30", "seq 3000", "printf '\\033[3'; printf 1m"]
SAID = ["SAY hello there", "SLOW 3 5", "HANG half", 'TOOL bash {"command": "echo tool"}', "ERR 400 no", "", "DROP 2"]
FIELDS: dict[str, list[Any]] = {
    "message": SAID,
    "streamingBehavior": ["steer", "followUp"],
    "command": SHELL,
    "excludeFromContext": [True, False],
    "requestId": IDS,
    "mode": ["all", "one-at-a-time"],
    "sessionPath": PATHS,
    "inputPath": PATHS,
    "entryId": ["nope", "00000000", ""],
    "targetId": ["nope", "00000000", ""],
    "name": ["n", " ", "\u2028"],
    "label": ["here", ""],
    "provider": ["fa", "fa", "nobody"],
    "modelId": ["m", "m2", "nothing"],
    "level": ["off", "high", "no such"],
    "enabled": [True, False],
    "commandName": ["x"],
    "argumentPrefix": [""],
    "key": ["x"],
    "credential": [{"type": "api_key", "key": "k"}],
    "value": ["v"],
}
OPTIONAL = {"streamingBehavior", "requestId", "excludeFromContext"}
WRONG: list[Any] = [None, 7, True, "x" * 200, [], {"a": [1]}, "\ud83d"]
OFTEN = [*2 * ["prompt", "bash"], "steer", "follow_up", "abort", "abort_bash", "new_session", "switch_session"]


def well_formed(random: Random) -> bytes:
    """A command with every field that a command may need; now and then one of a wrong kind, or none."""
    name = random.choice(OFTEN if random.random() < 0.6 else sorted(COMMAND_NAMES))
    fields = {field: random.choice(values) for field, values in FIELDS.items()}
    for optional in OPTIONAL:
        if random.random() < 0.5:
            del fields[optional]
    if random.random() < 0.15:
        spoilt = random.choice(sorted(fields))
        fields[spoilt] = random.choice(WRONG)
        if random.random() < 0.3:
            del fields[spoilt]
    if random.random() < 0.8:
        fields["id"] = random.choice(IDS)
    return json.dumps({**fields, "type": name}).encode()


def expected(raw: bytes) -> str | None:
    """The id that the response must echo (`none` when there is no id to echo), or None when none is due."""
    try:
        record = json.loads(raw.removesuffix(b"\r").decode("utf-8", "replace"))
    except ValueError:
        return "none"
    if not isinstance(record, dict):
        return "none"
    id_ = record.get("id", ...)
    if record.get("type") == "extension_ui_response" and isinstance(id_, str):
        return None
    return "none" if id_ is ... or isinstance(id_, dict | list) else repr(id_)


def echoed(record: Record) -> str:
    return repr(record["id"]) if "id" in record else "none"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Agent]:
    root = tmp_path_factory.mktemp("property")
    models = [{"id": id_, "contextWindow": 200_000, "maxTokens": 8000} for id_ in ("m", "m2")]
    providers = {
        "fa": {"baseUrl": model.url, "api": "anthropic-messages", "apiKey": "k", "models": models},
        "fo": {"baseUrl": f"{model.url}/v1", "api": "openai-completions", "apiKey": "k", "models": models},
    }
    (root / "agent").mkdir()
    (root / "agent" / "models.json").write_text(json.dumps({"providers": providers}))
    (root / "agent" / "settings.json").write_text(json.dumps({"retry": {"enabled": False}}))
    (root / "notes.md").write_text("keep me\n")
    command = [str(Path(sys.executable).with_name("atomic")), "--mode", "rpc", "--provider", "fa", "--model", "m"]
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "ATOMIC_CODING_AGENT_DIR": str(root / "agent")}
    with Agent([*command, "--session-dir", str(root / "sessions")], cwd=root, env=env, check=check_line) as running:
        yield running
        assert (root / "notes.md").read_text() == "keep me\n"


def quiet(a: Agent, number: int) -> None:
    """Ends what an example began; returns once everything before is answered and the session is idle."""
    ending = ("clear_queue", "resume_queued_messages", "abort_bash", "clear_queue", "abort", "get_state")
    since = a.cursor
    a.send_raw(b"".join(line(name, id=f"quiet {number} {name} {place}") for place, name in enumerate(ending)))
    for place, name in enumerate(ending):
        a.wait({"type": "response", "id": f"quiet {number} {name} {place}"}, since=since)


numbers = iter(range(1_000_000))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(8, 30),
    barriers=st.integers(0, 3),
    others=st.lists(malformed, max_size=3),
    cuts=st.lists(st.integers(0, 4000), max_size=8),
    ending=st.sampled_from([b"\n", b"\r\n"]),
)
def test_each_command_gets_exactly_one_response(
    program: Agent, seed: int, count: int, barriers: int, others: list[bytes], cuts: list[int], ending: bytes
) -> None:
    random = Random(seed)
    sent = [well_formed(random) for _ in range(count)] + others
    random.shuffle(sent)
    number = next(numbers)
    since = program.cursor
    data = b"".join(raw + ending for raw in sent)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for begin, end in pairwise(edges):
        program.send_raw(data[begin:end])
    for barrier in range(barriers):  # gives what runs some time
        program.request("get_session_stats", id=f"quiet {number} barrier {barrier}")
    quiet(program, number)
    wanted = Counter(id_ for id_ in map(expected, sent) if id_ is not None)

    def answered() -> Counter[str]:
        seen = [record for record in program.records[since:] if record["type"] == "response"]
        return Counter(echoed(record) for record in seen if not str(record.get("id")).startswith("quiet "))

    program.wait(lambda _: answered() >= wanted, since=since)
    program.request("get_state", id=f"quiet {number} last")
    assert answered() == wanted
    state = program.request("get_state", id=f"quiet {number} state")["data"]
    assert state["pendingMessageCount"] == 0 and not state["queuedMessagesPaused"]


def test_all_commands_are_among_those_that_are_sent() -> None:
    assert len(COMMAND_NAMES) == 57


@pytest.mark.parametrize("id_", [b"1e400", b"-0", b"1.00", b'"\\u0041"', b"null", b"123456789012345678901234567890.5"])
def test_an_id_is_echoed_as_it_was_written(program: Agent, id_: bytes) -> None:
    program.send_raw(b'{"type":"abort_retry","id":' + id_ + b"}\n")
    program.request("get_state", id=f"quiet {next(numbers)}")
    start = b'{"id":' + id_ + b',"type":"response","command":"abort_retry"'
    assert any(raw.startswith(start) for raw in program.raw_lines)
