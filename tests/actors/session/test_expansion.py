"""Expansion of prompts: skills before templates, selectors of skills with one name, and the list of commands."""

from __future__ import annotations

import hashlib
from itertools import product
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.session.expansion import (
    SKILLS_INTRODUCTION,
    Expanded,
    Expander,
    ExtensionErrorFacts,
    Location,
    Origin,
    Skill,
    Template,
    skills_section,
)

SCOPES = {"user": "user", "project": "project", "path": "temporary"}


def origin(location: Location = "user") -> Origin:
    return Origin(location, "temporary" if location == "path" else location, "auto", f"/{location}")


def skill(name: str, location: Location = "user", *, folder: str = "", hidden: bool = False) -> Skill:
    base = f"/{location}/skills/{folder or name}"
    path = f"{base}/SKILL.md"
    return Skill(name, f"Does {name}.", path, f"/real{path}", base, f"Body of {path}", origin(location), hidden)


def template(name: str, body: str, description: str = "") -> Template:
    return Template(name, description, f"/user/prompts/{name}.md", body, origin())


def used(expander: Expander, text: str) -> str | None:
    """The path of the skill that a prompt was expanded to."""
    found = expander.expand(text).text
    return attributes(found).get("location") if found != text else None


def attributes(block: str) -> dict[str, str]:
    """Those of a skill block, as a reader of XML takes them."""
    return ElementTree.fromstring(block.partition("\n")[0] + "</skill>").attrib


# ---- skills


def test_a_skill_becomes_a_block_with_its_place_and_its_body() -> None:
    candidate = "skill_" + hashlib.sha256(b"/real/user/skills/review/SKILL.md").hexdigest()[:20]
    assert Expander([skill("review")]).expand("/skill:review") == Expanded(
        f'<skill name="review" location="/user/skills/review/SKILL.md" candidate="{candidate}">\n'
        "Relative paths below start from /user/skills/review\n\n"
        "Body of /user/skills/review/SKILL.md\n"
        "</skill>"
    )


@pytest.mark.parametrize(
    "text", ["/skill:review  do \n this ", "/skill:review\ndo \n this", "/skill:review\tdo \n this"]
)
def test_arguments_follow_the_block_after_a_blank_line(text: str) -> None:
    assert Expander([skill("review")]).expand(text).text.endswith("\n</skill>\n\ndo \n this")


@pytest.mark.parametrize(
    "text",
    ["/skill:other", "/skill:", "/skill: review", "/skill:Review", " /skill:review", "skill:review", "/skills:review"],
)
def test_what_names_no_skill_stays_as_it_is(text: str) -> None:
    assert Expander([skill("review")]).expand(text) == Expanded(text)


def test_names_and_paths_are_escaped_in_the_block() -> None:
    odd = skill('a"<b>&')
    found = attributes(Expander([odd]).expand(f"/skill:{odd.name}").text)
    assert (found["name"], found["location"]) == (odd.name, odd.path)


def test_a_skill_that_the_model_may_not_choose_can_be_called() -> None:
    assert used(Expander([skill("review", hidden=True)]), "/skill:review") == "/user/skills/review/SKILL.md"


# ---- two skills with one name

BOTH = [skill("review", "project"), skill("review", "user")]


def test_the_first_of_two_has_the_bare_name_and_both_a_qualified_one() -> None:
    expander = Expander(BOTH)
    assert used(expander, "/skill:review") == "/project/skills/review/SKILL.md"
    assert used(expander, "/skill:review@project") == "/project/skills/review/SKILL.md"
    assert used(expander, "/skill:review@user") == "/user/skills/review/SKILL.md"


def test_an_unknown_qualifier_is_an_error_that_names_the_choices_and_the_text_stays() -> None:
    assert Expander(BOTH).expand("/skill:review@path now") == Expanded(
        "/skill:review@path now",
        ExtensionErrorFacts(
            "skill:review@path",
            "skill_expansion",
            'Skill selector "review@path" matches no single skill; use one of: review, review@project, review@user',
        ),
    )


def test_a_qualified_name_that_nobody_has_is_an_error_too() -> None:
    error = Expander(BOTH).expand("/skill:other@user").error
    assert error is not None
    assert error.error == 'Skill selector "other@user" matches no single skill; no skill has that name'


def test_a_long_selector_is_shortened_in_the_error() -> None:
    error = Expander().expand("/skill:" + "x" * 500 + "@user").error
    assert error is not None
    assert len(error.extension_path) == 86
    assert len(error.error) < 150


def test_several_of_one_location_are_numbered_and_the_location_alone_is_ambiguous() -> None:
    expander = Expander([*BOTH, skill("review", "user", folder="more/review")])
    assert used(expander, "/skill:review@project") == "/project/skills/review/SKILL.md"
    assert used(expander, "/skill:review@user-1") == "/user/skills/review/SKILL.md"
    assert used(expander, "/skill:review@user-2") == "/user/skills/more/review/SKILL.md"
    error = expander.expand("/skill:review@user").error
    assert error is not None
    assert error.error.endswith("use one of: review, review@project, review@user-1, review@user-2")


def test_a_location_may_qualify_a_name_that_is_not_shared() -> None:
    expander = Expander([skill("review", "user")])
    assert used(expander, "/skill:review@user") == "/user/skills/review/SKILL.md"
    assert expander.expand("/skill:review@project").error is not None


