"""Prompt templates: where they are found, which of two wins, and what a file says of itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import astuple

from actors.session.expansion import Origin, Template
from runtime.settings import load_settings
from runtime.templates import SettingPath, load_templates, setting_paths


class Tree:
    """A home with the default agent directory, and a project."""

    def __init__(self, root: Path) -> None:
        self.home, self.cwd = root / "home", root / "project"
        self.agent = self.home / ".atomic" / "agent"
        self.cwd.mkdir()
        self.agent.mkdir(parents=True)
        self.env = {"HOME": str(self.home)}

    def put(self, path: Path, text: str = "") -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((text or f"From {path.parent.parent.name}").encode())
        return str(path)

    def load(
        self,
        *,
        trusted: bool = True,
        settings: tuple[SettingPath, ...] = (),
        flags: tuple[str, ...] = (),
        discover: bool = True,
    ) -> tuple[list[Template], list[str]]:
        return load_templates(
            str(self.agent),
            str(self.cwd),
            self.env,
            trusted=trusted,
            settings_paths=settings,
            flag_paths=flags,
            discover=discover,
        )

    def one(self, text: str) -> Template:
        """A template with this text."""
        self.put(self.agent / "prompts" / "one.md", text)
        (found,), warnings = self.load()
        assert warnings == []
        return found


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_without_folders_there_are_no_templates(tree: Tree) -> None:
    assert tree.load() == ([], [])


def test_the_projects_templates_come_before_the_users_and_the_older_folders_after_each(tree: Tree) -> None:
    for number, folder in enumerate((tree.cwd / ".atomic", tree.cwd / ".pi", tree.agent, tree.home / ".pi" / "agent")):
        tree.put(folder / "prompts" / f"{9 - number}.md")
    found, warnings = tree.load()
    assert [(each.name, each.body, each.origin.location) for each in found] == [
        ("9", "From .atomic", "project"),
        ("8", "From .pi", "project"),
        ("7", "From agent", "user"),
        ("6", "From agent", "user"),
    ]
    assert warnings == []


def test_only_the_default_agent_directory_stands_on_the_older_one(tree: Tree) -> None:
    tree.put(tree.home / ".pi" / "agent" / "prompts" / "old.md")
    assert [each.name for each in tree.load()[0]] == ["old"]
    tree.agent = tree.home / "other"
    assert tree.load() == ([], [])


def test_an_untrusted_project_leaves_the_users_own(tree: Tree) -> None:
    tree.put(tree.cwd / ".atomic" / "prompts" / "a.md")
    tree.put(tree.agent / "prompts" / "b.md")
    named = SettingPath(tree.put(tree.cwd / "c.md"), "project")
    found, _ = tree.load(trusted=False, settings=(named,))
    assert [each.name for each in found] == ["b"]


def test_a_name_with_white_space_is_told_since_nobody_can_call_it(tree: Tree) -> None:
    tree.put(tree.agent / "prompts" / "two words.md", "x")
    (found,), (warning,) = tree.load()
    assert found.name == "two words" and "white space" in warning and "two words.md" in warning


def test_of_two_with_one_name_the_first_is_kept_and_the_other_is_reported(tree: Tree) -> None:
    first = tree.put(tree.cwd / ".atomic" / "prompts" / "fix.md")
    second = tree.put(tree.agent / "prompts" / "fix.md")
    found, warnings = tree.load()
    assert [each.path for each in found] == [first]
    assert warnings == [f"{second} is skipped: /fix is {first}, which comes first"]


def test_only_markdown_files_right_in_the_folder_count(tree: Tree) -> None:
    prompts = tree.agent / "prompts"
    for name in ("a.md", "b.txt", ".c.md", "sub/d.md", "e.md/f.md"):
        tree.put(prompts / name)
    (prompts / "gone.md").symlink_to(prompts / "nowhere")
    found, warnings = tree.load()
    assert [each.name for each in found] == ["a"]
    assert warnings == []


def test_one_real_file_is_one_template(tree: Tree) -> None:
    path = Path(tree.put(tree.agent / "prompts" / "a.md"))
    (path.parent / "b.md").symlink_to(path)
    (tree.cwd / ".atomic").mkdir()
    (tree.cwd / ".atomic" / "prompts").symlink_to(path.parent)
    found, warnings = tree.load()
    assert [each.path for each in found] == [str(tree.cwd / ".atomic" / "prompts" / "a.md")]
    assert warnings == []


def test_flags_come_first_then_what_settings_name_for_the_project_and_for_the_user(tree: Tree) -> None:
    tree.put(tree.cwd / "flag.md")
    tree.put(tree.home / "more" / "home.md")
    tree.put(tree.cwd / ".atomic" / "prompts" / "p.md")
    tree.put(tree.agent / "prompts" / "u.md")
    settings = (
        SettingPath(tree.put(tree.home / "su.md"), "user"),
        SettingPath(tree.put(tree.cwd / "sp.md"), "project"),
    )
    found, warnings = tree.load(settings=settings, flags=("flag.md", "~/more"))
    assert [(each.name, *astuple(each.origin)) for each in found] == [
        ("flag", "path", "temporary", "cli", str(tree.cwd), "top-level"),
        ("home", "path", "temporary", "cli", str(tree.home / "more"), "top-level"),
        ("sp", "path", "project", "local", str(tree.cwd), "top-level"),
        ("p", "project", "project", "auto", str(tree.cwd / ".atomic"), "top-level"),
        ("su", "path", "user", "local", str(tree.home), "top-level"),
        ("u", "user", "user", "auto", str(tree.agent), "top-level"),
    ]
    assert warnings == []


def test_without_discovery_the_flags_are_left(tree: Tree) -> None:
    tree.put(tree.cwd / "flag.md")
    tree.put(tree.agent / "prompts" / "u.md")
    found, _ = tree.load(flags=("flag.md",), discover=False)
    assert [each.name for each in found] == ["flag"]


def test_a_path_that_leads_nowhere_costs_one_warning(tree: Tree) -> None:
    found, warnings = tree.load(flags=("none.md",), settings=(SettingPath("/none", "user"),))
    assert found == []
    assert [warning.partition(" ")[0] for warning in warnings] == [str(tree.cwd / "none.md"), "/none"]


# ---- what a file says


def test_fields_come_from_the_front_matter_and_the_body_is_trimmed(tree: Tree) -> None:
    found = tree.one('---\ndescription: Fix a bug\nargument-hint: "<issue>"\n---\n\nFix $1.\n')
    path = str(tree.agent / "prompts" / "one.md")
    origin = Origin("user", "user", "auto", str(tree.agent))
    assert found == Template("one", "Fix a bug", path, "Fix $1.", origin, "<issue>")


def test_without_front_matter_the_body_is_the_text_with_unix_line_ends(tree: Tree) -> None:
    found = tree.one("\r\n  \r\nFix $1.\r\n")
    assert (found.body, found.description, found.argument_hint) == ("\n  \nFix $1.\n", "Fix $1.", None)


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 60 + "..."),
        ("\U0001f600" * 30, "\U0001f600" * 30),
        ("x" + "\U0001f600" * 30, "x" + "\U0001f600" * 29 + "..."),
    ],
)
def test_the_first_line_is_cut_at_60_utf16_units(tree: Tree, line: str, description: str) -> None:
    assert tree.one(f"---\nargument-hint: x\n---\n\n{line}\nmore").description == description


def test_an_empty_file_is_a_template_without_a_description(tree: Tree) -> None:
    (tree.agent / "prompts").mkdir()
    (tree.agent / "prompts" / "empty.md").touch()
    (found,), warnings = tree.load()
    assert (found.name, found.body, found.description, warnings) == ("empty", "", "", [])


def test_bad_front_matter_skips_the_file_with_one_warning(tree: Tree) -> None:
    path = tree.put(tree.agent / "prompts" / "a.md", "---\na: [\n---\n")
    tree.put(tree.agent / "prompts" / "b.md")
    found, (warning,) = tree.load()
    assert [each.name for each in found] == ["b"]
    assert warning.startswith(path)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="a file that always fails to be read")
def test_a_file_that_cannot_be_read_is_skipped_with_one_warning(tree: Tree) -> None:
    (tree.agent / "prompts").mkdir()
    (tree.agent / "prompts" / "a.md").symlink_to("/proc/self/mem")
    tree.put(tree.agent / "prompts" / "b.md")
    found, (warning,) = tree.load()
    assert [each.name for each in found] == ["b"]
    assert warning.endswith("a.md cannot be read: Input/output error")


# ---- what settings name


def test_paths_of_settings_start_from_their_file_and_both_scopes_count(tree: Tree) -> None:
    tree.put(tree.cwd / ".atomic" / "settings.json", '{"prompts": ["../mine", "~/x.md"], "skills": ["s"]}')
    tree.put(tree.cwd / ".pi" / "settings.json", '{"prompts": ["older"]}')
    tree.put(tree.agent / "settings.json", '{"prompts": ["/abs"]}')
    settings, _ = load_settings(str(tree.agent), str(tree.cwd), tree.env, trusted=True)
    assert setting_paths(settings.documents, "prompts", str(tree.cwd), tree.env) == (
        [
            SettingPath(str(tree.cwd / "mine"), "project"),
            SettingPath(str(tree.home / "x.md"), "project"),
            SettingPath("/abs", "user"),
        ],
        [],
    )
    found, _ = setting_paths(settings.documents, "skills", str(tree.cwd), tree.env)
    assert found == [SettingPath(str(tree.cwd / ".atomic" / "s"), "project")]


def test_the_older_form_of_the_skills_setting_is_understood(tree: Tree) -> None:
    documents = [
        (str(tree.agent / "settings.json"), {"skills": {"customDirectories": ["/a"], "enableSkillCommands": True}})
    ]
    assert setting_paths(documents, "skills", str(tree.cwd), tree.env) == ([SettingPath("/a", "user")], [])


@pytest.mark.parametrize(("value", "shown"), [("/a", "string"), (5, "number"), (["/a", 5], "5"), ([" "], '" "')])
def test_a_setting_that_makes_no_sense_costs_one_warning(tree: Tree, value: object, shown: str) -> None:
    documents = [("/home/settings.json", {"prompts": value}), ("/broken/settings.json", None)]
    found, (warning,) = setting_paths(documents, "prompts", str(tree.cwd), tree.env)
    assert found == ([SettingPath("/a", "user")] if isinstance(value, list) and "/a" in value else [])
    assert "prompts" in warning
    assert f": {shown};" in warning
    assert "/home/settings.json" in warning
