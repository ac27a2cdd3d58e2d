"""Skills: where they are searched, what is passed over, which of two wins, and what a file must say."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actors.session.expansion import Origin, Skill
from runtime.skills import load_skills
from runtime.templates import SettingPath


class Tree:
    """A home with the default agent directory, and a project in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / "home"
        self.outer, self.cwd = root / "outer", root / "outer" / "project"
        self.agent = self.home / ".atomic" / "agent"
        self.skills = self.agent / "skills"
        self.cwd.mkdir(parents=True)
        self.agent.mkdir(parents=True)
        self.env = {"HOME": str(self.home)}

    def put(self, path: Path, text: str = "---\ndescription: Does it\n---\nBody") -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return str(path)

    def skill(self, folder: Path, *fields: str) -> str:
        """A skill in this folder."""
        lines = "\n".join(["description: Does it", *fields])
        return self.put(folder / "SKILL.md", f"---\n{lines}\n---\nBody of {folder.name}\n")

    def load(
        self,
        *,
        trusted: bool = True,
        settings: tuple[SettingPath, ...] = (),
        flags: tuple[str, ...] = (),
        discover: bool = True,
    ) -> tuple[list[Skill], list[str]]:
        return load_skills(
            str(self.agent),
            str(self.cwd),
            self.env,
            trusted=trusted,
            settings_paths=settings,
            flag_paths=flags,
            discover=discover,
        )

    def names(self) -> list[str]:
        found, warnings = self.load()
        assert warnings == []
        return [each.name for each in found]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_skill_says_its_name_what_it_does_and_where_it_lies(tree: Tree) -> None:
    path = tree.put(tree.skills / "x" / "SKILL.md", "---\nname: review\ndescription: Reviews\n---\n\n# Review\n\n")
    assert tree.load() == (
        [
            Skill(
                name="review",
                description="Reviews",
                path=path,
                real_path=os.path.realpath(path),
                base_dir=str(tree.skills / "x"),
                body="# Review",
                origin=Origin("user", "user", "auto", str(tree.agent)),
            )
        ],
        [],
    )


def test_places_go_from_flags_over_the_project_to_the_user(tree: Tree) -> None:
    (tree.outer / ".git").mkdir()
    tree.skill(tree.root / ".agents" / "skills" / "beyond-the-repository")
    tree.skill(tree.cwd / "flag")
    places = [
        tree.cwd / "sp",
        tree.cwd / ".atomic" / "skills" / "p1",
        tree.cwd / ".pi" / "skills" / "p2",
        tree.cwd / ".agents" / "skills" / "p3",
        tree.outer / ".agents" / "skills" / "p4",
        tree.home / "su",
        tree.skills / "u1",
        tree.home / ".pi" / "agent" / "skills" / "u2",
        tree.home / ".agents" / "skills" / "u3",
    ]
    for place in places:
        tree.skill(place)
    settings = (SettingPath(str(tree.home / "su"), "user"), SettingPath(str(tree.cwd / "sp"), "project"))
    found, warnings = tree.load(settings=settings, flags=("flag",))
    assert [(each.name, each.origin.location, each.origin.scope, each.origin.source) for each in found] == [
        ("flag", "path", "temporary", "cli"),
        ("sp", "path", "project", "local"),
        ("p1", "project", "project", "auto"),
        ("p2", "project", "project", "auto"),
        ("p3", "project", "project", "auto"),
        ("p4", "project", "project", "auto"),
        ("su", "path", "user", "local"),
        ("u1", "user", "user", "auto"),
        ("u2", "user", "user", "auto"),
        ("u3", "user", "user", "auto"),
    ]
    assert warnings == []


def test_an_untrusted_project_leaves_the_users_own(tree: Tree) -> None:
    tree.skill(tree.cwd / ".atomic" / "skills" / "a")
    tree.skill(tree.cwd / ".agents" / "skills" / "b")
    tree.skill(tree.cwd / "c")
    tree.skill(tree.home / ".agents" / "skills" / "mine")
    found, _ = tree.load(trusted=False, settings=(SettingPath(str(tree.cwd / "c"), "project"),))
    assert [each.name for each in found] == ["mine"]


def test_the_home_directory_above_a_project_is_the_users(tree: Tree) -> None:
    tree.skill(tree.home / ".agents" / "skills" / "mine")
    tree.cwd = tree.home / "code"
    (skill,), warnings = tree.load()
    assert (skill.origin.location, warnings) == ("user", [])


def test_without_discovery_the_flags_are_left(tree: Tree) -> None:
    tree.skill(tree.skills / "mine")
    tree.skill(tree.home / "extra" / "named")
    found, _ = tree.load(flags=("~/extra",), discover=False)
    assert [each.name for each in found] == ["named"]


def test_a_flag_may_name_a_file_and_one_that_leads_nowhere_costs_a_warning(tree: Tree) -> None:
    path = tree.put(tree.cwd / "tips.md")
    found, (warning,) = tree.load(flags=("tips.md", "none"))
    assert [(each.name, each.path, each.origin.base_dir) for each in found] == [("tips", path, str(tree.cwd))]
    assert warning.startswith(str(tree.cwd / "none"))