def test_a_skill_with_an_at_sign_in_its_own_name_goes_before_a_qualified_one() -> None:
    odd = skill("review@user", "path")
    assert used(Expander([*BOTH, odd]), "/skill:review@user") == odd.path


def test_an_at_sign_in_the_arguments_is_no_qualifier() -> None:
    assert Expander(BOTH).expand("/skill:other\nmail a@b.c").error is None


NAMES = st.sampled_from(["a", "b", "a@user", "a@user-1"])
LOCATIONS: list[Location] = ["user", "project", "path"]


@given(st.lists(st.tuples(NAMES, st.sampled_from(LOCATIONS)), max_size=8))
def test_every_advertised_skill_command_expands_and_every_skill_is_reached(drawn: list[tuple[str, Location]]) -> None:
    skills = [skill(name, location, folder=str(number)) for number, (name, location) in enumerate(drawn)]
    expander = Expander(skills)
    listed = [(command.name, command.path) for command in expander.commands()]
    plain = [each for each in skills if "@" not in each.name]
    if plain == skills:
        assert [used(expander, f"/{name}") for name, _ in listed] == [path for _, path in listed]
    assert {path for _, path in listed} == {each.path for each in skills}
    assert len({name for name, _ in listed}) == len(listed) or plain != skills


# ---- templates


def test_a_template_is_called_by_its_name_with_arguments() -> None:
    expander = Expander(templates=[template("fix", "Fix $1 in $2.")])
    assert expander.expand("/fix 'the bug' main.py") == Expanded("Fix the bug in main.py.")


@pytest.mark.parametrize("text", ["/fi", "/FIX", "/fix\nnow", "/fix\tnow", "/ fix", "fix", " /fix", "/", "//fix", ""])
def test_what_names_no_template_stays_as_it_is(text: str) -> None:
    assert Expander(templates=[template("fix", "Fix it.")]).expand(text) == Expanded(text)


def test_a_template_may_become_nothing() -> None:
    assert Expander(templates=[template("fix", "$1")]).expand("/fix") == Expanded("")


def test_the_first_of_two_templates_with_one_name_has_it() -> None:
    expander = Expander(templates=[template("fix", "one"), template("fix", "two")])
    assert expander.expand("/fix").text == "one"
    assert [command.name for command in expander.commands()] == ["fix"]


def test_what_a_template_gives_is_not_looked_at_again() -> None:
    expander = Expander([skill("review")], [template("one", "/skill:review"), template("two", "/one")])
    assert expander.expand("/one").text == "/skill:review"
    assert expander.expand("/two").text == "/one"


def test_a_skill_goes_before_a_template_and_an_unknown_skill_may_be_a_template() -> None:
    templates = [template("skill:review", "template"), template("skill:other", "template")]
    expander = Expander([skill("review")], templates)
    assert expander.expand("/skill:review").text.startswith("<skill ")
    assert expander.expand("/skill:other").text == "template"


# ---- commands and the system prompt


def test_templates_are_listed_before_skills_with_the_fields_of_the_contract() -> None:
    commands = Expander([skill("review", "path")], [template("fix", "Fix it.", "Fix a bug")]).commands()
    assert msgspec.to_builtins(commands) == [
        {
            "name": "fix",
            "description": "Fix a bug",
            "source": "prompt",
            "location": "user",
            "path": "/user/prompts/fix.md",
            "sourceInfo": {
                "path": "/user/prompts/fix.md",
                "source": "auto",
                "scope": "user",
                "origin": "top-level",
                "baseDir": "/user",
            },
        },
        {
            "name": "skill:review",
            "description": "Does review.",
            "source": "skill",
            "location": "path",
            "path": "/path/skills/review/SKILL.md",
            "sourceInfo": {
                "path": "/path/skills/review/SKILL.md",
                "source": "auto",
                "scope": "temporary",
                "origin": "top-level",
                "baseDir": "/path",
            },
        },
    ]


def test_a_command_without_a_description_has_no_such_field() -> None:
    (command,) = msgspec.to_builtins(Expander(templates=[template("fix", "")]).commands())
    assert "description" not in command


def test_qualified_names_are_listed_only_where_a_name_is_shared() -> None:
    names = [command.name for command in Expander([BOTH[0], skill("other"), BOTH[1]]).commands()]
    assert names == ["skill:review", "skill:review@project", "skill:other", "skill:review@user"]


def test_without_skills_the_system_prompt_says_nothing_of_them() -> None:
    assert skills_section([]) == skills_section([skill("review", hidden=True)]) == ""


def test_the_system_prompt_lists_each_skill_once_escaped_and_leaves_out_hidden_ones() -> None:
    odd = replace(skill("odd"), description="a < b & 'c' \"d\" </skill>")
    section = skills_section([*BOTH, odd, skill("hidden", hidden=True)])
    heading, _, listed = section.partition("\n\n<available_skills>")
    assert heading == SKILLS_INTRODUCTION
    root = ElementTree.fromstring(f"<available_skills>{listed}")
    assert [[part.text for part in each] for each in root] == [
        ["review", "Does review.", "/project/skills/review/SKILL.md"],
        ["review@user", "Does review.", "/user/skills/review/SKILL.md"],
        ["odd", odd.description, "/user/skills/odd/SKILL.md"],
    ]


def test_nothing_is_expanded_where_nothing_is_known() -> None:
    texts = [before + after for before, after in product(("/a", "/skill:a", "a"), ("", " b", "\nb"))]
    assert [Expander().expand(text) for text in texts] == [Expanded(text) for text in texts]
