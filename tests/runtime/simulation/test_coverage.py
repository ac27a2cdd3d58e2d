"""The report of what seeds have met."""

from __future__ import annotations

from collections import Counter

from runtime.simulate import Played
from runtime.simulation.course import Course, Onlooker, Reader
from runtime.simulation.coverage import known, seen_in, table
from runtime.simulation.script import UNTIL_QUIET, Line


def test_a_course_has_met_its_commands_its_events_its_mail_and_its_faults() -> None:
    lines = (Line('{"type":"get_state"}'), Line("@bytes:ff"), Line('{"type":"get_state","padding":"@big:"}'))
    seen = seen_in(Played(Course(1, lines, reader=Reader(closes=2), choices={})).house)
    assert {"command get_state", "event response", "mail Commands", "mail Down"} - seen == {"mail Down"}
    faults = {name for name in seen if name.startswith("fault ")}
    assert faults == {"fault a line larger than a read", "fault a line that is no UTF-8", "fault end of stdin"}


def test_a_course_has_met_what_its_inspectors_did() -> None:
    visit = Onlooker(0, (Line('{"type":"get_tasks"}'),), Reader(stops=2), "says no more")
    lines = (Line('{"type":"prompt","message":"go"}', pause=UNTIL_QUIET),)
    courses = (Course(seed, lines, choices={}, delegates=True, onlookers=(visit,)) for seed in range(20))
    seen = {name for course in courses for name in seen_in(Played(course).house)}
    assert {"mail VisitorCommand", "mail VisitorAnswered", "mail VisitorGone"} <= seen
    faults = {name for name in seen if "inspector" in name}
    assert {"fault an inspector is let in", "fault an inspector says no more"} <= faults
    assert "fault an inspector goes" not in faults


def test_all_commands_and_mail_are_known_and_values_inside_mail_are_not_mail() -> None:
    assert {"command prompt", "event agent_start", "event text_delta", "mail Write", "mail Down"} <= known()
    assert not {"mail Record", "mail Ticket", "mail QueueView", "mail PromptEnded", "event done"} & known()


def test_the_table_shows_first_what_no_seed_has_seen() -> None:
    rows = table(Counter({"command prompt": 3, "fault signal 15": 1}), 4).splitlines()
    assert rows[0].split() == ["command", "abort", "0"]
    assert [row.split()[-1] for row in rows[-3:]] == ["3", "1", "4"]
