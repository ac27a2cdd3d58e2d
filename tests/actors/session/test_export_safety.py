"""Nothing that a session holds can do anything in its page, wherever it stands."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.model.prompt import ToolSpec
from actors.session.export_page import render_page
from actors.session.tree import Tree
from protocol.entry_head import EntryHead, read_entry

ATTACKS = [
    "<script>alert(1)</script>", "</script><script>alert(1)</script>", "<!--", "-->", "<!--<script>", "]]>", "</style>",
    "</title>", "</textarea>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>', "'><b>",
    '" onclick="x', "' x='",
    "` onclick=`",
    "javascript:alert(1)", "[a](javascript:alert(1))", "![a](javascript:x)", "[a](java\x01script:x)",
    "<javascript:x>", "[a](data:text/html,x)", "![a](https://evil/x.png)", "[a](https://e/\"onmouseover='x')",
    '[a](https://e "t\\" onclick=x")', "```\"><script>\nx\n```", "```html\n</code></pre><script>x\n```",
    "&lt;script&gt;",
    "&#60;script&#62;", "{{ 7*7 }}", "{% raw %}", "\x1b[31m<script>", "\x1b]8;;javascript:x\x07a",
    "\0", "\ud800", "\u2028",
    '<skill name="<b>" location="\'><i>">\n<script>\n</skill>\n\n<script>', "<base href=//evil>",
    "<meta http-equiv=refresh>",
    "| a |\n|:-:|\n| <i onclick=x> |", "[r]\n\n[r]: javascript:x", "<a href='javascript:x'>", "~~<u>~~",
    "1. <form action=x>",
]  # fmt: skip

TAGS = {
    "html", "head", "meta", "title", "style", "body", "aside", "div", "input", "select", "option", "p", "main",
    "header",
    "button", "h1", "dl", "dt", "dd", "details", "summary", "section", "b", "pre", "code", "noscript", "article",
    "span",
    "time", "img", "dialog", "script", "ul", "ol", "li", "strong", "em", "a", "blockquote", "table", "thead", "tbody",
    "tr",
    "th", "td", "hr", "br", "h2", "h3", "h4", "h5", "h6", "s",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "data-theme", "charset", "http-equiv", "content", "name", "aria-label", "class", "id", "type",
    "placeholder",
    "autocomplete", "value", "role", "title", "data-name", "data-n", "hidden", "open", "src", "alt", "href", "target",
    "rel",
    "start",
}  # fmt: skip
PNG = "iVBORw0KGgo="

attack = st.lists(st.sampled_from(ATTACKS) | st.text(max_size=8), min_size=1, max_size=3).map("".join)


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and what stands in its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[str] = []
        self.comments: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.raw.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is not None:
            self.raw[-1] += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def session(text: str) -> Tree:
    """`text` in every place that a session has."""
    block = {"type": "text", "text": text}
    image = {"type": "image", "data": text, "mimeType": text}
    sneaky = {"type": "image", "data": PNG, "mimeType": f"image/png{text}"}
    call = {"type": "toolCall", "id": text, "name": text, "arguments": {text: text, "path": text, "command": text}}
    named = [
        {
            "type": "toolCall",
            "id": f"{name}{text}",
            "name": name,
            "arguments": {"path": text, "offset": text, key: text},
        }
        for name, key in (
            ("bash", "command"),
            ("write", "content"),
            ("edit", "oldText"),
            ("read", "path"),
            ("ls", text),
        )
    ]
    replies = {"api": text, "provider": text, "model": text, "stopReason": "error", "errorMessage": text}
    result = {"toolCallId": text, "toolName": text, "isError": False, "content": [block, image, sneaky]}
    read = {"toolCallId": f"read{text}", "toolName": "read", "isError": False, "content": [block]}
    edit = {
        "toolCallId": f"edit{text}",
        "toolName": "edit",
        "isError": False,
        "content": [block],
        "details": {"diff": text},
    }
    shell = {"command": text, "output": text, "cancelled": False, "truncated": True, "fullOutputPath": text}
    said: list[tuple[str, dict[str, Any]]] = [
        ("user", {"content": [block, image, sneaky]}),
        ("user", {"content": text}),
        ("assistant", {"content": [{"type": "thinking", "thinking": text}, block, call, *named], **replies}),
        ("toolResult", result),
        ("toolResult", read),
        ("toolResult", edit),
        ("bashExecution", shell),
        ("custom", {"customType": text, "content": text, "display": True}),
        ("branchSummary", {"summary": text, "fromId": text}),
    ]
    entries: list[dict[str, Any]] = [
        {"type": "message", "message": {"role": role, "timestamp": 1, **fields}} for role, fields in said
    ]
    entries += [
        {"type": "label", "targetId": f"0{text}", "label": text},
        {"type": "session_info", "name": text},
        {"type": "model_change", "provider": text, "modelId": text},
        {"type": "thinking_level_change", "thinkingLevel": text},
        {"type": "compaction", "summary": text, "tokensBefore": 5},
        {"type": "branch_summary", "summary": text, "fromId": text},
        {"type": "custom", "customType": text, "data": {text: text}},
        {"type": "custom_message", "customType": text, "content": text, "display": False},
        {"type": "session_summary", "summary": text},
        {"type": f"x{text}", "data": text},
    ]
    tree = Tree()
    for number, entry in enumerate(entries):
        base = {"id": f"{number}{text}", "parentId": tree.leaf_id, "timestamp": text}
        raw = json.dumps({**base, **entry}).encode()
        head = read_entry(raw)
        assert head is not None
        tree.add(raw, head)
    return tree


def page_of(text: str) -> str:
    header = EntryHead("session", text, timestamp=text, cwd=text, parent_session=text, version=3)
    tools = [ToolSpec(text, text, {text: text})]
    return render_page(session(text), header, leaf_id=f"3{text}", name=text, system_prompt=text, tools=tools)


HARMLESS = Tags(page_of("x"))


@settings(max_examples=50)
@given(attack)
@example("".join(ATTACKS))
@example("\n\n".join(ATTACKS))
def test_whatever_a_session_holds_the_page_has_only_tags_and_attributes_of_ours(text: str) -> None:
    tags = Tags(page_of(text))
    assert {tag for tag, _ in tags.found} <= TAGS
    assert {name for _, attributes in tags.found for name in attributes} <= ATTRIBUTES
    for singular in ("script", "style", "meta", "html", "body", "input", "select", "dialog"):
        assert _count(tags, singular) == _count(HARMLESS, singular)
    assert tags.comments == []
    for tag, attributes in tags.found:
        assert tag == "a" or "href" not in attributes
        assert re.match(r"(https?|mailto|tel|ftp):|[^:]*([/?#]|$)", attributes.get("href") or "", re.IGNORECASE)
        source = attributes.get("src")
        assert source is None or re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*", source)


@settings(max_examples=30)
@given(attack)
@example("".join(ATTACKS))
def test_whatever_a_session_holds_the_policy_names_the_only_script_and_style(text: str) -> None:
    page = page_of(text)
    page.encode()
    tags = Tags(page)
    style, outline, archive, script = tags.raw
    (policy,) = (
        str(found["content"]) for _, found in tags.found if found.get("http-equiv") == "Content-Security-Policy"
    )
    digests = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in (style, script)]
    assert policy == (
        "default-src 'none'; img-src data:; "
        f"style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; base-uri 'none'; form-action 'none'"
    )
    kinds = [found.get("type") for tag, found in tags.found if tag == "script"]
    assert kinds == ["application/json", "text/plain", None]
    assert (style, script) == (HARMLESS.raw[0], HARMLESS.raw[3])
    assert not set("<>&\u2028\u2029") & set(outline)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", archive)
    assert len(json.loads(outline)["nodes"]) == 19


def _count(tags: Tags, tag: str) -> int:
    return sum(found == tag for found, _ in tags.found)


def test_templates_take_markup_from_names_that_say_so_alone() -> None:
    from importlib.resources import files

    template = (files("actors.session") / "templates" / "page.html").read_text()
    marked = re.findall(r"{{-?\s*([^}]*?)\s*\|\s*safe\s*-?}}", template)
    assert len(marked) >= 8
    assert [name for name in marked if not name.endswith("_html")] == []
    assert template.count("|safe") == len(marked)
