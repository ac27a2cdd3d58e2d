"""What is read before the first actor starts: sessions by path, id or age, and faults that leave nothing to run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from actors.tool.table import DEFAULT_TOOLS
from runtime.cli import parse_arguments
from runtime.stamps import STAMPS
from runtime.startup import Startup, StartupError, load


class Bench:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd, self.agent, self.sessions = (root / name for name in ("project", "agent", "sessions"))
        for folder in (self.cwd, self.agent, self.sessions):
            folder.mkdir()
        self.env = {"HOME": str(root), "ATOMIC_CODING_AGENT_DIR": str(self.agent), "ANTHROPIC_API_KEY": "k"}

    def load(self, *flags: str, flat: bool = True) -> Startup:
        where = ["--session-dir", str(self.sessions)] if flat else []
        argv = ["--mode", "rpc", *where, *flags]
        startup = load(parse_arguments(argv, self.env), self.env, str(self.cwd), STAMPS)
        startup.session.journal.close()
        return startup

    def refusal(self, *flags: str, flat: bool = True) -> str:
        with pytest.raises(StartupError) as caught:
            self.load(*flags, flat=flat)
        return str(caught.value)

    def session(self, session_id: str, *, cwd: str | None = None, name: str = "") -> Path:
        path = self.sessions / (name or f"2026-01-01T00-00-00-000Z_{session_id}.jsonl")
        header = {"type": "session", "version": 3, "id": session_id, "timestamp": "2026-01-01T00:00:00.000Z"}
        entry = {"type": "message", "id": "a1", "parentId": None, "timestamp": "2026-01-01T00:00:01.000Z"}
        message = {"role": "user", "content": "hi", "timestamp": 1}
        lines = [{**header, "cwd": cwd or str(self.cwd)}, {**entry, "message": message}]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_new_session_goes_into_the_folder_of_the_flags_and_waits_for_its_first_message(bench: Bench) -> None:
    startup = bench.load()
    assert startup.directory == str(bench.sessions)
    path = startup.session.journal.path
    assert path is not None and os.path.dirname(path) == str(bench.sessions)
    assert startup.session.header.cwd == str(bench.cwd)
    assert list(bench.sessions.iterdir()) == []


def test_no_session_means_no_file_and_no_folder_for_the_whole_process(bench: Bench) -> None:
    startup = bench.load("--no-session")
    assert (startup.directory, startup.session.journal.path) == (None, None)


def test_a_session_is_opened_by_its_path(bench: Bench) -> None:
    path = bench.session("s-1")
    assert [entry.head.id for entry in bench.load("--session", str(path)).session.entries] == ["a1"]


def test_a_path_that_does_not_exist_becomes_a_new_session_there(bench: Bench) -> None:
    path = bench.sessions / "mine.jsonl"
    startup = bench.load("--session", str(path))
    assert (startup.session.journal.path, startup.session.entries) == (str(path), [])


def test_a_session_is_found_by_the_beginning_of_its_id(bench: Bench) -> None:
    bench.session("abcd-1")
    bench.session("wxyz-2")
    assert bench.load("--session", "abcd").session.header.id == "abcd-1"


@pytest.mark.parametrize("flag", ["--session", "--resume", "--fork"])
def test_a_beginning_that_several_sessions_share_is_refused_with_their_ids(bench: Bench, flag: str) -> None:
    for number in range(7):
        bench.session(f"same-{number}")
    refusal = bench.refusal(flag, "same")
    assert refusal.startswith("7 sessions begin with 'same'; give more of the id: same-") and refusal.endswith(", ...")
    opened = bench.load(flag, "same-3").session
    assert "same-3" in (opened.header.parent_session or opened.header.id)


def test_an_id_of_no_session_is_refused(bench: Bench) -> None:
    assert bench.refusal("--session", "nope") == "No session found matching 'nope'"


def test_a_session_of_another_project_is_named_and_opened_by_its_path_alone(bench: Bench) -> None:
    other = bench.root / "other"
    other.mkdir()
    path = bench.session("far-1", cwd=str(other))
    refusal = bench.refusal("--session", "far")
    assert f"belongs to {other}" in refusal and f"--session {path}" in refusal and "--fork far" in refusal
    assert bench.load("--session", str(path)).session.header.id == "far-1"


def test_without_a_folder_of_its_own_choice_every_projects_sessions_are_looked_through(bench: Bench) -> None:
    own, far = (bench.agent / "sessions" / name for name in (f"--{str(bench.cwd)[1:].replace('/', '-')}--", "--far--"))
    for folder, session_id, cwd in (
        (own, "ab-own", bench.cwd),
        (far, "ab-far", bench.root),
        (far, "cd-far", bench.root),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        bench.session(session_id, cwd=str(cwd)).rename(folder / f"{session_id}.jsonl")
    assert bench.load("--session", "ab", flat=False).session.header.id == "ab-own"
    assert "belongs to" in bench.refusal("--session", "cd", flat=False)
    fork = bench.load("--fork", "cd", flat=False).session
    assert (fork.header.cwd, fork.header.parent_session) == (str(bench.cwd), str(far / "cd-far.jsonl"))


def test_a_fork_takes_all_branches_and_stands_where_the_source_stands(bench: Bench) -> None:
    path = bench.session("tree-1")
    first = json.loads(path.read_text().splitlines()[1])
    more = [{**first, "id": id_, "parentId": parent} for id_, parent in (("b1", "a1"), ("b2", "a1"), ("c1", "b1"))]
    more.append(
        {"type": "label", "id": "l1", "parentId": "c1", "timestamp": first["timestamp"], "targetId": "a1", "label": "x"}
    )
    with path.open("a") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in more)
    fork = bench.load("--fork", str(path)).session
    assert fork.journal.path is not None
    stored = Path(fork.journal.path).read_text().splitlines()
    assert [json.loads(line) for line in stored[1:]] == [first, *more]
    assert [entry.head.id for entry in fork.entries] == ["a1", "b1", "b2", "c1", "l1"]


@pytest.mark.parametrize("content", ["", "my notes\n", "{}\n"])
def test_what_is_no_session_cannot_be_forked(bench: Bench, content: str) -> None:
    path = bench.sessions / "notes.jsonl"
    path.write_text(content)
    assert bench.refusal("--fork", str(path)) == f"Cannot fork: source session file is empty or invalid: {path}"


def test_the_most_recent_session_is_continued_and_without_one_a_new_one_begins(bench: Bench) -> None:
    assert bench.load("--continue").session.entries == []
    old, new = bench.session("old-1"), bench.session("new-2")
    os.utime(old, (1, 1))
    os.utime(new, (2, 2))
    assert bench.load("--continue").session.header.id == "new-2"


def test_a_file_that_is_no_session_is_refused_and_untouched(bench: Bench) -> None:
    path = bench.sessions / "notes.jsonl"
    path.write_text("my notes\n")
    assert bench.refusal("--session", str(path)) == f"Session file is not a valid atomic session: {path}"
    assert path.read_text() == "my notes\n"


def test_a_session_whose_folder_is_gone_is_refused_with_the_three_paths_and_let_go(bench: Bench) -> None:
    path = bench.session("s-1", cwd="/no/such/folder")
    refusal = bench.refusal("--session", str(path))
    assert refusal.splitlines() == [
        "Stored session working directory does not exist: /no/such/folder",
        f"Session file: {path}",
        f"Current working directory: {bench.cwd}",
    ]
    assert bench.refusal("--session", str(path)) == refusal  # and not: in use by another process


def test_a_file_in_use_is_refused(bench: Bench) -> None:
    path = bench.session("s-1")
    flags = parse_arguments(["--mode", "rpc", "--session", str(path)], bench.env)
    held = load(flags, bench.env, str(bench.cwd), STAMPS)
    assert bench.refusal("--session", str(path)) == f"Session file is in use by another process: {path}"
    held.session.journal.close()


def test_a_model_of_a_provider_that_does_not_exist_is_refused(bench: Bench) -> None:
    assert bench.refusal("--provider", "nosuch", "--model", "m").startswith('Unknown provider "nosuch".')


def test_skills_and_templates_of_flags_are_found_from_the_folder_of_the_start(bench: Bench) -> None:
    (bench.cwd / "mine").mkdir()
    (bench.cwd / "mine" / "SKILL.md").write_text("---\nname: mine\ndescription: d\n---\nbody")
    (bench.cwd / "ask.md").write_text("ask $1")
    flags = ("--skill", "mine", "--prompt-template", "ask.md", "--prompt-template", "none.md", "-ns", "-np")
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    startup = bench.load(*flags, "--session", str(bench.session("s-1", cwd=str(elsewhere))))
    assert sorted(command.name for command in startup.surroundings.expander.commands()) == ["ask", "skill:mine"]
    (warning,) = [line for line in startup.warnings if "none.md" in line]
    assert str(bench.cwd) in warning


def test_approve_trusts_what_the_command_line_is_about_and_no_other_project(bench: Bench) -> None:
    folders = [bench.cwd, bench.root / "session", bench.root / "third"]
    for folder in folders:
        (folder / ".atomic" / "prompts").mkdir(parents=True)
        (folder / ".atomic" / "prompts" / "own.md").write_text("x")
    path = bench.session("s-1", cwd=str(folders[1]))
    reader = bench.load("--approve", "--session", str(path)).reader
    assert [len(reader.read(str(folder)).expander.commands()) for folder in folders] == [1, 1, 0]
    assert len(bench.load("--no-approve", "--session", str(path)).surroundings.expander.commands()) == 0


def test_faults_that_leave_something_to_run_are_warnings(bench: Bench) -> None:
    (bench.agent / "settings.json").write_text("{broken")
    (bench.agent / "models.json").write_text("[]")
    path = bench.session("s-1")
    with path.open("a") as file:
        file.write("torn\n")
    warnings = bench.load("--session", str(path)).warnings
    assert any("settings.json" in warning for warning in warnings)
    assert any("models.json" in warning for warning in warnings)
    assert f"Session file has 1 unreadable line: {path}" in warnings


def test_the_key_in_the_environment_makes_its_models_available(bench: Bench) -> None:
    providers = {model.provider for model in bench.load().catalog.catalog.available()}
    assert providers == {"anthropic"}


@pytest.mark.parametrize(
    ("wanted", "active", "told"),
    [
        (["read", "bash"], {"read", "bash"}, 0),
        (["read", "nope", "nein"], {"read"}, 2),
        (["nope"], {*DEFAULT_TOOLS, "intercom"}, 1),
        ([], set(), 0),
    ],
)
def test_default_tools_that_are_none_are_named_and_never_leave_nothing(
    bench: Bench, wanted: list[str], active: set[str], told: int
) -> None:
    (bench.agent / "settings.json").write_text(json.dumps({"defaultTools": wanted}))
    startup = bench.load()
    assert set(startup.tools) == active
    lines = [line for line in startup.warnings if "there is no tool" in line]
    assert len(lines) == told
    assert all(line.startswith(f"{bench.agent}/settings.json: defaultTools: ") for line in lines)


@pytest.mark.parametrize("folder", [".agents", ".atomic/agents"])
def test_a_project_brings_agents_only_if_somebody_trusted_it(tmp_path: Path, folder: str) -> None:
    bench = Bench(tmp_path)
    (bench.cwd / folder).mkdir(parents=True)
    (bench.cwd / folder / "a.md").write_text("---\nname: theirs\ndescription: d\n---\nprompt")

    def names(*flags: str) -> set[str]:
        return {each.name for each in bench.load(*flags).reader.agents(str(bench.cwd)).definitions}

    assert names("--approve") - names() == {"theirs"}
    (bench.agent / "settings.json").write_text(json.dumps({"defaultProjectTrust": "always"}))
    assert "theirs" in names() and "theirs" not in names("--no-approve")
