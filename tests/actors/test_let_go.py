"""A session and its tasks hold nothing once they have ended: their parts point back at them, and what was there at the
start of the program the garbage collector never looks at (`gc.freeze` in `runtime.main`)."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

from tests.actors.session.test_session import Bench
from tests.actors.task.test_progress import Bench as DeskBench


def test_a_session_holds_nothing_when_it_has_ended(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.prompt("hi")
    assert "history" in vars(bench.session)
    bench.session.ended()
    assert vars(bench.session) == {}


def test_a_desk_leaves_the_tasks_of_its_owner() -> None:
    bench = DeskBench()
    bench.launch(3)
    kept: list[Any] = [weakref.ref(task) for task in bench.desk._owner.tasks]
    assert len(kept) == 3
    bench.desk.ended()
    gc.collect()
    assert [each for each in kept if each() is not None] == []
