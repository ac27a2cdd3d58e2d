"""The pages as somebody uses them: keys, live changes, and what stays where it is meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.inspector.detail_page import DetailPage
from runtime.inspector.input_page import InputPage
from runtime.inspector.list_page import ListPage
from runtime.inspector.transcript_page import TranscriptPage
from tests.runtime.inspector.screen import Screen, inspect
from tests.runtime.inspector.scripted_door import ScriptedDoor, agent, entry, settled, task

ASKING = {"state": "inputNeeded", "attention": {"kind": "input-needed", "requestIds": ["q1"]}}
CHOICE = {"type": "single", "question": "Take", "options": ["this", "that"]}
QUESTION = {"requestId": "q1", "reason": "interview_request", "message": "Which one?", "questions": [CHOICE]}


@pytest.fixture
def many(door: ScriptedDoor) -> Iterator[ScriptedDoor]:
    """Thirty agents and two commands."""
    door.put(*(agent(f"t{number}", title=f"job {number}") for number in range(1, 31)))
    door.put(task("t31", title="make"), task("t32", title="python3", acceptsInput=True))
    yield door


# ---- the list


def test_the_list_shows_groups_facts_and_controls_and_escape_leaves(door: ScriptedDoor) -> None:
    door.put(agent("t1", title="find it"), task("t2", title="make", **settled("completed", exitCode=0)))

    async def work(screen: Screen) -> None:
        await screen.shows(
            "Agents 1   1 running", "Shells 1   1 completed", "scout · find it", "fa/m · thinking medium"
        )
        assert screen.selected.startswith(" ▸ ● Running")
        await screen.until(lambda: screen.lines[-1] == " ↑↓ select   Enter open   x stop   Esc leave")
        assert "fa/m · thinking medium   " in screen.lines[-2]
        await screen.press("down")
        await screen.until(lambda: screen.selected.startswith(" ▸ ✓ Completed"))
        assert "x stop" not in screen.lines[-1]
        await screen.press("escape")

    assert inspect(door, work).return_code == 0


@pytest.mark.parametrize("keys", [("escape",), ("ctrl+c",), ("enter", "ctrl+c"), ("x", "ctrl+c"), ()])
def test_whoever_leaves_lets_go_of_the_connection(door: ScriptedDoor, keys: tuple[str, ...]) -> None:
    """And not only when the memory of the program is cleared away, or the process ends."""
    door.put(task("t1", title="make"))

    async def work(screen: Screen) -> None:
        await screen.shows("make")
        await screen.press(*keys)

    app = inspect(door, work)
    door.wait_until_left(door.visits)
    assert app.inspection is None


def test_what_arrives_does_not_move_the_selection(many: ScriptedDoor) -> None:
    async def work(screen: Screen) -> None:
        await screen.shows("Agents 30")
        await screen.press("end")
        await screen.until(lambda: "python3" in screen.selected)
        row = screen.lines.index(screen.selected)
        many.put(*(agent(f"t{number}", title=f"job {number}") for number in range(40, 45)))
        await screen.until(lambda: "python3" in screen.selected and "5 more" not in screen.text)
        many.put(agent("t1", title="job 1", **settled("completed")), task("t31", title="changed"))
        await screen.shows("changed")
        assert "python3" in screen.selected
        assert screen.lines.index(screen.selected) == row
        await screen.press("home")
        await screen.shows("Agents 35", "1 completed")
        assert "job 1" in screen.selected

    inspect(many, work)


def test_what_was_not_chosen_follows_what_needs_somebody_and_what_was_does_not(door: ScriptedDoor) -> None:
    door.put(agent("t1", title="one"), agent("t2", title="two"))

    async def work(screen: Screen) -> None:
        await screen.shows("two")
        assert "one" in screen.selected
        door.put(agent("t2", title="two", **ASKING))
        await screen.until(lambda: "two" in screen.selected)
        await screen.press("up")
        await screen.until(lambda: "one" in screen.selected)
        door.put(agent("t1", title="one", **settled("completed")))
        await screen.shows("1 completed")
        assert "one" in screen.selected

    inspect(door, work)


# ---- details


def test_details_are_pinned_above_a_body_that_scrolls(door: ScriptedDoor) -> None:
    door.put(agent("t1", title="find it", metrics={"elapsedMs": 9000, "toolCount": 0}))
    door.details["t1"] = {"prompt": "\n".join(f"prompt {number}" for number in range(60))}

    async def work(screen: Screen) -> None:
        await screen.shows("find it")
        await screen.press("enter")
        await screen.shows("0 tools", " ▸ Transcript", "prompt 3")
        head = screen.lines[:7]
        await screen.press("pagedown")
        await screen.shows("prompt 14", "of 64")
        assert screen.lines[0] == head[0] and " ▸ Transcript" in screen.text
        await screen.press("end")
        await screen.shows("prompt 59")
        await screen.press("pageup", "home", "down", "down", "down")
        await screen.shows("prompt 0", " ▸ Back")
        await screen.press("enter")
        await screen.shows("Agents 1")

    inspect(door, work)


def test_details_follow_the_task_and_the_output_of_a_command(door: ScriptedDoor) -> None:
    door.put(task("t1", title="make"))
    door.details["t1"] = {"command": "make all", "tail": "first line"}

    async def work(screen: Screen) -> None:
        await screen.shows("make")
        await screen.press("enter")
        await screen.shows("first line", "   Stop")
        door.details["t1"] = {"command": "make all", "tail": "last line"}
        door.put(task("t1", title="make", **{**settled("completed", exitCode=2), "state": "failed"}))
        await screen.shows("last line", "✗ Failed", "Exit code 2")
        assert "   Stop" not in screen.text and "x stop" not in screen.text

    inspect(door, work)


@pytest.mark.parametrize("key", ["left", "escape"])
def test_left_and_escape_lead_back_step_by_step(door: ScriptedDoor, key: str) -> None:
    door.put(agent("t1", title="find it"))

    async def work(screen: Screen) -> None:
        await screen.shows("find it")
        await screen.press("enter")
        await screen.shows(" ▸ Transcript")
        await screen.press("enter")
        await screen.shows(" Transcript  scout")
        await screen.press(key)
        await screen.shows(" ▸ Transcript")
        await screen.press(key)
        await screen.shows("Agents 1")

    inspect(door, work)


# ---- the transcript


@pytest.fixture
def talker(door: ScriptedDoor) -> ScriptedDoor:
    """An agent that has said 120 things."""
    door.put(agent("t1", title="find it"))
    door.entries["t1"] = [entry(index, "assistant", f"word {index}.") for index in range(120)]
    return door


async def open_transcript(screen: Screen) -> None:
    await screen.shows("find it")
    await screen.press("enter")
    await screen.shows("Latest response")
    await screen.press("enter")
    await screen.shows("lines ")


def test_earlier_pages_come_at_the_top_and_nothing_jumps(talker: ScriptedDoor) -> None:
    async def work(screen: Screen) -> None:
        await open_transcript(screen)
        await screen.shows("word 119.")
        assert "word 71." not in screen.text
        await screen.press("home")
        await screen.shows("70 earlier entries", "word 70.")
        seen = screen.lines[4:12]
        await screen.press("pageup")
        await screen.until(lambda: "70 earlier entries" not in screen.text)
        assert screen.lines[4:12] == seen  # only the label above them has gone
        await screen.press("pageup")
        await screen.shows("word 69.")
        await screen.press("home")
        await screen.shows("20 earlier entries", "word 20.")
        await screen.press("pageup")
        await screen.until(lambda: "20 earlier entries" not in screen.text)
        await screen.press("home")
        await screen.shows("word 0.")
        assert "earlier entries" not in screen.text

    inspect(talker, work)
    pages = [request["transcript"] for request in talker.asked if "transcript" in request and "taskId" in request]
    assert [page for page in pages if "before" in page] == [{"before": 70, "limit": 50}, {"before": 20, "limit": 50}]


def test_the_end_is_followed_until_somebody_reads_earlier_lines(talker: ScriptedDoor) -> None:
    def told(index: int, **fields: Any) -> dict[str, Any]:
        entries = [entry(index, "assistant", f"word {index}.")]
        return {"type": "task_transcript", "taskId": "t1", "first": index, "entries": entries, **fields}

    async def work(screen: Screen) -> None:
        await open_transcript(screen)
        talker.say(told(120))
        await screen.shows("word 120.")
        talker.say(told(121, live=entry(122, "assistant", "half a")))
        await screen.shows("half a", " Agent …")
        await screen.press("pageup", "up")
        await screen.shows("more below")
        seen = screen.lines[2:-3]
        talker.say(told(122))
        talker.say({**told(123), "taskId": "another"})
        await screen.until(lambda: "of 156" not in screen.text)
        assert screen.lines[2:-3] == seen
        await screen.press("end")
        await screen.shows("word 122.")
        assert "half a" not in screen.text and "more below" not in screen.text
        talker.say(told(123))
        await screen.shows("word 123.")

    inspect(talker, work)
    subscriptions = talker.wait_for("set_task_subscription", 2)
    assert [request.get("transcript") for request in subscriptions[:2]] == [None, "t1"]


def test_a_hole_is_filled_by_itself(talker: ScriptedDoor) -> None:
    async def work(screen: Screen) -> None:
        await open_transcript(screen)
        talker.entries["t1"] = [entry(index, "assistant", f"word {index}.") for index in range(131)]
        last = talker.entries["t1"][-1]
        talker.say({"type": "task_transcript", "taskId": "t1", "first": 130, "entries": [last]})
        await screen.shows("word 130.", "word 129.", "word 128.")

    inspect(talker, work)


def test_the_output_of_a_command_has_a_view_of_its_own(door: ScriptedDoor) -> None:
    output = {"ownerId": "o", "taskId": "t1", "artifactId": "a", "byteCount": "20480"}
    door.put(task("t1", title="make", output=output))
    door.details["t1"] = {"tail": "\n".join(f"line {number}" for number in range(100))}

    async def work(screen: Screen) -> None:
        await screen.shows("make")
        await screen.press("enter")
        await screen.shows("line 99")
        await screen.press("enter")
        await screen.shows("lines 84-101 of 101", "line 99")
        await screen.press("home")
        await screen.shows("[The last 8 KiB of 20,480 bytes]", "line 0", "more below")

    inspect(door, work)


# ---- stopping


def test_x_asks_and_only_y_stops(door: ScriptedDoor) -> None:
    door.put(agent("t1", title="find it"))

    async def work(screen: Screen) -> None:
        await screen.shows("find it")
        for key in ("n", "escape", "left"):
            await screen.press("x")
            await screen.shows("Stop this agent?", "y stop it   n/Esc keep it running")
            await screen.press("x", "enter", key)
            await screen.shows("Agents 1")
        assert [request["type"] for request in door.asked if request["type"] == "cancel_task"] == []
        await screen.press("enter")
        await screen.shows(" ▸ Transcript")
        await screen.press("x")
        await screen.shows("Stop this agent?")
        await screen.press("y")
        await screen.shows("The stop was asked for.", " ▸ Transcript")
        door.put(agent("t1", title="find it", state="stopping", execution={"kind": "cancelling", "cause": "user"}))
        await screen.shows("◌ Stopping")
        assert "   Stop\n" not in screen.text

    inspect(door, work)
    (cancelled,) = door.wait_for("cancel_task")
    assert cancelled["taskId"] == "t1"


def test_what_has_ended_meanwhile_is_not_stopped(door: ScriptedDoor) -> None:
    door.put(task("t1", title="make"))

    async def work(screen: Screen) -> None:
        await screen.shows("make")
        await screen.press("x")
        await screen.shows("Stop this command?")
        door.put(task("t1", title="make", **settled("completed", exitCode=0)))
        await screen.shows("It cannot be stopped any more.")
        await screen.press("y", "escape")
        await screen.shows("Shells 1")
        await screen.press("x")
        await screen.shows("✓ Completed")

    inspect(door, work)
    assert [request["type"] for request in door.asked if request["type"] == "cancel_task"] == []


def test_a_refusal_is_told_on_the_screen(door: ScriptedDoor) -> None:
    door.put(task("t1", title="make"))
    refused = {"success": False, "error": "TaskTerminal: \x1b[31mit is over"}
    door.answer = lambda request: refused if request["type"] == "cancel_task" else None

    async def work(screen: Screen) -> None:
        await screen.shows("make")
        await screen.press("x")
        await screen.shows("Stop this command?")
        await screen.press("y")
        await screen.shows("TaskTerminal: it is over")
        await screen.press("down")
        await screen.hides("TaskTerminal")

    inspect(door, work)


# ---- input


def test_a_line_for_a_terminal_is_typed_as_it_stands_x_and_left_included(door: ScriptedDoor) -> None:
    door.put(task("t1", title="python3", acceptsInput=True))
    door.details["t1"] = {"tail": ">>> "}

    async def work(screen: Screen) -> None:
        await screen.shows("python3")
        await screen.press("enter")
        await screen.shows("   Input")
        await screen.press("down", "enter")
        await screen.shows("Enter send   Esc leave input")
        await screen.press("x", "y", "left", "n", "enter")
        await screen.shows("Sent.", "> ")
        await screen.press("enter", "escape")
        await screen.shows(" ▸ Input")

    inspect(door, work)
    assert [request["input"] for request in door.wait_for("send_task_input", 2)] == ["xny\n", "\n"]


@pytest.mark.parametrize(("typed", "sent"), [("2", "that"), ("no", "no")])
def test_an_open_question_is_answered(door: ScriptedDoor, typed: str, sent: str) -> None:
    door.put(agent("t1", title="find it", **ASKING))
    door.details["t1"] = {"questions": [QUESTION]}

    async def work(screen: Screen) -> None:
        await screen.shows("? Input needed")
        await screen.press("enter")
        await screen.shows(" ▸ Open question", "Which one?")
        await screen.press("enter")
        await screen.shows("1. this", "2. that")
        await screen.press("enter")  # nothing typed is no answer
        await screen.press(*typed, "enter")
        await screen.shows("Answered.", "Stop")

    inspect(door, work)
    (answer,) = door.wait_for("send_task_input")
    assert (answer["taskId"], answer["requestId"], answer["input"]) == ("t1", "q1", sent)


def test_a_long_question_is_scrolled_to_its_numbered_options(door: ScriptedDoor) -> None:
    options = {"type": "multi", "question": "Take", "options": ["red", "green", "blue"]}
    door.put(agent("t1", title="find it", **ASKING))
    door.details["t1"] = {"questions": [{**QUESTION, "message": "word " * 200, "questions": [options]}]}

    async def work(screen: Screen) -> None:
        await screen.shows("1 input needed")
        await screen.press("enter")
        await screen.shows(" ▸ Open question")
        await screen.press("enter")
        await screen.shows("PgUp/Dn", "Esc leave input")
        assert "red" not in screen.text
        for _ in range(40):
            await screen.press("pagedown")
        await screen.shows("Numbers choose", "3. blue")
        await screen.press("1", ",", "3")
        await screen.shows("> 1,3", "3. blue")
        await screen.press("pageup", "pageup")
        await screen.hides("3. blue")
        await screen.press("enter")
        await screen.shows(" ▸ ")

    inspect(door, work, size=(40, 12))
    (answer,) = door.wait_for("send_task_input")
    assert answer["input"] == "red, blue"


@pytest.mark.parametrize("is_answer", [False, True])
def test_what_is_typed_stays_when_it_cannot_be_sent(door: ScriptedDoor, is_answer: bool) -> None:
    door.put(agent("t1", title="it", **ASKING) if is_answer else task("t1", title="it", acceptsInput=True))
    door.details["t1"] = {"questions": [QUESTION]} if is_answer else {"tail": ">>> "}

    async def work(screen: Screen) -> None:
        await screen.shows(" it")
        await screen.press("enter")
        await screen.shows("Open question" if is_answer else "   Input")
        await screen.press(*(["enter"] if is_answer else ["down", "enter"]))
        await screen.shows("Esc leave input")
        await screen.press("r", "x")
        door.hang_up()
        await screen.shows("The connection is lost", "Esc, then r connects again.")
        await screen.press("enter")
        await screen.shows("Not sent: The connection is lost", "> rx")
        door.end()
        await screen.until(lambda: screen.app.inspection.board.state == "ended")
        await screen.press("enter")
        await screen.shows(f"Not sent: The program (pid {door.pid}) has ended.", "> rx")
        await screen.press("escape")
        await screen.shows(f" The program (pid {door.pid}) has ended.")

    inspect(door, work)
    assert [request for request in door.asked if request["type"] == "send_task_input"] == []


def test_a_line_that_is_refused_comes_back(door: ScriptedDoor) -> None:
    door.put(task("t1", title="it", acceptsInput=True))
    refused = {"success": False, "error": "it is over"}
    door.answer = lambda request: refused if request["type"] == "send_task_input" else None

    async def work(screen: Screen) -> None:
        await screen.shows(" it")
        await screen.press("enter")
        await screen.shows("   Input")
        await screen.press("down", "enter")
        await screen.shows("Esc leave input")
        await screen.press("a", "b", "enter")
        await screen.shows("Not sent: it is over", "> ab")

    inspect(door, work)


# ---- the end of the connection


def test_the_question_before_a_stop_leads_to_the_session_that_came_instead(door: ScriptedDoor) -> None:
    door.put(task("t1", title="make"))

    async def work(screen: Screen) -> None:
        await screen.shows("make")
        await screen.press("x")
        await screen.shows("Stop this command?")
        door.tasks = {}
        door.say({"type": "inspector_session", "sessionId": "0200", "cwd": "/next", "sessionName": "the next one"})
        door.put(task("t9", title="its command"))
        await screen.shows("r shows the tasks of that one", "It cannot be stopped any more.")
        await screen.press("r")
        await screen.shows("Shells 1", "its command")

    inspect(door, work)


def test_a_program_that_ends_leaves_a_list_that_can_be_read(talker: ScriptedDoor) -> None:
    async def work(screen: Screen) -> None:
        await screen.shows("find it")
        talker.end()
        await screen.shows("has ended. This is how its tasks stood last.", "● Running")
        assert "x stop" not in screen.text
        await screen.press("x", "enter")
        await screen.shows("has ended", " ▸ Transcript")
        await screen.press("r", "left")
        await screen.shows("Agents 1", "has ended")

    assert inspect(talker, work).failure is None


def test_a_connection_that_is_lost_can_be_made_again(talker: ScriptedDoor) -> None:
    async def work(screen: Screen) -> None:
        await open_transcript(screen)
        talker.hang_up()
        await screen.shows("The connection is lost", "word 119.")
        talker.entries["t1"].append(entry(120, "assistant", "word 120."))
        await screen.press("r")
        await screen.hides("The connection is lost")
        last = talker.entries["t1"][-1]
        talker.say({"type": "task_transcript", "taskId": "t1", "first": 120, "entries": [last]})
        await screen.shows("word 120.")

    inspect(talker, work)


def test_a_session_that_is_replaced_stays_readable_until_its_successor_is_asked_for(talker: ScriptedDoor) -> None:
    async def work(screen: Screen) -> None:
        await open_transcript(screen)
        talker.tasks = {}
        talker.say({"type": "inspector_session", "sessionId": "0200", "cwd": "/next", "sessionName": "the next one"})
        talker.put(task("t9", title="its command"))
        await screen.shows("This session was replaced by the next one", "word 119.")
        await screen.press("escape", "escape")
        await screen.shows("Agents 1", "find it")
        assert "its command" not in screen.text
        await screen.press("r")
        await screen.shows("Shells 1", "its command", "the next one", "/next")
        assert "find it" not in screen.text and "replaced" not in screen.text

    inspect(talker, work)


@pytest.mark.parametrize("pages", [1, 2])
def test_what_the_session_that_was_left_refuses_does_not_hide_that_it_was_replaced(
    talker: ScriptedDoor, pages: int
) -> None:
    """Its last update makes the inspector ask for details, which come too late."""
    refused = {"success": False, "error": "UnknownTask: UnknownTask"}

    async def work(screen: Screen) -> None:
        await screen.shows("find it")
        await screen.press(*["enter"] * pages)
        await screen.shows("x stop")
        talker.answer = lambda request: refused if request["type"] == "get_task" else None
        talker.put(agent("t1", title="find it", state="stopping"))
        await screen.shows("◌ Stopping", "UnknownTask: UnknownTask")
        talker.say({"type": "inspector_session", "sessionId": "0200", "cwd": "/next", "sessionName": "the next one"})
        await screen.shows("This session was replaced by the next one", "r again")
        assert "UnknownTask" not in screen.text

    inspect(talker, work)


def test_a_session_without_a_program_says_so_from_the_beginning(private: Path) -> None:
    with ScriptedDoor(private) as door:
        pass

    async def work(screen: Screen) -> None:
        await screen.shows("has ended", "Esc leave")
        await screen.press("escape")

    assert inspect(door, work).return_code == 0


# ---- several sessions, other keys, other sizes


def test_a_session_is_chosen_when_there_are_several(door: ScriptedDoor) -> None:
    door.put(task("t1", title="make"))
    with ScriptedDoor(door.path.parent, pid=4_000_001, sessionId="0200-other") as other:
        other.put(task("t1", title="another"))

        async def work(screen: Screen) -> None:
            await screen.shows("Sessions 2", "0199-session", "0200-other")
            await screen.press("down", "enter")
            await screen.shows("another")
            await screen.press("escape")
            await screen.shows("Sessions 2")
            assert "0200-other" in screen.selected
            await screen.press("up", "enter")
            await screen.shows("make")

        inspect([door, other], work)


def test_configured_keys_are_used_and_shown(door: ScriptedDoor) -> None:
    door.put(agent("t1", title="find it"))

    async def work(screen: Screen) -> None:
        await screen.shows("find it", "ctrl+k stop")
        await screen.press("x", "ctrl+k")
        await screen.shows("Stop this agent?")
        await screen.press("b")
        await screen.shows("Agents 1")

    inspect(door, work, keys={"stop": ("ctrl+k",), "back": ("b",)})


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 12), (20, 8), (10, 4), (5, 2)])
def test_no_size_breaks_a_page(talker: ScriptedDoor, size: tuple[int, int]) -> None:
    nasty = "日本語 \x1b[31m[bold]e\u0301[/] \u202e" * 9
    talker.put(agent("t2", title=nasty, model=nasty, **ASKING), task("t3", title=nasty, acceptsInput=True))
    talker.details["t2"] = {"prompt": nasty, "tail": nasty, "questions": [{**QUESTION, "message": nasty}]}

    async def work(screen: Screen) -> None:
        await screen.until(lambda: screen.selected)
        steps = [DetailPage, "enter", InputPage, "a", "escape", DetailPage, "down", "enter", TranscriptPage]
        await screen.press("enter")
        await screen.until(lambda: screen.app.inspection.watched and screen.app.inspection.watched.detail)
        for step in [*steps, "pageup", "end", "left", DetailPage, "left", ListPage]:
            if isinstance(step, str):
                await screen.press(step)
            else:
                await screen.until(lambda page=step: isinstance(screen.app.screen, page))
        await screen.pilot.resize_terminal(80, 24)
        await screen.shows("Agents 2", "Shells 1")

    assert inspect(talker, work, size=size).failure is None


def test_control_c_leaves_from_anywhere(door: ScriptedDoor) -> None:
    door.put(task("t1", title="python3", acceptsInput=True))

    async def work(screen: Screen) -> None:
        await screen.shows("python3")
        await screen.press("enter")
        await screen.shows("   Input")
        await screen.press("down", "enter", "a", "ctrl+c")

    assert inspect(door, work).return_code == 0
