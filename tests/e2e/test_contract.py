"""Every kind of JSON that the contract shows: our types read it, and what we send has the same keys and types.

The live half is one played conversation. What it may have beyond an example, and lack of it, is listed with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, error, gate, hang, overflow, text, thinking, tool
from conformance.schema_check import check_line, check_of
from protocol import entries, envelope, events, messages, model, responses
from protocol.codec import encode, read_command
from protocol.commands import COMMANDS, command_name
from protocol.state import SessionState
from tests.e2e.conftest import Home, models, program
from tests.e2e.contract_examples import COMMANDS as COMMAND_EXAMPLES
from tests.e2e.contract_examples import EVENTS, IMAGE, MESSAGES, MODEL, RESPONSES
from tests.house.contract_facts import CONTRACT, CONTRACT_EVENTS, LATER

Record = dict[str, Any]

DATA: dict[str, Any] = {
    "clear_queue": responses.QueuedTexts,
    "new_session": responses.Cancelled,
    "get_state": SessionState,
    "get_messages": responses.MessageList,
    "set_model": model.Model,
    "cycle_model": responses.CycledModel,
    "get_available_models": responses.Catalogue,
    "logout_provider": responses.LoggedOut,
    "set_thinking_level": responses.EffectiveLevel,
    "cycle_thinking_level": responses.EffectiveLevel,
    "get_available_thinking_levels": responses.LevelList,
    "compact": responses.CompactionResult,
    "bash": responses.BashResult,
    "get_session_stats": responses.SessionStats,
    "export_html": responses.ExportedPath,
    "switch_session": responses.Cancelled,
    "fork": responses.Forked,
    "clone": responses.Cancelled,
    "get_fork_messages": responses.ForkMessageList,
    "get_entries": responses.EntryList,
    "get_tree": dict,  # written and read without recursion, so it has no type; its entries have
    "get_last_assistant_text": responses.LastAssistantText,
    "get_commands": responses.SlashCommandList,
}
EVENT_KINDS: dict[str, Any] = {
    str(kind.__struct_config__.tag): kind
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == events.__name__
}

# Fields that an example does not have: from an object's `role`, `type`, `command` or key to what may be there, and why.
BEYOND: dict[str, tuple[set[str], str]] = {
    "response": ({"id"}, "examples leave out the id, which is echoed when the command has one"),
    "get_state": ({"queuedMessagesPaused", "resourceOverlaps"}, "the reference tells them"),
    "get_available_models": ({"scopedModels", "customAuthProviders", "oauthProviders"}, "the reference tells them"),
    "assistant": ({"responseId", "responseModel", "rawStopReason"}, "the provider's own words, kept for the replay"),
    "usage": ({"totalTokens", "cacheWrite1h", "reasoning"}, "one example lacks the total; the parts if they are told"),
    "thinking": ({"thinkingSignature"}, "the provider takes a thought back only with its signature"),
    "toolResult": ({"details"}, "what the tool tells beside its text, as in tool_execution_end"),
    "commands": ({"sourceInfo"}, "the reference tells it beside location and path"),
    "cost": ({"tiers"}, "prices of long requests"),
}
# Fields of an example that may be absent: clients of the contract are told to read absent as null.
ABSENT: dict[str, tuple[set[str], str]] = {
    "bashExecution": ({"fullOutputPath"}, "absent while the output is whole, null when the log could not be kept"),
}
# Objects whose keys are not the protocol's: the model's arguments, and what each tool tells of its own.
OPEN = {"args", "arguments", "details"}
# Examples of what cannot happen here, and why; they are read all the same.
NOT_SENT = {
    '"cancelled":true': "only the hook of an extension cancels a replacement",
    '"source":"extension"': "there are no extensions",
    '"type":"start"': "message_start tells it",
    '"type":"done"': "message_end tells it",
    '"type":"error","reason"': "message_end tells it",
    '"endTurn"': "no provider of ours reports it over these dialects",
    '"command":"set_thinking_level","success":true}': "the data is optional, and we send it",
}


def identity(example: Record) -> str:
    """A short name for the report."""
    inner = example.get("assistantMessageEvent") or example.get("message") or {}
    return ":".join(str(each) for each in (example.get("command", example.get("type")), *list(inner.values())[:1]))


# ---- our types read the examples ---------------------------------------------------------------------------------


def lost(example: Any, read: Any) -> bool:
    """Whether something of the example is gone or another value; what was added (a default) is not."""
    if isinstance(example, dict):
        return not isinstance(read, dict) or any(key not in read or lost(example[key], read[key]) for key in example)
    if isinstance(example, list):
        return len(example) != len(read) or any(map(lost, example, read))
    return bool(example != read)


def through(kind: Any, value: Any) -> Any:
    """The value as it comes out of our type and its encoder."""
    return json.loads(encode(msgspec.json.decode(json.dumps(value), type=kind)))


def objects(value: Any) -> Iterator[Record]:
    """Every object inside a JSON value, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield value
    for each in inner:
        yield from objects(each)


