"""Goes through what pi-agent-python-sdk offers. Usage: python pi_agent_client.py < {given}."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from pi_agent import AsyncPiClient, PiClient, PiCommandError, PiRunError, PiVersionError

Facts = dict[str, Any]


async def refused(asked: Any) -> str | None:
    try:
        await asked
    except PiCommandError as error:
        return error.error
    return None


async def talk(client: AsyncPiClient, facts: Facts, cwd: Path) -> None:
    result = await client.run("SAY hello there", timeout=20)
    facts["prompt"] = {"text": result.text, "stop": result.stop_reason, "file": result.session.session_file is not None}
    async with client.stream('TOOL bash {"command": "echo from the tool"}\nSAY tool done', timeout=20) as run:
        events = [event async for event in run]
        tool_run = await run.result()
    (end,) = (event.raw for event in events if event.type == "tool_execution_end")
    facts["tool"] = {"text": tool_run.text, "result": end["result"]["content"][0]["text"]}
    facts["deltas"] = "".join(event.text_delta or "" for event in events)

    blocked = 'TOOL bash {"command": "until [ -e go ]; do sleep 0.02; done"}\nSAY not steered'
    async with client.stream(blocked, timeout=20) as run:
        async for event in run:
            if event.type == "tool_execution_start":
                await client.steer("SAY steered")
                await client.follow_up("SAY followed")
                (cwd / "go").touch()
        replies = [message for message in (await run.result()).messages if message["role"] == "assistant"]
    facts["queue"] = [reply["content"][0]["text"] for reply in replies[-2:]]

    async with client.stream("HANG half an answer", timeout=20) as run:
        async for event in run:
            if event.text_delta:
                await client.abort()
        try:
            await run.result()
        except PiRunError as error:
            facts["abort"] = {"stopReason": error.result.stop_reason, "text": error.result.text}
    facts["retry"] = (await client.run("ERR 529 x1 Overloaded\nSAY recovered", timeout=20)).text
    async with client.stream("HANG to be left", timeout=20) as run:
        async for event in run:
            if event.text_delta:
                break  # leaving the context clears the queue and aborts
    facts["left"] = (await client.get_state())["isStreaming"]


async def work(client: AsyncPiClient, facts: Facts, cwd: Path) -> None:
    facts["bash"] = await client.bash("echo out; echo err >&2; exit 3")
    async with client.events() as events:
        long = asyncio.create_task(client.bash("echo begun; sleep 60", exclude_from_context=True))
        async for event in events:
            if event.type == "bash_execution_update":
                break
        await client.abort_bash()
    facts["abortBash"] = await long
    facts["stats"] = await client.get_session_stats()
    facts["export"] = Path((await client.export_html(output_path=str(cwd / "page.html")))["path"]).exists()
    facts["models"] = [model["id"] for model in await client.get_available_models()]
    facts["setModel"] = (await client.set_model("fa", "m2"))["id"]
    facts["cycleModel"] = (await client.cycle_model())["model"]["id"]
    facts["noModel"] = await refused(client.set_model("fa", "nothing"))
    await client.set_thinking_level("high")
    facts["cycleThinking"] = await client.cycle_thinking_level()
    facts["levels"] = await client.get_available_thinking_levels()
    await client.set_steering_mode("all")
    await client.set_follow_up_mode("all")
    await client.set_auto_retry(True)
    await client.abort_retry()
    await client.set_auto_compaction(True)
    facts["clearQueue"] = await client.clear_queue()
    facts["commands"] = await client.get_commands()
    facts["entries"] = len((await client.get_entries())["entries"])
    facts["tree"] = len((await client.get_tree())["tree"])
    facts["last"] = await client.get_last_assistant_text()
    await client.set_session_name("named")


async def travel(client: AsyncPiClient, facts: Facts) -> None:
    first = await client.get_state()
    facts["name"] = first["sessionName"]
    (message, *_) = await client.get_fork_messages()
    facts["fork"] = await client.fork(message["entryId"])
    facts["forkedAway"] = (await client.get_state())["sessionFile"] != first["sessionFile"]
    facts["switched"] = await client.switch_session(first["sessionFile"])
    facts["clone"] = await client.clone()
    facts["new"] = await client.new_session()
    facts["empty"] = len(await client.get_messages())


async def play(given: Any, facts: Facts) -> None:
    chosen = {"executable": given["pi"], "cwd": given["cwd"], "extra_args": given["args"]}
    try:
        await AsyncPiClient(**chosen).start()
    except PiVersionError as error:
        facts["version"] = str(error)
    client = AsyncPiClient(**chosen, allow_unknown_version=True)
    await client.start()
    await talk(client, facts, Path(given["cwd"]))
    await work(client, facts, Path(given["cwd"]))
    await travel(client, facts)
    begun = time.monotonic()
    await client.aclose()
    facts["stop"] = time.monotonic() - begun


def main() -> None:
    given, facts = json.load(sys.stdin), {}
    asyncio.run(play(given, facts))
    blocking = PiClient(executable=given["pi"], cwd=given["cwd"], allow_unknown_version=True, no_session=True)
    with blocking as client:
        facts["sync"] = client.run("SAY in step").text
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
