"""The page of a session shows every entry of every branch, and opens the path of the leaf."""

from __future__ import annotations

import base64
import gzip
import json
import time
from html.parser import HTMLParser
from typing import Any

import pytest

from actors.model.prompt import ToolSpec
from actors.session.export_outline import Outline
from actors.session.export_page import render_page
from actors.session.tree import Tree
from protocol.entry_head import EntryHead, read_entry

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HEADER = EntryHead("session", "s-1", timestamp="2026-02-01T10:00:00.000Z", cwd="/srv/app", version=3)


def message(role: str, content: Any = None, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": content, "timestamp": 1, **fields}}


def user(text: str, *blocks: Any) -> dict[str, Any]:
    return message("user", [{"type": "text", "text": text}, *blocks])


def assistant(*blocks: Any, stop: str = "stop", **fields: Any) -> dict[str, Any]:
    told = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return message("assistant", told, api="a", provider="acme", model="m-1", stopReason=stop, **fields)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": f"call-{name}", "name": name, "arguments": arguments}


def result(name: str, text: str, *, failed: bool = False, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return message("toolResult", content, toolCallId=f"call-{name}", toolName=name, isError=failed, **fields)


def tree_of(*entries: dict[str, Any]) -> Tree:
    """A chain of `entries`, unless one names another `parentId`."""
    tree = Tree()
    for number, entry in enumerate(entries):
        base = {"id": f"e{number}", "parentId": tree.leaf_id, "timestamp": f"2026-02-01T10:00:{number % 60:02}.000Z"}
        raw = json.dumps({**base, **entry}).encode()
        head = read_entry(raw)
        assert head is not None
        tree.add(raw, head)
    return tree


class Page(HTMLParser):
    """What a parser makes of a page: tags with attributes, and the text inside of each card and script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag in ("article", "script", "title"):
            self._open.append(attributes.get("data-n") or attributes.get("id") or tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("article", "script", "title"):
            self._open.pop()

    def handle_data(self, data: str) -> None:
        for name in self._open:
            self.texts[name] = self.texts.get(name, "") + data

    def cards(self) -> dict[str, dict[str, str | None]]:
        """Attributes of the cards, by position in the file."""
        return {attributes["data-n"] or "": attributes for tag, attributes in self.tags if tag == "article"}

    def outline(self) -> dict[str, Any]:
        outline: dict[str, Any] = json.loads(self.texts["outline"])
        return outline


def rendered(tree: Tree, **given: Any) -> Page:
    return Page(text_of_page(tree, **given))


def text_of_page(tree: Tree, **given: Any) -> str:
    usual: dict[str, Any] = {"leaf_id": tree.leaf_id, "name": None, "system_prompt": None, "tools": None}
    return render_page(tree, HEADER, **{**usual, **given})


def test_every_entry_has_a_card_and_only_those_of_the_opened_path_are_shown() -> None:
    tree = tree_of(user("one"), assistant("two"), user("three"), {**user("other"), "parentId": "e1"})
    cards = rendered(tree).cards()
    assert list(cards) == ["0", "1", "2", "3"]
    assert [position for position, attributes in cards.items() if "hidden" in attributes] == ["2"]


def test_another_leaf_opens_another_path() -> None:
    tree = tree_of(user("one"), user("two"), {**user("other"), "parentId": "e0"})
    cards = rendered(tree, leaf_id="e1").cards()
    assert [position for position, attributes in cards.items() if "hidden" in attributes] == ["2"]


@pytest.mark.parametrize("leaf_id", [None, "unknown"])
def test_without_a_leaf_nothing_is_opened(leaf_id: str | None) -> None:
    page = rendered(tree_of(user("one")), leaf_id=leaf_id)
    assert "hidden" in page.cards()["0"]
    assert page.outline()["leaf"] == -1


def test_an_empty_session_has_a_page() -> None:
    assert rendered(tree_of()).outline() == {"leaf": -1, "nodes": []}


def test_the_outline_puts_the_opened_branch_first_and_parents_before_children() -> None:
    tree = tree_of(user("root"), user("old"), {**user("new"), "parentId": "e0"}, user("newer"))
    nodes = rendered(tree).outline()["nodes"]
    assert [(node[0], node[1]) for node in nodes] == [(0, -1), (2, 0), (3, 1), (1, 0)]


def test_labels_stand_at_their_entry_and_in_the_outline() -> None:
    page = rendered(tree_of(user("one"), {"type": "label", "targetId": "e0", "label": "start"}))
    assert "start" in page.texts["0"]
    assert page.outline()["nodes"][0][-1] == "start"


def test_a_result_stands_below_its_call_also_when_other_results_stand_between() -> None:
    tree = tree_of(
        assistant(call("bash", command="ls"), call("read", path="a.py"), stop="toolUse"),
        result("read", "x = 1"),
        result("bash", "a.py"),
    )
    page = rendered(tree)
    assert "nested" in str(page.cards()["1"]["class"])
    assert "nested" in str(page.cards()["2"]["class"])
    assert page.texts["0"].index("a.py") < page.texts["0"].index("x = 1")


def test_a_result_without_call_stands_alone() -> None:
    card = rendered(tree_of(result("deploy", "gone"))).cards()["0"]
    assert "nested" not in str(card["class"])


@pytest.mark.parametrize(("tool", "shown"), [("bash", 5), ("read", 10), ("write", 10), ("ls", 20), ("something", 10)])
def test_long_output_is_folded_and_nothing_of_it_is_lost(tool: str, shown: int) -> None:
    lines = [f"line {number}" for number in range(30)]
    page = text_of_page(tree_of(assistant(call(tool), stop="toolUse"), result(tool, "\n".join(lines))))
    assert f"<summary>{30 - shown} more lines</summary>" in page
    text = Page(page).texts["1"]
    assert [line for line in lines if line not in text] == []
    before, _, _ = text.partition("more lines")
    assert (lines[shown - 1] in before, f"{lines[shown]}\n" in before) == (True, False)


def test_a_diff_takes_the_place_of_what_was_wanted() -> None:
    edit = call("edit", path="a", edits=[{"oldText": "wanted-old", "newText": "wanted-new"}])
    page = text_of_page(tree_of(assistant(edit), result("edit", "done", details={"diff": "-1 old\n+1 new"})))
    assert '<span class="gd">-1 old</span>' in page
    assert '<span class="gi">+1 new</span>' in page
    assert "wanted-old" not in page.partition("outline")[0]


def test_an_edit_that_failed_shows_what_was_wanted() -> None:
    edit = call("edit", path="a", oldText="wanted-old", newText="wanted-new")
    page = text_of_page(tree_of(assistant(edit), result("edit", "not found", failed=True)))
    assert '<span class="gd">-wanted-old</span>' in page


def test_thinking_images_and_errors_are_shown() -> None:
    picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    tree = tree_of(
        user("see", picture),
        assistant({"type": "thinking", "thinking": "hm"}, "half", stop="error", errorMessage="529 overloaded"),
    )
    page = rendered(tree)
    assert ("img", {"src": f"data:image/png;base64,{PIXEL}", "alt": "image/png"}) in page.tags
    assert ("details", {"class": "thinking", "open": None}) in page.tags
    assert "Error: 529 overloaded" in page.texts["1"]


@pytest.mark.parametrize(
    ("mime", "data"), [('image/png"onerror="x', PIXEL), ("image/svg+xml", PIXEL), ("image/png", "a'b")]
)
def test_an_image_of_another_kind_is_only_named(mime: str, data: str) -> None:
    page = rendered(tree_of(user("see", {"type": "image", "data": data, "mimeType": mime})))
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    assert images == [{"alt": ""}]  # that of the viewer
    assert f"Image not shown: {mime}" in page.texts["0"]


def test_a_skill_and_the_words_of_the_user_are_apart() -> None:
    opening = '<skill name="a &amp; b" location="/s/SKILL.md" candidate="skill_0">'
    page = text_of_page(tree_of(user(f"{opening}\nBase\n\nDo **it**.\n</skill>\n\nnow, please")))
    skill, _, words = page.partition('<details class="skill">')[2].partition("</details>")
    assert "<b>a &amp; b</b>" in skill
    assert "<strong>it</strong>" in skill
    assert "now, please" not in skill
    assert "<p>now, please</p>" in words


def test_the_head_tells_name_models_tokens_and_cost() -> None:
    usage = {"input": 1200, "output": 34, "cacheRead": 5, "cacheWrite": 0, "totalTokens": 1, "cost": {"total": 0.5}}
    page = text_of_page(tree_of(user("x"), assistant("y", usage=usage)), name="My <session>")
    assert "<title>My &lt;session&gt;</title>" in page
    for told in ("acme/m-1", "1,200 in, 34 out", "$0.5000", "/srv/app", "1 user, 1 assistant, 0 tool"):
        assert told in page


def test_without_a_name_the_first_prompt_is_the_title() -> None:
    assert rendered(tree_of(user("What is\nthis?"))).texts["title"] == "What is this?"


def test_system_prompt_and_tools_are_shown_only_when_given() -> None:
    tool = ToolSpec("frobnicate", "Turns the knob.", {"type": "object"})
    live = text_of_page(tree_of(), system_prompt="You are <atomic>.", tools=[tool])
    assert "You are &lt;atomic&gt;." in live
    assert "Turns the knob." in live
    stored = text_of_page(tree_of())
    assert "System prompt" not in stored
    assert "Tools (" not in stored


def test_replies_that_only_call_tools_are_marked_unless_they_failed() -> None:
    tree = tree_of(assistant(call("ls")), assistant("text", call("ls")), assistant(call("ls"), stop="aborted"))
    assert [node[3] for node in rendered(tree).outline()["nodes"]] == [1, 0, 2]


def test_the_download_is_the_session_with_all_branches() -> None:
    tree = tree_of(user("one"), user("two"), {**user("other \u2028 é"), "parentId": "e0"})
    lines = gzip.decompress(base64.b64decode(rendered(tree).texts["archive"])).split(b"\n")
    assert json.loads(lines[0]) == {
        "type": "session", "version": 3, "id": "s-1", "timestamp": "2026-02-01T10:00:00.000Z", "cwd": "/srv/app"
    }  # fmt: skip
    assert lines[1:] == [*tree.raws, b""]


def test_one_session_gives_one_page() -> None:
    tree = tree_of(user("one"), assistant("`two`"))
    assert text_of_page(tree) == text_of_page(tree)


@pytest.mark.parametrize("theme", ["auto", "dark", "light"])
def test_the_page_starts_in_the_wanted_colours(theme: str) -> None:
    assert ("html", {"lang": "en", "data-theme": theme}) in rendered(tree_of(), theme=theme).tags


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "message"},
        {"type": "message", "message": {"role": "martian"}},
        {"type": "message", "message": [1]},
        message("user", None),
        message("assistant", [{"type": "toolCall"}, {"type": "text"}, 5]),
        message(
            "assistant", [{"type": "toolCall", "id": "c", "name": "edit", "arguments": {"edits": [1, {}], "path": []}}]
        ),
        message("toolResult", None),
        message("bashExecution", command="x"),
        {"type": "custom_message", "content": {"a": 1}},
        {"type": "compaction"},
        {"type": "branch_summary"},
        {"type": "model_change"},
        {"type": "unheard_of", "data": [1]},
        {"type": "context_compaction", "id": "e0", "parentId": "e0"},
    ],
)
def test_what_cannot_be_read_does_not_end_the_export(entry: dict[str, Any]) -> None:
    page = rendered(tree_of(entry, user("after")))
    assert "after" in page.texts["1"]


def test_arguments_that_are_nested_deep_are_shown() -> None:
    deep: Any = "bottom"
    for _ in range(400):
        deep = [deep]
    assert "bottom" in rendered(tree_of(assistant(call("odd", deep=deep)))).texts["0"]


def test_a_chain_of_many_entries_needs_no_recursion() -> None:
    tree = tree_of(*({"type": "label", "targetId": "e0"} for _ in range(20_000)))
    assert Outline(tree, tree.leaf_id).preorder() == list(range(20_000))


def test_branches_of_branches_need_no_recursion() -> None:
    parents = ({"type": "label", "parentId": f"e{max(0, number - 1) // 2}"} for number in range(4_000))
    tree = tree_of({"type": "label"}, *parents)
    outline = Outline(tree, tree.leaf_id)
    assert sorted(outline.preorder()) == list(range(4_001))
    assert outline.preorder()[1] in outline.path


def test_two_thousand_messages_are_rendered_in_less_than_three_seconds() -> None:
    tree = tree_of(*(entry for number in range(500) for entry in _turn(number)))
    text_of_page(tree_of(*_turn(0)))  # loads the libraries
    begun = time.process_time()  # other processes share the cores
    text_of_page(tree)
    assert time.process_time() - begun < 3


def _turn(number: int) -> list[dict[str, Any]]:
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2}
    code = f"def f{number}(x: int) -> str:\n    return str(x)  # why\n" * 15
    return [
        user("Please **change** `it` and tell me [more](https://example.com)."),
        assistant({"type": "thinking", "thinking": "hm " * 60}, "I look.", call("read", path="a.py"), usage=usage),
        result("read", code),
        assistant(f"Here:\n\n```python\n{code}```\n\n- a\n- **b**\n\n" + "Some more words. " * 30, usage=usage),
    ]
