"""Every command of the contract can be called, from both faces, and is sent as the contract has it."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from conformance.client import AsyncRpcClient, ProtocolError, RpcClient, calls
from conformance.client.methods import Methods
from conformance.client.records import Response
from protocol.codec import encode, read_command
from protocol.commands import COMMAND_NAMES, REPLIES, command_name

ROOT = Path(__file__).resolve().parents[3]
CALLED = sorted(COMMAND_NAMES - REPLIES)

# Arguments for what has no default, by the name of the parameter.
GIVEN: dict[str, Any] = {
    "mode": "all",
    "enabled": True,
    "level": "high",
    "columns": 100,
    "rows": 30,
    "credential": {"type": "api_key", "key": "k"},
}


def example(name: str) -> calls.Call[Any]:
    make = getattr(calls, name)
    needed = [each for each in inspect.signature(make).parameters.values() if each.default is each.empty]
    return make(**{each.name: GIVEN.get(each.name, "x") for each in needed})  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", CALLED)
def test_a_call_sends_the_command_of_its_name_and_is_read_back_as_it_was(name: str) -> None:
    command = example(name).command
    assert command_name(command) == name
    assert read_command(encode(command)) == command


@pytest.mark.parametrize("face", [RpcClient, AsyncRpcClient])
def test_both_faces_have_a_method_for_every_command(face: type) -> None:
    assert [name for name in CALLED if not hasattr(face, name)] == []


def test_a_method_is_documented_and_takes_what_its_call_takes() -> None:
    assert Methods.get_entries.__doc__ == calls.get_entries.__doc__

    class Face(Methods):
        def call(self, call: calls.Call[Any]) -> Any:
            return call.command

    assert encode(Face().get_entries("e")) == b'{"type":"get_entries","since":"e"}'
    assert inspect.signature(Face().get_entries) == inspect.signature(calls.get_entries)


def test_a_type_checker_sees_parameters_and_results_of_both_faces(tmp_path: Path) -> None:
    program = tmp_path / "typed.py"
    program.write_text(
        "from typing import assert_type\n"
        "from conformance.client import AsyncRpcClient, RpcClient\n"
        "from protocol.responses import CycledModel\n"
        "from protocol.state import SessionState\n"
        "def blocking(client: RpcClient) -> None:\n"
        "    assert_type(client.get_state(), SessionState)\n"
        "    assert_type(client.within(1).get_state(), SessionState)\n"
        "    assert_type(client.cycle_model('backward', persist=True), CycledModel | None)\n"
        "    client.set_model('p')  # E: missing\n"
        "async def on_asyncio(client: AsyncRpcClient) -> None:\n"
        "    assert_type(await client.get_state(), SessionState)\n"
        "    assert_type(await client.within(1).get_state(), SessionState)\n"
        "    await client.set_steering_mode('both')  # E: literal\n"
    )
    run = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(program)]
    told = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    errors = [said for said in told.splitlines() if ": error:" in said]
    assert [said.split(":")[1] for said in errors] == ["9", "13"], told


def test_a_tree_of_thousands_of_levels_is_read_without_recursion() -> None:
    depth = 5000
    tree = b'{"children":[' * depth + b'{"entry":{"id":"last","type":"message"},"children":[]}'
    tree += b'],"entry":{"id":"e","type":"message"},"label":"l"}' * depth
    response = Response(True, data=Raw(b'{"tree":[' + tree + b'],"leafId":"last"}'))
    found = calls.get_tree().read(response)
    (node,) = found.roots
    steps = 0
    while node.children:
        assert node.label == "l"
        (node,) = node.children
        steps += 1
    assert (steps, node.entry["id"], found.leaf_id) == (depth, "last", "last")
    assert repr(found.roots[0]) == "TreeNode('message' 'e', 1 children)"
    with pytest.raises(ProtocolError):
        calls.get_tree().read(Response(True, data=Raw(b'{"tree":[5]}')))


def test_a_login_is_read_as_what_it_came_to() -> None:
    def read(**data: Any) -> Any:
        return calls.login_provider("p").read(Response(True, data=Raw(json.dumps(data).encode())))

    assert read(provider="p", cancelled=True).cancelled
    assert read(provider="p", cancelled=False, type="api_key", models=[]).type == "api_key"


def test_the_client_needs_no_more_than_msgspec() -> None:
    program = (
        "import sys\n"
        "class Only:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        top = name.partition('.')[0]\n"
        "        if top not in sys.stdlib_module_names | {'msgspec', 'protocol', 'conformance'}:\n"
        "            raise ImportError(name + ' is not there')\n"
        "sys.meta_path.insert(0, Only())\n"
        "import conformance.client\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'pykka', 'httpx2', 'actors', 'runtime'}))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("[]\n", "")