# ---- the search


def test_folders_are_searched_at_every_depth_but_not_below_a_skill(tree: Tree) -> None:
    tree.skill(tree.skills / "a" / "deep" / "er")
    tree.skill(tree.skills / "b")
    tree.skill(tree.skills / "b" / "inner")
    assert tree.names() == ["er", "b"]


def test_markdown_files_are_skills_in_the_folder_itself_only(tree: Tree) -> None:
    tree.put(tree.skills / "tips.md")
    tree.put(tree.skills / "notes.txt")
    tree.put(tree.skills / "more" / "hidden.md")
    tree.put(tree.skills / "named.md", "---\nname: other\ndescription: x\n---")
    assert tree.names() == ["other", "tips"]


def test_a_readme_beside_skills_is_none_and_needs_no_warning(tree: Tree) -> None:
    tree.put(tree.skills / "README.md", "# My skills\n")
    tree.skill(tree.skills / "a")
    assert tree.names() == ["a"]


def test_a_folder_that_is_itself_a_skill_holds_no_others(tree: Tree) -> None:
    tree.skill(tree.skills)
    tree.put(tree.skills / "tips.md")
    assert tree.names() == ["skills"]


def test_hidden_entries_and_node_modules_are_passed_over(tree: Tree) -> None:
    tree.put(tree.skills / ".tips.md")
    tree.skill(tree.skills / ".git" / "a")
    tree.skill(tree.skills / "node_modules" / "b")
    tree.skill(tree.skills / "c" / "node_modules" / "d")
    assert tree.names() == []


def test_folders_with_the_name_of_a_file_are_folders(tree: Tree) -> None:
    tree.skill(tree.skills / "a" / "SKILL.md")
    tree.skill(tree.skills / "tips.md" / "b")
    assert [Path(each.base_dir).name for each in tree.load()[0]] == ["SKILL.md", "b"]


@pytest.mark.skipif(os.name == "nt", reason="FIFOs of POSIX")
def test_a_fifo_is_no_skill_and_does_not_block(tree: Tree) -> None:
    (tree.skills / "a").mkdir(parents=True)
    os.mkfifo(tree.skills / "a" / "SKILL.md")
    os.mkfifo(tree.skills / "tips.md")
    assert tree.names() == []


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".fdignore"])
def test_ignored_entries_are_passed_over(tree: Tree, name: str) -> None:
    for folder in ("a", "b", "c/draft", "c/kept"):
        tree.skill(tree.skills / folder)
    tree.put(tree.skills / "tips.md")
    tree.put(tree.skills / name, "# drafts\n/a/\ntips.md\n")
    tree.put(tree.skills / "c" / name, "draft\n")
    assert tree.names() == ["b", "kept"]


def test_the_nearer_ignore_file_wins_and_in_one_folder_the_later(tree: Tree) -> None:
    for folder in ("x/a", "y/a", "b"):
        tree.skill(tree.skills / folder)
    tree.put(tree.skills / ".gitignore", "a\nb\n")
    tree.put(tree.skills / ".ignore", "!b\n")
    tree.put(tree.skills / "y" / ".gitignore", "!a\n")
    assert tree.names() == ["b", "a"]
    assert tree.load()[0][1].path == str(tree.skills / "y" / "a" / "SKILL.md")


def test_an_ignored_skill_file_does_not_make_its_folder_a_skill(tree: Tree) -> None:
    tree.skill(tree.skills / "a")
    tree.skill(tree.skills / "a" / "inner")
    tree.put(tree.skills / ".gitignore", "/a/SKILL.md\n")
    assert tree.names() == ["inner"]


def test_an_ignore_file_above_the_folder_does_not_count(tree: Tree) -> None:
    tree.skill(tree.skills / "a")
    tree.put(tree.agent / ".gitignore", "skills\n")
    assert tree.names() == ["a"]


def test_links_are_followed_and_a_circle_of_them_ends(tree: Tree) -> None:
    tree.skill(tree.root / "elsewhere" / "a")
    tree.skills.mkdir()
    (tree.skills / "link").symlink_to(tree.root / "elsewhere")
    (tree.root / "elsewhere" / "back").symlink_to(tree.skills)
    (tree.skills / "self").symlink_to(tree.skills / "self")
    (tree.skills / "gone").symlink_to(tree.root / "nowhere")
    (skill,), warnings = tree.load()
    assert (skill.path, warnings) == (str(tree.skills / "link" / "a" / "SKILL.md"), [])
    assert skill.base_dir == str(tree.skills / "link" / "a")
    assert skill.real_path == os.path.realpath(tree.root / "elsewhere" / "a" / "SKILL.md")


def test_one_real_file_is_one_skill(tree: Tree) -> None:
    path = tree.skill(tree.skills / "a")
    (tree.skills / "b").symlink_to(tree.skills / "a")
    (tree.skills / "tips.md").symlink_to(path)
    (tree.cwd / ".atomic").mkdir()
    (tree.cwd / ".atomic" / "skills").symlink_to(tree.skills)
    (skill,), warnings = tree.load()
    assert (skill.path, warnings) == (str(tree.cwd / ".atomic" / "skills" / "tips.md"), [])