@pytest.mark.parametrize("example", COMMAND_EXAMPLES, ids=lambda example: "-".join([example["type"], *example][:4]))
def test_a_command_of_the_contract_is_read_with_every_field(example: Record) -> None:
    read = read_command(json.dumps(example).encode())
    assert isinstance(read, COMMANDS[example["type"]])
    written = json.loads(encode(read))
    defaults = {"persist": False, "images": []}
    assert {**defaults, **written} == {**defaults, **example} and command_name(read) == example["type"]


@pytest.mark.parametrize("example", RESPONSES, ids=identity)
def test_the_data_of_a_response_is_read_with_every_field(example: Record) -> None:
    if "data" in example:
        assert not lost(example["data"], through(DATA[example["command"]], example["data"]))
    if example["success"]:
        data = encode(example["data"]) if "data" in example else None
        ours = envelope.ok(json.dumps(example["id"]).encode() if "id" in example else b"", example["command"], data)
    else:
        ours = envelope.failed(b"", example["command"], example["error"])
    assert json.loads(ours) == example


@pytest.mark.parametrize("example", EVENTS, ids=identity)
def test_an_event_is_read_with_every_field(example: Record) -> None:
    assert not lost(example, through(EVENT_KINDS[example["type"]], example))
    if example.get("result") and example["type"] == "compaction_end":
        assert not lost(example["result"], through(responses.CompactionResult, example["result"]))


def test_messages_entries_and_models_are_read_with_every_field_wherever_they_stand() -> None:
    found = [each for example in (*RESPONSES, *EVENTS, *MESSAGES) for each in objects(example)]
    said = [each for each in found if "role" in each]
    stored = [each for each in found if "parentId" in each]
    described = [each for each in found if "baseUrl" in each]
    assert {each["role"] for each in said} == {"user", "assistant", "toolResult", "bashExecution"}
    assert len(stored) >= 3 and len(described) >= 4
    for kind, some in ((messages.Message, said), (entries.Entry, stored), (model.Model, described)):
        assert [each for each in some if lost(each, through(kind, each))] == []


def test_there_is_an_example_of_everything_that_the_contract_has() -> None:
    assert {example["type"] for example in COMMAND_EXAMPLES} == set(CONTRACT)
    assert {example["command"] for example in RESPONSES} - {"parse"} == set(CONTRACT)
    assert {example["type"] for example in EVENTS} == set(CONTRACT_EVENTS)


# ---- what we send is like the examples ---------------------------------------------------------------------------


def misfits(example: Any, sent: Any, where: str) -> list[str]:
    """How a value that we sent differs from an example in keys and types. `null` in an example fits anything."""
    if isinstance(example, dict) and isinstance(sent, dict):
        return _misfits_of_object(example, sent, where)
    if isinstance(example, list) and isinstance(sent, list):
        return _misfits_of_list(example, sent, where)
    if example is None or kind_of(example) == kind_of(sent):
        return []
    return [f"{where} is {kind_of(sent)}, not {kind_of(example)}"]


def _misfits_of_object(example: Record, sent: Record, where: str) -> list[str]:
    names = {where, *(str(sent[key]) for key in ("role", "type", "command") if isinstance(sent.get(key), str))}
    extra, absent = (set().union(*(known[name][0] for name in names & known.keys())) for known in (BEYOND, ABSENT))
    if where in OPEN:
        return []
    found = [f"{where}.{key} is absent" for key in example.keys() - sent.keys() - absent]
    found += [f"{where}.{key} is not in the example" for key in sent.keys() - example.keys() - extra]
    inside = sent.get("command", where) if where == "response" else None
    for key in example.keys() & sent.keys():
        found += misfits(example[key], sent[key], inside if inside and key == "data" else key)
    return found


def _misfits_of_list(example: list[Any], sent: list[Any], where: str) -> list[str]:
    """Each element of the example has its like; what an example shows none of is not told apart."""
    if example and not sent:
        return [f"{where} is empty"]
    found = []
    for element in example:
        if not _is_sent(element):
            continue
        tries = [misfits(element, each, where) for each in sent if _same_sort(element, each)]
        found += closest(tries) if tries else [f"{where} has no like of {element}"]
    return found


def closest(tries: list[list[str]]) -> list[str]:
    """The misfits of the value that is most like the example."""
    return min(tries, key=lambda each: len(each))


