"""Targets of replacements on real files: new, forked, switched to, imported; and what a refusal leaves untouched."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from msgspec import UNSET

from actors.mail import TargetFailed, TargetOpened
from actors.probe import Probe
from actors.session.file import OpenedSession, SessionFileError, Stamps, import_session, new_session, open_session
from actors.session.journal import SessionInUse
from actors.session.opening import Opener, missing_cwd
from actors.session.surroundings import Surroundings
from actors.session.target import Target
from protocol.entry_head import WorkflowStage

MARK = (
    '{"type":"message","id":"%s","parentId":null,"timestamp":"t","message":{"role":"user","content":"x","timestamp":1}}'
)


def pump(name: str, work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


class Bench:
    """An opener beside a current session in `sessions`, or in memory."""

    def __init__(self, root: Path, *, in_memory: bool = False) -> None:
        self.root, self.cwd, self.folder = root, root / "cwd", root / "sessions"
        self.cwd.mkdir()
        numbers = itertools.count(1)
        self.stamps = Stamps(lambda: 1767225600000, lambda: f"s-{next(numbers)}", lambda: f"{next(numbers):08x}-0000")
        directory = None if in_memory else str(self.folder)
        self.current = new_session(self.stamps, str(self.cwd), directory)
        self.read: list[str] = []
        self.opener = Opener(pump, self.stamps, directory, str(self.cwd), self._surroundings)

    def _surroundings(self, cwd: str) -> Surroundings:
        self.read.append(cwd)
        return Surroundings(lambda model, level: "be brief")

    def open(self, kind: Literal["new", "file", "import", "fork"], **fields: Any) -> OpenedSession:
        opened = self.opener.opened(Target(kind, self.current, **fields))
        opened.journal.close()
        return opened

    def file(self, name: str, *, cwd: str | None = None, entries: tuple[str, ...] = ("a1",)) -> str:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        header = {"type": "session", "version": 3, "id": "old", "timestamp": "t", "cwd": cwd or str(self.cwd)}
        path.write_text("".join(f"{line}\n" for line in (json.dumps(header), *(MARK % one for one in entries))))
        return str(path)

    def refusal(self, kind: Literal["new", "file", "import", "fork"], **fields: Any) -> str:
        with pytest.raises(SessionFileError) as caught:
            self.open(kind, **fields)
        return str(caught.value)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def ids(opened: OpenedSession) -> list[str]:
    return [entry.head.id for entry in opened.entries]


def test_a_new_session_stands_beside_the_current_one_in_its_folder_and_cwd(bench: Bench) -> None:
    opened = bench.open("new", parent_session="/parent.jsonl")
    assert opened.journal.path is not None and Path(opened.journal.path).parent == bench.folder
    assert (opened.header.cwd, opened.entries) == (str(bench.cwd), [])
    assert opened.header.id != bench.current.header.id


def test_a_fork_of_a_workflows_session_belongs_to_the_workflow_and_a_new_session_does_not(bench: Bench) -> None:
    stage = WorkflowStage("r1", "s1", "review")
    bench.current.journal.close()
    bench.current = new_session(bench.stamps, str(bench.cwd), str(bench.folder), workflow=stage)
    fork, new = (bench.open(kind, lines=lines) for kind, lines in (("fork", ((MARK % "a1").encode(),)), ("new", ())))
    assert (fork.header.internal, msgspec.json.decode(fork.header.workflow, type=WorkflowStage)) == (True, stage)
    assert new.header.internal is not True and new.header.workflow is UNSET


def test_a_fork_is_on_disk_with_its_lines_and_parent_before_anyone_switches_to_it(bench: Bench) -> None:
    lines = tuple((MARK % one).encode() for one in ("a1", "b2"))
    opened = bench.open("fork", lines=lines, parent_session="/parent.jsonl")
    assert ids(opened) == ["a1", "b2"]
    assert opened.journal.path is not None
    header, *stored = Path(opened.journal.path).read_bytes().splitlines()
    assert json.loads(header)["parentSession"] == "/parent.jsonl"
    assert tuple(stored) == lines


def test_a_file_is_opened_with_its_own_cwd_and_locked(bench: Bench) -> None:
    other = bench.root / "other"
    other.mkdir()
    path = bench.file("x.jsonl", cwd=str(other))
    opened = bench.opener.opened(Target("file", bench.current, path=path))
    assert (ids(opened), opened.header.cwd) == (["a1"], str(other))
    with pytest.raises(SessionInUse):
        open_session(path, bench.stamps, "/")
    opened.journal.close()


@pytest.mark.parametrize("kind", ["file", "import"])
def test_a_session_whose_folder_is_gone_is_refused_and_let_go(bench: Bench, kind: Any) -> None:
    path = bench.file("x.jsonl", cwd="/no/such/folder")
    destination = {"destination": str(bench.folder / "x.jsonl")} if kind == "import" else {}
    refusal = bench.refusal(kind, path=path, **destination)
    assert refusal == missing_cwd("/no/such/folder", path, str(bench.cwd))
    assert not (bench.folder / "x.jsonl").exists()
    open_session(path, bench.stamps, "/").journal.close()


def test_an_import_is_a_copy_under_its_name_and_the_source_stays_as_it_was(bench: Bench) -> None:
    source, destination = bench.file("in/x.jsonl"), bench.folder / "x.jsonl"
    before = Path(source).read_bytes()
    opened = bench.open("import", path=source, destination=str(destination))
    assert (ids(opened), opened.journal.path) == (["a1"], str(destination))
    assert Path(source).read_bytes() == destination.read_bytes() == before
    assert sorted(path.name for path in bench.folder.iterdir()) == ["x.jsonl"]


def test_an_import_overwrites_an_older_file_of_the_same_name(bench: Bench) -> None:
    bench.file("sessions/x.jsonl", entries=("old",))
    opened = bench.open("import", path=bench.file("in/x.jsonl"), destination=str(bench.folder / "x.jsonl"))
    assert ids(opened) == ["a1"]


def test_an_import_onto_a_file_that_is_open_elsewhere_is_refused_and_the_file_stays(bench: Bench) -> None:
    old = bench.file("sessions/x.jsonl", entries=("old",))
    holder = open_session(old, bench.stamps, "/")
    (bench.folder / "link.jsonl").symlink_to("x.jsonl")
    for name in ("x.jsonl", "link.jsonl"):
        destination = str(bench.folder / name)
        with pytest.raises(SessionInUse) as caught:
            bench.open("import", path=bench.file(f"in/{name}"), destination=destination)
        assert str(caught.value) == f"Session file is in use by another process: {destination}"
    holder.journal.append((MARK % "later").encode())
    holder.journal.close()
    assert ids(bench.open("file", path=old)) == ["old", "later"]
    assert {path.name for path in bench.folder.iterdir()} == {"x.jsonl", "link.jsonl"}


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("version", [3, 1])
def test_an_imported_session_is_locked_and_for_its_owner_alone(bench: Bench, old: bool, version: int) -> None:
    destination = bench.folder / "x.jsonl"
    if old:
        bench.file("sessions/x.jsonl", entries=("old",))
        destination.chmod(0o644)
    source = Path(bench.file("in/x.jsonl"))
    source.chmod(0o644)
    source.write_text(source.read_text().replace('"version": 3', f'"version": {version}'))
    opened = bench.opener.opened(Target("import", bench.current, path=str(source), destination=str(destination)))
    with pytest.raises(SessionInUse):
        open_session(str(destination), bench.stamps, "/")
    opened.journal.append((MARK % "b2").encode())
    opened.journal.close()
    again = bench.open("file", path=str(destination))
    assert len(again.entries) == 2 and ids(again) == [*ids(opened), "b2"]
    assert destination.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in bench.folder.iterdir()] == ["x.jsonl"]


def test_an_import_through_a_link_reaches_the_file_behind_it(bench: Bench) -> None:
    real, link = bench.root / "real.jsonl", bench.folder / "x.jsonl"
    link.symlink_to(real)
    for _ in ("the file is missing", "it is there"):
        assert ids(bench.open("import", path=bench.file("in/x.jsonl"), destination=str(link))) == ["a1"]
        assert link.is_symlink() and real.is_file()


def test_an_import_onto_what_is_no_file_is_refused_by_name(bench: Bench) -> None:
    (bench.folder / "d.jsonl").mkdir()
    os.mkfifo(bench.folder / "p.jsonl")
    for name, told in (("d.jsonl", "Session file is a directory"), ("p.jsonl", "Session file is not a regular file")):
        destination = str(bench.folder / name)
        refusal = bench.refusal("import", path=bench.file(f"in/{name}"), destination=destination)
        assert refusal == f"{told}: {destination}"
    assert len(list(bench.folder.iterdir())) == 2


def test_an_import_whose_name_is_as_long_as_names_can_be(bench: Bench) -> None:
    name = "n" * 249 + ".jsonl"
    assert ids(bench.open("import", path=bench.file(f"in/{name}"), destination=str(bench.folder / name))) == ["a1"]


def test_what_waits_at_the_name_of_the_copy_is_never_written_to(bench: Bench) -> None:
    victim, old = bench.root / "victim", bench.file("sessions/x.jsonl", entries=("old",))
    victim.write_text("precious")
    (bench.folder / ".one.tmp").symlink_to(victim)
    stamps = Stamps(lambda: 0, lambda: "s", lambda: "one")
    with pytest.raises(SessionFileError) as caught:
        import_session(bench.file("in/x.jsonl"), old, stamps)
    assert str(caught.value) == f"Session file cannot be written: {old}: File exists"
    assert victim.read_text() == "precious" and "old" in Path(old).read_text()


def test_a_copy_that_turns_out_to_be_no_session_is_removed(bench: Bench) -> None:
    notes, old = bench.root / "notes.jsonl", bench.file("sessions/x.jsonl", entries=("old",))
    notes.write_text("my notes\n")
    with pytest.raises(SessionFileError, match="not a valid atomic session"):
        import_session(str(notes), old, bench.stamps)
    assert "old" in Path(old).read_text() and [path.name for path in bench.folder.iterdir()] == ["x.jsonl"]
    assert ids(bench.open("file", path=old)) == ["old"]  # it was let go


def test_a_relative_path_is_meant_from_the_programs_folder_even_when_that_is_gone(bench: Bench) -> None:
    bench.file("cwd/x.jsonl", cwd=str(bench.root))
    destination = str(bench.folder / "x.jsonl")
    assert ids(bench.open("import", path="x.jsonl", destination=destination)) == ["a1"]
    assert bench.open("file", path="./x.jsonl").journal.path == str(bench.cwd / "x.jsonl")
    shutil.rmtree(bench.cwd)
    gone = str(bench.cwd / "x.jsonl")
    assert bench.refusal("import", path="x.jsonl", destination=destination) == f"File not found: {gone}"
    assert bench.refusal("file", path="x.jsonl").endswith(f"x.jsonl: {bench.cwd} is gone")
    assert not bench.cwd.exists()


def test_a_fault_of_the_system_names_a_path_and_its_reason(bench: Bench) -> None:
    def unreadable(cwd: str) -> Surroundings:
        raise OSError(5, "Input/output error", cwd)

    desk: Probe[Any] = Probe()
    opener = Opener(pump, bench.stamps, str(bench.folder), str(bench.cwd), unreadable)
    opener.open(1, Target("new", bench.current), desk)
    told = f"the session cannot be opened: {bench.cwd}: Input/output error"
    assert desk.next() == TargetFailed(1, told)


def test_an_import_of_the_file_itself_copies_nothing(bench: Bench) -> None:
    path = bench.file("sessions/x.jsonl")
    inode = Path(path).stat().st_ino
    assert ids(bench.open("import", path=path, destination=path)) == ["a1"]
    assert Path(path).stat().st_ino == inode


def test_an_import_may_be_given_another_folder_to_work_in(bench: Bench) -> None:
    path = bench.file("in/x.jsonl", cwd="/no/such/folder")
    opened = bench.open("import", path=path, destination=str(bench.folder / "x.jsonl"), cwd=str(bench.root))
    assert opened.header.cwd == str(bench.root)


def test_an_import_of_nothing_names_the_whole_path(bench: Bench) -> None:
    missing = str(bench.root / "nothing.jsonl")
    assert bench.refusal("import", path=missing, destination=str(bench.folder / "n")) == f"File not found: {missing}"


def test_an_import_of_what_is_no_session_leaves_the_folder_alone(bench: Bench) -> None:
    notes = bench.root / "notes.jsonl"
    notes.write_text("my notes\n")
    old = bench.file("sessions/notes.jsonl", entries=("old",))
    refusal = bench.refusal("import", path=str(notes), destination=old)
    assert refusal == f"Session file is not a valid atomic session: {notes}"
    assert "old" in Path(old).read_text()


@pytest.mark.parametrize("kind", ["file", "import"])
def test_without_sessions_on_disk_a_file_is_read_and_never_written(tmp_path: Path, kind: Any) -> None:
    bench = Bench(tmp_path, in_memory=True)
    path = bench.file("x.jsonl")
    before = Path(path).read_bytes()
    opened = bench.open(kind, path=path)
    opened.journal.append((MARK % "b2").encode())
    assert (ids(opened), opened.journal.path) == (["a1"], None)
    assert Path(path).read_bytes() == before


def test_without_sessions_on_disk_a_missing_file_is_a_new_session(tmp_path: Path) -> None:
    bench = Bench(tmp_path, in_memory=True)
    opened = bench.open("file", path=str(tmp_path / "nothing.jsonl"))
    assert (opened.entries, opened.journal.path) == ([], None)
    assert not (tmp_path / "nothing.jsonl").exists()


def test_the_desk_hears_of_every_outcome_under_its_serial(bench: Bench) -> None:
    desk: Probe[Any] = Probe()
    bench.opener.open(7, Target("new", bench.current), desk)
    opened = desk.next()
    assert isinstance(opened, TargetOpened) and opened.serial == 7
    assert opened.surroundings is not None and bench.read == [str(bench.cwd)]
    bench.opener.open(-3, Target("import", bench.current, path="/nothing"), desk)
    assert desk.next() == TargetFailed(-3, "File not found: /nothing")


def test_a_fault_of_our_own_is_named_by_kind_only(bench: Bench) -> None:
    desk: Probe[Any] = Probe()
    broken: Any = None
    bench.opener.open(1, Target("new", broken), desk)
    assert desk.next() == TargetFailed(1, "the session cannot be opened: AttributeError")
