"""Each invariant sees the actor that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.simulate import failures
from runtime.simulation.course import Mix
from runtime.simulation.invariants import CHECKS
from runtime.simulation.parts import Parts
from tests.runtime.simulation import broken_actors as b

BROKEN = [
    ("ending", "the deadline passed", "desk", b.Stuck),
    ("ending", "the deadline passed", "preferences", b.Unkept),
    ("ending", "outlives the program", "shell", b.Deathless),
    ("records", "not a record on stdout", "writer", b.Garbled),
    ("responses", "a response too many to", "shell", b.TwiceAnswered),
    ("responses", "no response to", "shell", b.Silent),
    ("lanes", "was answered before", "intake", b.Overtaking),
    ("told_after_written", "was written", "shell", b.Hasty),
    ("deltas", "the client saw", "shell", b.Reordered),
    ("recorded", "was recorded in", "shell", b.Insistent),
    ("interrupts", "was cancelled 0 times", "shell_desk", b.DeafDesk),
    ("queue", "left the queue without a word", "queue", b.Forgetful),
    ("queue", "is twice in the queue", "queue", b.Doubling),
    ("prompts", "was accepted, but never said or queued", "queue", b.SwallowingAtOnce),
    ("event_order", "without agent_settled", "session", b.Unsettled),
    ("event_order", "has not ended", "session", b.Unclosed),
    ("event_order", "told before it was journaled", "session", b.Unwritten),
    ("event_order", "goes on after it was aborted", "session", b.DeafToAbort),
    ("event_order", "isStreaming is False", "session", b.Idle),
    ("event_order", "pendingMessageCount is", "queue", b.Swallowing),
    ("event_order", "nobody asked for a run", "session", b.Impatient),
    ("event_order", "are not what the message says", "model_call", b.Gapped),
    ("lost_mail", "after its end", "shell", b.Insistent),
    ("acks", "never acknowledged", "writer", b.Ackless),
    ("files", "which is not there", "session", b.Rootless),
    ("tasks", "outlives the program", "session", b.Abandoning),
    ("notices", "intent", "session", b.Repeating),
    ("settlements", "was stopped for one cause and then for another", "task_desk", b.Recausing),
    ("waits", "was answered", "task_desk", b.Insisting),
    ("waits", "was never answered", "task_desk", b.Speechless),
    ("room", "run at once when", "task_desk", b.Roomy),
    ("children", "the file of a subagent is open", "subagent", b.Unclosing),
    ("apart", "a child's thought", "subagent", b.ThinkingAloud),
    ("childs_calls", "has no result", "session", b.Resultless),
    ("visitor_answers", "had no answer to", "visitor", b.Losing),
    ("visitor_answers", "had an answer too many to", "visitor", b.Echoing),
    ("visitor_records", "before the greeting", "visitor", b.Rude),
    ("visitor_records", "told the writer an answer for a visitor", "session", b.Indiscreet),
    ("visitor_updates", "has another wish of", "visitor", b.Unsubscribed),
    ("visitor_updates", "changes of its tasks, and owed", "session", b.Untold),
    ("visitor_updates", "was told of a task after it was seen out", "door", b.Hurried),
    ("visitor_backlog", "was sent more, with", "visitor", b.Patient),
    ("visitor_backlog", "had to leave for nothing", "visitor", b.Touchy),
    ("acks", "reads of an inspector were never acknowledged", "visitor", b.Keeping),
    ("secrets", "a credential was written to stderr", "session", b.Talkative),
]


OF_AGENTS = ("settlements", "waits", "room", "children", "apart", "childs_calls")


@pytest.mark.parametrize(("rule", "complaint", "part", "broken"), BROKEN)
def test_a_broken_actor_is_caught(rule: str, complaint: str, part: str, broken: Any) -> None:
    parts = Parts()
    setattr(parts, part, broken)
    of_visitors = rule.startswith("visitor") or part == "visitor"
    mix: Mix = "visitors" if of_visitors else "agents" if rule in OF_AGENTS else "calm"
    found = (one for played in failures(range(400), mix, parts) for one in played.violations)
    assert next((True for one in found if one.rule == rule and complaint in one.text), False)


def test_every_invariant_has_an_actor_that_breaks_it() -> None:
    assert {rule for rule, *_ in BROKEN} == {check.__name__ for check in CHECKS}
