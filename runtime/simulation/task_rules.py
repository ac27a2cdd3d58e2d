"""What must hold of tasks: each is reaped, and what ended in the background is told once."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from runtime.simulation.scheduler import kind_of
from runtime.simulation.seen import Seen

_COURSE = ["-intent", "", "-ack"]


def tasks(seen: Seen) -> Iterator[str]:
    """Nothing of a task outlives the program. After a crash the sweep of the process has to see to it, unless the actor
    of a command died: its desk waits for what that left."""
    house = seen.house
    struck = house.fault.struck if house.fault is not None else None
    is_excused = seen.crashed and not (struck is not None and kind_of(struck) == "task")
    if seen.is_over and not (is_excused or house.is_cut_off):
        yield from (f"{one.task_id} outlives the program: {one.plan}" for one in house.commands if not one.is_reaped)


def notices(seen: Seen) -> Iterator[str]:
    """What ended in the background is said at most once in each file, between its intent and its acknowledgement. A
    fork may have the beginning of that in the history that it started with."""
    if seen.crashed or seen.house.disk.refused:
        return
    courses: dict[tuple[object, str], list[str]] = {}
    for journal, line in seen.house.disk.log:
        if b'"task-completion' in line:
            entry = msgspec.json.decode(line)
            told = entry["details"] if entry["type"] == "custom_message" else entry["data"]
            file = journal.path or journal  # those in memory have no other name
            course = courses.setdefault((file, told["completionId"]), [])
            course.append(entry["customType"].removeprefix("task-completion"))
    for (where, name), course in courses.items():
        begins = _COURSE.index(course[0])
        if course != _COURSE[begins : begins + len(course)]:
            yield f"{name} in {where if isinstance(where, str) else 'memory'}: {course}"
