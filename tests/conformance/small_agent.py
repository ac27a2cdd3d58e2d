"""A tiny program that speaks enough of the protocol to be tested, and breaks it in the one way that its argument names.

Not a test: the tests of the kit start it. Without an argument it does everything right.
"""

import json
import subprocess
import sys
import time

FAULT = next((word.partition("=")[2] for word in sys.argv if word.startswith("--break=")), "")


def put(record):
    text = json.dumps(record)
    if FAULT == "cut-line" and record.get("type") == "agent_end":
        text = text[:-5]
    if FAULT == "wrong-type" and record.get("type") == "agent_settled":
        text = '{"type": 5}'
    if record.get("type") == FAULT:
        return  # a dropped record
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    if f"double-{record.get('type')}" == FAULT:
        sys.stdout.write(text + "\n")


def respond(command, **fields):
    id_ = {"id": command["id"]} if "id" in command else {}
    if FAULT == "wrong-id":
        id_ = {"id": "another"}
    name = "other" if FAULT == "wrong-command" else command.get("type")
    record = {**id_, "type": "response", "command": name, "success": True, **fields}
    if FAULT == "no-success":
        del record["success"]
    if f"silent-{command.get('type')}" != FAULT:
        put(record)


def message(role, text, **more):
    return {"role": role, "content": [{"type": "text", "text": text}], **more}


def run(command):
    respond(command)
    put({"type": "agent_start"})
    put({"type": "turn_start"})
    user = message("user", command["message"])
    put({"type": "message_start", "message": user})
    put({"type": "message_end", "message": user})
    put({"type": "message_start", "message": {"role": "assistant", "content": []}})
    deltas = ["lo", "Hel"] if FAULT == "swapped-deltas" else ["Hel", "lo"]
    for delta in deltas:
        event = {"type": "text_delta", "contentIndex": 0, "delta": delta}
        put({"type": "message_update", "assistantMessageEvent": event})
    answer = message("assistant", "Hello", stopReason="stop")
    put({"type": "message_end", "message": answer})
    put({"type": "turn_end", "message": answer, "toolResults": []})
    put({"type": "agent_end", "messages": [user, answer]})
    put({"type": "agent_settled"})
    if FAULT == "late-event":
        put({"type": "turn_end", "message": answer, "toolResults": []})


def bash(command):
    delta = {"type": "bash_execution_update", "id": command["id"], "channel": "stdout", "delta": "out\n"}
    output = "" if FAULT == "lost-output" else "out\n"
    if FAULT != "late-delta":
        put(delta)
    respond(command, data={"output": output, "exitCode": 0, "cancelled": False, "truncated": False})
    if FAULT == "late-delta":
        put(delta)


def main():
    if FAULT == "unknown-flag":
        sys.exit("error: unknown flag --session-dir")
    if FAULT == "leaves-a-child":
        subprocess.Popen(
            ["sleep", "300"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    if FAULT == "banner":
        print("welcome", flush=True)
    for line in sys.stdin:
        try:
            command = json.loads(line)
        except ValueError:
            put({"type": "response", "command": "parse", "success": False, "error": "Failed to parse command: no"})
            continue
        kind = command.get("type")
        if kind == "prompt":
            run(command)
        elif kind == "bash" and FAULT != "no-bash":
            bash(command)
        elif kind == "get_state":
            respond(command, data={"isStreaming": False, "messageCount": 0})
        else:
            respond(command, success=FAULT == "errors-succeed", error=f"Unknown command: {kind}")
    if FAULT == "deaf":
        time.sleep(60)
    sys.exit(3 if FAULT == "exit-3" else 0)


main()
