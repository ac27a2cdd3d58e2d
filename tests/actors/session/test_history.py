"""What a session has said: first the file, then the tree, then the context that the next request is built from."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest

from actors.session.file import OpenedSession, Stamps, new_session, open_session
from actors.session.history import History
from actors.session.journal import JournalError
from actors.session.turn import said
from protocol.codec import encode
from protocol.messages import BashExecutionMessage, UserMessage

BASH = BashExecutionMessage("ls", "out", False, False, 2)


class Bench:
    def __init__(self, folder: Path | None) -> None:
        numbers = itertools.count(1)
        self.stamps = Stamps(lambda: 1767225600000, lambda: "s-1", lambda: f"{next(numbers):08x}-0000")
        self.history = self.of(new_session(self.stamps, "/cwd", None if folder is None else str(folder)))

    def of(self, opened: OpenedSession) -> History:
        return History(opened, self.stamps.now, self.stamps.uuid4)

    def say(self, text: str) -> None:
        self.history.say(said(UserMessage(text, 1)))

    def shown(self) -> list[str]:
        words = []
        for message in self.history.messages:
            fields = json.loads(message.raw)
            words.append(fields.get("content") or fields["command"])
        return words


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "sessions")


def test_every_entry_follows_the_one_before_and_is_in_the_file_in_that_order(bench: Bench) -> None:
    history = bench.history
    first = history.append("session_info", name="n")
    bench.say("one")
    bench.say("two")
    assert history.path is not None
    header, *entries = [json.loads(line) for line in Path(history.path).read_text().splitlines()]
    assert header["id"] == history.session_id == "s-1"
    assert [entry["parentId"] for entry in entries] == [None, first, entries[1]["id"]]
    assert history.tree.leaf_id == entries[-1]["id"]


def test_what_is_said_comes_back_when_the_file_is_opened_again(bench: Bench) -> None:
    bench.history.append("model_change", provider="p", modelId="m")
    bench.history.append("thinking_level_change", thinkingLevel="high")
    bench.say("one")
    bench.history.journal.close()
    assert bench.history.path is not None
    again = bench.of(open_session(bench.history.path, bench.stamps, "/"))
    assert [message.raw for message in again.messages] == [message.raw for message in bench.history.messages]
    assert (again.saved_model, again.saved_level, again.has_level, again.cwd) == (("p", "m"), "high", True, "/cwd")


def test_an_entry_that_cannot_be_written_is_nowhere(tmp_path: Path, bench: Bench) -> None:
    history = bench.history
    history.append("session_info", name="n")
    leaf = history.tree.leaf_id
    shutil.rmtree(tmp_path / "sessions")
    with pytest.raises(JournalError):
        bench.say("one")
    with pytest.raises(JournalError):
        history.record(BASH, encode(BASH), wait=False)
    assert (len(history.tree), history.tree.leaf_id, bench.shown()) == (1, leaf, [])


def test_what_is_recorded_in_mid_run_joins_the_context_when_the_run_settles(bench: Bench) -> None:
    bench.say("one")
    bench.history.record(BASH, encode(BASH), wait=True)
    bench.say("two")
    assert bench.shown() == ["one", "two"]
    assert len(bench.history.tree) == 3
    bench.history.settle()
    bench.history.settle()
    assert bench.shown() == ["one", "two", "ls"]


def test_what_is_recorded_between_runs_is_in_the_context_at_once(bench: Bench) -> None:
    bench.history.record(BASH, encode(BASH), wait=False)
    assert bench.shown() == ["ls"]


def test_it_knows_a_message_by_its_exact_json(bench: Bench) -> None:
    bench.history.record(BASH, encode(BASH), wait=True)
    assert bench.history.holds(encode(BASH))
    assert not bench.history.holds(encode(BASH) + b" ")


def test_a_message_dropped_from_the_context_stays_in_the_tree(bench: Bench) -> None:
    bench.say("one")
    bench.say("two")
    bench.history.drop_last()
    assert bench.shown() == ["one"]
    assert len(bench.history.tree) == 2
    assert bench.history.dropped == {bench.history.tree.leaf_id}
    bench.history.rebuild()
    assert (bench.shown(), bench.history.dropped) == (["one", "two"], frozenset())


def test_after_a_move_in_the_tree_the_context_is_that_of_the_leaf(bench: Bench) -> None:
    bench.say("one")
    first = bench.history.tree.leaf_id
    assert first is not None
    bench.say("two")
    bench.history.tree.branch(first)
    bench.history.rebuild()
    assert bench.shown() == ["one"]


def test_a_session_in_memory_has_no_file_and_works_the_same() -> None:
    bench = Bench(None)
    bench.say("one")
    assert (bench.history.path, bench.shown(), len(bench.history.tree)) == (None, ["one"], 1)


def test_a_branch_without_a_level_says_so(bench: Bench) -> None:
    assert bench.history.has_level is False