# ---- what a file must say


@pytest.mark.parametrize("fields", ["name: a", "description:", "description: '  '", "description: [a]", ""])
def test_a_skill_without_a_description_is_skipped_with_a_warning(tree: Tree, fields: str) -> None:
    path = tree.put(tree.skills / "a" / "SKILL.md", f"---\n{fields}\n---\nBody")
    assert tree.load() == ([], [f"{path} is skipped: a skill needs a description, a text in its front matter"])


def test_a_skill_file_without_front_matter_is_skipped_with_a_warning(tree: Tree) -> None:
    tree.put(tree.skills / "a" / "SKILL.md", "# A\n")
    found, warnings = tree.load()
    assert (found, len(warnings)) == ([], 1)


def test_bad_yaml_costs_one_warning_and_the_others_are_loaded(tree: Tree) -> None:
    path = tree.put(tree.skills / "a" / "SKILL.md", "---\ndescription: use: it\n---\n")
    tree.skill(tree.skills / "b")
    (skill,), warnings = tree.load()
    assert skill.name == "b"
    assert warnings == [
        f"{path} is skipped: its front matter is not valid YAML: line 2: mapping values are not allowed here"
    ]


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="a file that always fails to be read")
def test_a_file_that_cannot_be_read_costs_one_warning(tree: Tree) -> None:
    (tree.skills / "a").mkdir(parents=True)
    (tree.skills / "a" / "SKILL.md").symlink_to("/proc/self/mem")
    path = tree.skills / "a" / "SKILL.md"
    assert tree.load() == ([], [f"{path} cannot be read: Input/output error"])


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("a" * 64, 0),
        ("a" * 65, 1),
        ("Review", 1),
        ("re_view", 1),
        ("review\u0661", 1),
        ("-review", 1),
        ("review-", 1),
        ("re--view", 1),
        ("-" + "R" * 64, 3),
    ],
)
def test_a_name_against_the_rules_is_loaded_with_a_warning_for_each(tree: Tree, name: str, faults: int) -> None:
    path = tree.skill(tree.skills / "a", f'name: "{name}"')
    (skill,), warnings = tree.load()
    assert skill.name == name
    assert len(warnings) == faults
    assert all(warning.startswith(f'{path}: the name "') for warning in warnings)


def test_a_description_that_is_too_long_is_loaded_with_a_warning(tree: Tree) -> None:
    path = tree.put(tree.skills / "a" / "SKILL.md", f"---\ndescription: {'x' * 1025}\n---\n")
    (skill,), warnings = tree.load()
    assert len(skill.description) == 1025
    assert warnings == [f"{path}: the description has 1025 characters; at most 1024 are allowed"]


def test_a_skill_can_be_hidden_from_the_model(tree: Tree) -> None:
    tree.skill(tree.skills / "a", "disable-model-invocation: true")
    tree.skill(tree.skills / "b", "disable-model-invocation: false")
    tree.skill(tree.skills / "c")
    assert [each.disable_model_invocation for each in tree.load()[0]] == [True, False, False]


def test_a_flag_that_is_neither_true_nor_false_costs_a_warning(tree: Tree) -> None:
    path = tree.skill(tree.skills / "a", "disable-model-invocation: perhaps")
    (skill,), warnings = tree.load()
    assert not skill.disable_model_invocation
    assert warnings == [f"{path}: disable-model-invocation may be true or false; it is taken as false"]


def test_of_two_with_one_name_both_are_kept_and_the_second_is_reported(tree: Tree) -> None:
    second = tree.skill(tree.skills / "review")
    first = tree.skill(tree.cwd / ".atomic" / "skills" / "review")
    found, warnings = tree.load()
    assert [each.path for each in found] == [first, second]
    assert warnings == [f'{second} has the name "review" of {first}, which comes first; use it as /skill:review@user']


# ---- what it costs


def loaded_after(tree: Tree) -> set[str]:
    """Which of the slow libraries a fresh process holds once the skills are loaded."""
    code = (
        "import sys; from runtime.skills import load_skills; before = set(sys.modules);"
        f"load_skills({str(tree.agent)!r}, {str(tree.cwd)!r}, {tree.env!r}, trusted=True);"
        "print(*(set(sys.modules) - before) & {'yaml', 'pathspec', 'hashlib'})"
    )
    root = Path(__file__).parents[2]
    return set(
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_plain_skills_load_no_library_and_others_load_what_they_need(tree: Tree) -> None:
    tree.skill(tree.skills / "a", "name: a")
    assert loaded_after(tree) == set()
    tree.skill(tree.skills / "b", "metadata: {x: y}")
    tree.put(tree.skills / ".gitignore", "c\n")
    assert loaded_after(tree) == {"yaml", "pathspec"}


def test_absent_folders_cost_less_than_a_millisecond(tree: Tree) -> None:
    seconds = []
    for _ in range(20):
        begun = time.perf_counter()
        assert tree.load() == ([], [])
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 0.001