def _same_sort(element: Any, sent: Any) -> bool:
    if not isinstance(element, dict) or not isinstance(sent, dict):
        return kind_of(element) == kind_of(sent)
    return all(element.get(key) == sent.get(key) for key in ("role", "type", "source"))


def _is_sent(example: Any) -> bool:
    written = json.dumps(_without_lists(example), separators=(",", ":"))
    return not any(fragment in written for fragment in NOT_SENT)


def _without_lists(value: Any) -> Any:
    """What an example says of itself; an element of a list is asked on its own."""
    if not isinstance(value, dict):
        return value
    return {key: _without_lists(each) for key, each in value.items() if not isinstance(each, list)}


def kind_of(value: Any) -> str:
    numbers = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if numbers else type(value).__name__


@pytest.fixture(scope="module")
def sent(tour: tuple[list[Record], list[Path]]) -> list[Record]:
    """Every record of one conversation in which everything of the contract happens."""
    return tour[0]


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Record], list[Path]]]:
    """That conversation: its records, and the session files that it left."""
    root = tmp_path_factory.mktemp("contract")
    with ModelServer() as server, ExitStack() as running:
        home = Home(root, server.url)
        described = models(server.url)
        described["providers"]["fa"]["models"][2]["input"] = ["text", "image"]
        home.write_models(described)
        home.write_settings({"retry": {"enabled": True, "maxRetries": 2, "baseDelayMs": 1}})
        for place, content in (
            (home.cwd / ".atomic" / "prompts" / "mend.md", "---\ndescription: mends it\n---\nMend $1"),
            (home.agent_dir / "skills" / "greet" / "SKILL.md", "---\nname: greet\ndescription: greets\n---\nHello."),
        ):
            place.parent.mkdir(parents=True)
            place.write_text(content, encoding="utf-8")
        where = ["--session-dir", str(home.sessions), "--provider", "fa", "--model", "think", "--approve"]
        command = [*program(), "--mode", "rpc", *where]
        environment = {**home.environment(), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        a = running.enter_context(Agent(command, cwd=home.cwd, env=environment, check=check_line))
        play(a, server, root)
        yield a.records, home.session_files()


def play(a: Agent, server: ModelServer, root: Path) -> None:
    run_tools_and_retries(a, server)
    queue_and_abort(a, server)
    read_everything(a)
    leave_a_branch(a, server)
    shorten_the_context(a, server)
    choose_models(a)
    replace_sessions(a, root)


def run_tools_and_retries(a: Agent, server: ModelServer) -> None:
    call = tool("bash", {"command": "echo out; sleep 0.3; echo more"}, id="t1")
    reply = thinking("some thought", "a word").then(call)
    server.script(reply, text("it is red"))
    a.prompt("which colour is it?", images=[IMAGE])
    server.script(error(529), text("at last"))
    a.prompt("again")
    server.script(error(529), error(529), error(529))
    a.prompt("in vain")
    server.script(text("once more"))
    a.prompt("/skill:greet@nowhere please")


def queue_and_abort(a: Agent, server: ModelServer) -> None:
    a.request("steer", message="to the left")
    a.request("follow_up", message="afterwards")
    a.request("clear_queue")
    held = gate("half ")
    server.script(held)
    a.request("prompt", message="go")
    held.reached.wait()
    a.request("abort")
    a.wait({"type": "agent_settled"}, since=a.cursor - 1)
    a.request("abort_retry")


def read_everything(a: Agent) -> None:
    a.request("bash", command="echo out; echo err >&2")
    a.request("bash", command="seq 1 5000")
    a.send_raw(b'{"type":"bash","command":"echo plain"}\nnonsense\n')
    a.wait({"type": "response", "command": "bash", "data.output": "plain\n"})
    a.request("abort_bash", requestId="nobody")
    a.request("set_session_name", name="work")
    a.request("set_label", entryId=a.request("get_fork_messages")["data"]["messages"][0]["entryId"], label="begin")
    for name in ("get_state", "get_messages", "get_session_stats", "get_fork_messages", "get_entries", "get_tree"):
        a.request(name)
    for name in ("get_last_assistant_text", "get_commands"):
        a.request(name)
    a.request("export_html", deadline=40)


def leave_a_branch(a: Agent, server: ModelServer) -> None:
    """And comes back to it."""
    entries = a.request("get_entries")["data"]
    target = next(entry["id"] for entry in entries["entries"] if entry.get("message", {}).get("role") == "assistant")
    server.script(error(529), text("what was done"))
    a.request("navigate_tree", targetId=target, options={"summarize": True})
    a.request("navigate_tree", targetId=entries["leafId"])


def shorten_the_context(a: Agent, server: ModelServer) -> None:
    """On demand, cancelled, and after overflows that stay."""
    server.script(error(529), text("1,2"), text("1,2"))
    a.request("compact")
    a.request("compact", preserve_recent=0)
    server.script(text("noted"), hang())
    a.prompt("\n".join(f"line {number}" for number in range(40)))
    asked = len(server.requests)
    a.send("compact", preserve_recent=0)
    server.wait_for_requests(asked + 1)
    a.request("abort_compaction")
    server.script(overflow(), text("1,2"), overflow(), text("fine"))
    a.prompt("too long")
    a.prompt("short")


def choose_models(a: Agent) -> None:
    a.request("set_model", provider="fa", modelId="think")
    a.request("set_model", provider="no", modelId="model")
    a.request("set_thinking_level", level="high")
    a.request("cycle_thinking_level")
    a.request("get_available_thinking_levels")
    for name, mode in (("set_steering_mode", "all"), ("set_follow_up_mode", "all")):
        a.request(name, mode=mode)
    for name in ("set_auto_compaction", "set_auto_retry"):
        a.request(name, enabled=True)
    a.request("get_available_models")
    a.request("logout_provider", provider="nobody")
    a.request("cycle_model")


def replace_sessions(a: Agent, root: Path) -> None:
    own = a.request("get_state")["data"]["sessionFile"]
    first = a.request("get_fork_messages")["data"]["messages"][1]["entryId"]
    a.request("fork", entryId=first)
    a.request("clone")
    a.request("new_session", parentSession=own)
    a.request("get_last_assistant_text")
    a.request("switch_session", sessionPath=own)


LIVE = [example for example in (*RESPONSES, *EVENTS) if _is_sent(example)]
LIVE = [each for each in LIVE if not {each["type"], each.get("command")} & {*LATER, "get_tree"}]


@pytest.mark.parametrize("example", LIVE, ids=identity)
def test_what_we_send_has_the_keys_and_types_of_the_example(sent: list[Record], example: Record) -> None:
    sort = ("type", "command", "success")
    alike = [record for record in sent if all(record.get(key) == example.get(key) for key in sort)]
    inner = example.get("assistantMessageEvent", {}).get("type")
    alike = [record for record in alike if inner is None or record["assistantMessageEvent"]["type"] == inner]
    role = example["message"]["role"] if "message" in example else None
    alike = [record for record in alike if role is None or record["message"]["role"] == role]
    assert alike
    assert closest([misfits(example, record, example["type"]) for record in alike]) == []


def test_a_model_and_every_message_that_we_send_are_like_those_of_the_contract(sent: list[Record]) -> None:
    described = next(r["data"] for r in sent if r.get("command") == "set_model" and r["success"])
    assert misfits(MODEL, described, "model") == []
    told = next(record["data"]["messages"] for record in sent if record.get("command") == "get_messages")
    assert misfits(MESSAGES[1:], told, "messages") == []


def test_a_tree_that_we_send_has_the_entries_of_get_entries_in_nodes_like_the_contracts(sent: list[Record]) -> None:
    """Its root is the entry that tells the model, so it cannot be compared as it stands."""
    told = {name: next(r["data"] for r in sent if r.get("command") == name) for name in ("get_tree", "get_entries")}
    nodes = [each for each in objects(told["get_tree"]) if "children" in each]
    assert {frozenset(node) for node in nodes} == {
        frozenset({"entry", "children"}),
        frozenset({"entry", "children", "label", "labelTimestamp"}),
    }
    assert sorted(node["entry"]["id"] for node in nodes) == sorted(e["id"] for e in told["get_entries"]["entries"])
    assert told["get_tree"]["leafId"] == told["get_entries"]["leafId"]
    assert len(told["get_tree"]["tree"]) == 1


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ({"text": "x", "cancelled": True}, []),
        ({"text": "x"}, ["data.cancelled is absent"]),
        ({"text": None, "cancelled": True}, ["text is NoneType, not str"]),
        ({"text": "x", "cancelled": 1}, ["cancelled is number, not bool"]),
        ({"text": "x", "cancelled": True, "more": 1}, ["data.more is not in the example"]),
    ],
)
def test_a_missing_key_another_type_and_a_key_too_many_are_misfits(told: Record, wrong: list[str]) -> None:
    assert misfits({"text": "good morning", "cancelled": False}, told, "data") == wrong


def test_every_line_of_the_session_files_is_as_the_schema_says(tour: tuple[list[Record], list[Path]]) -> None:
    lines = [json.loads(line) for file in tour[1] for line in file.read_text(encoding="utf-8").splitlines()]
    assert {"session", "message", "model_change", "thinking_level_change", "branch_summary", "session_info"} <= {
        line["type"] for line in lines
    }
    assert [(line, faults) for line in lines if (faults := check_of("SessionLine")(line))] == []
