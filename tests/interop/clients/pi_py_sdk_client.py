"""Goes through what pi-py-sdk offers. Usage: python pi_py_sdk_client.py < {given}."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from pi_py_sdk import PiAgent, PiAgentSync, PiCommandError, PiConfig
from pi_py_sdk.protocol import AgentEndEvent, message_text

Facts = dict[str, Any]


async def refused(asked: Any) -> str | None:
    try:
        await asked
    except PiCommandError as error:
        return str(error)
    return None


async def until(agent: PiAgent, kind: str, then: Any, asked: Any) -> None:
    """Sends `asked`; at the first event of `kind` does `then`; waits until the agent has settled."""
    seen, settled = asyncio.Event(), asyncio.Event()

    def look(event: Any) -> None:
        if event.type == kind:
            seen.set()
        if event.type == "agent_settled":
            settled.set()

    stop = agent.subscribe(look)
    await asked
    await seen.wait()
    await then()
    await settled.wait()
    stop()


async def talk(agent: PiAgent, facts: Facts, cwd: Path) -> None:
    events = await agent.prompt_and_wait("SAY hello there")
    facts["prompt"] = await agent.get_last_assistant_text()
    facts["deltas"] = "".join(
        event.assistantMessageEvent.delta or ""
        for event in events
        if event.type == "message_update" and event.assistantMessageEvent.type == "text_delta"
    )
    events = await agent.prompt_and_wait('TOOL bash {"command": "echo from the tool"}\nSAY tool done')
    (result,) = (event.result for event in events if event.type == "tool_execution_end")
    facts["tool"] = {"text": await agent.get_last_assistant_text(), "result": message_text(result)}

    async def steer() -> None:
        await agent.steer("SAY steered")
        await agent.follow_up("SAY followed")
        (cwd / "go").touch()

    blocked = 'TOOL bash {"command": "until [ -e go ]; do sleep 0.02; done"}\nSAY not steered'
    await until(agent, "tool_execution_start", steer, agent.prompt(blocked))
    texts = [message_text(message) for message in await agent.get_messages() if message.role == "assistant"]
    facts["queue"] = texts[-2:]
    await until(agent, "message_update", agent.abort, agent.prompt("HANG half an answer"))
    aborted = (await agent.get_messages())[-1]
    facts["abort"] = {"stopReason": aborted.stopReason, "text": message_text(aborted)}
    events = await agent.prompt_and_wait("ERR 529 x1 Overloaded\nSAY recovered", timeout=20)
    facts["retry"] = {
        "text": await agent.get_last_assistant_text(),
        "willRetry": [event.willRetry for event in events if isinstance(event, AgentEndEvent)],
    }


async def work(agent: PiAgent, facts: Facts, cwd: Path) -> None:
    facts["bash"] = await agent.bash("echo out; echo err >&2; exit 3")
    long = asyncio.create_task(agent.bash("sleep 60", exclude_from_context=True))
    await asyncio.sleep(0)  # lets the task write its command before the next one is written
    await agent.abort_bash()
    facts["abortBash"] = await long
    facts["stats"] = await agent.get_session_stats()
    facts["export"] = Path((await agent.export_html(str(cwd / "page.html")))["path"]).exists()
    facts["models"] = [model["id"] for model in await agent.get_available_models()]
    facts["setModel"] = (await agent.set_model("fa", "m2"))["id"]
    facts["cycleModel"] = (await agent.cycle_model())["model"]["id"]
    facts["noModel"] = await refused(agent.set_model("fa", "nothing"))
    await agent.set_thinking_level("high")
    facts["cycleThinking"] = await agent.cycle_thinking_level()
    await agent.set_steering_mode("all")
    await agent.set_follow_up_mode("all")
    await agent.set_auto_retry(True)
    await agent.abort_retry()
    await agent.set_auto_compaction(True)
    facts["commands"] = await agent.get_commands()
    await agent.set_session_name("named")


async def travel(agent: PiAgent, facts: Facts) -> None:
    first = await agent.get_state()
    facts["name"] = first["sessionName"]
    (message, *_) = await agent.get_fork_messages()
    facts["fork"] = await agent.fork(message["entryId"])
    facts["forkedAway"] = (await agent.get_state())["sessionFile"] != first["sessionFile"]
    facts["switched"] = await agent.switch_session(first["sessionFile"])
    facts["clone"] = await agent.clone()
    facts["new"] = await agent.new_session()
    facts["empty"] = len(await agent.get_messages())


async def play(config: PiConfig, facts: Facts, cwd: Path) -> None:
    agent = PiAgent(config=config)
    await agent.start()
    await talk(agent, facts, cwd)
    await work(agent, facts, cwd)
    await travel(agent, facts)
    begun = time.monotonic()
    await agent.stop()
    facts["stop"] = time.monotonic() - begun


def main() -> None:
    given, facts = json.load(sys.stdin), {}
    config = PiConfig(bin=given["pi"], cwd=given["cwd"], extra_args=given["args"])
    asyncio.run(play(config, facts, Path(given["cwd"])))
    with PiAgentSync(agent=PiAgent(config=config)) as agent:
        facts["sync"] = [event.type for event in agent.prompt_stream("SAY in step")][-1]
        facts["syncText"] = agent.get_last_assistant_text()
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
