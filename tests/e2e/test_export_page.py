"""The page of a session in a real browser: it shows, searches, folds, downloads, and asks the network for nothing."""

from __future__ import annotations

import base64
import json
import os
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.session.export import write_export
from actors.session.export_page import render_page
from actors.session.tree import Tree
from protocol.entry_head import EntryHead, read_entry

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--remote-debugging-pipe", "--window-size=1200,900",
)  # fmt: skip


class Browser:
    """A headless Chromium with one page, spoken to over two pipes. `events` are what it told unasked."""

    def __init__(self, profile: Path) -> None:
        # The program reads commands from its fd 3 and answers on its fd 4.
        theirs_in, self._write_fd = os.pipe()
        read_fd, theirs_out = os.pipe()
        shell = f'exec chromium "$@" 3<&{theirs_in} 4>&{theirs_out}'
        command = ["bash", "-c", shell, "chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._child = subprocess.Popen(
            command, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._reader = open(read_fd, "rb")  # noqa: SIM115 - close() does
        self._rest = b""
        self._serial = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._serial += 1
        command = {"id": self._serial, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._write_fd, json.dumps(command).encode() + b"\0")
        while (told := self._next()).get("id") != self._serial:
            self.events.append(told)
        assert "error" not in told, told
        answer: dict[str, Any] = told["result"]
        return answer

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = self._reader.read1(1 << 16)
            assert chunk, "the browser is gone"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        return told

    def wait_for(self, method: str) -> dict[str, Any]:
        while not (found := [event for event in self.events if event.get("method") == method]):
            self.events.append(self._next())
        event: dict[str, Any] = found[0]["params"]
        return event

    def open(self, address: str) -> None:
        self.events.clear()
        self.ask("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def run(self, script: str) -> Any:
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key)

    def complaints(self) -> list[str]:
        """Exceptions, refusals by the page's policy, console errors."""
        told = [event for event in self.events if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]
        return [json.dumps(event["params"]) for event in told]

    def requests(self) -> list[str]:
        told = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in told]

    def close(self) -> None:
        os.close(self._write_fd)
        self._child.terminate()
        self._child.wait(10)
        self._reader.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Browser]]:
    """Starts on first use, so that a test without Chromium can be skipped before."""
    started: list[Browser] = []

    def start() -> Browser:
        if not started:
            started.append(Browser(tmp_path_factory.mktemp("profile")))
        return started[0]

    yield start
    for each in started:
        each.close()


def message(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": content, "timestamp": 1, **fields}}


def reply(*blocks: Any, **fields: Any) -> dict[str, Any]:
    return message("assistant", list(blocks), api="a", provider="acme", model="m-1", stopReason="stop", **fields)


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def conversation() -> Tree:
    call = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "seq 30"}}
    output = "\n".join(f"line-{number}" for number in range(30))
    attack = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>[x](javascript:window.hacked=1)"
    entries = [
        message("user", [text("first question"), {"type": "image", "data": PIXEL, "mimeType": "image/png"}]),
        reply({"type": "thinking", "thinking": "a thought"}, call),
        message("toolResult", [text(output)], toolCallId="c1", toolName="bash", isError=False),
        reply(text(f"```python\ndef f(): pass\n```\n\n{attack}")),
        message("user", [text("second question, old way")]),
        reply(text("old answer")),
        {**message("user", [text("second question, new way")]), "parentId": "e3"},
        reply(text("new answer")),
        {"type": "label", "targetId": "e4", "label": "keep"},
    ]
    return tree_of(entries)


def tree_of(entries: list[dict[str, Any]]) -> Tree:
    tree = Tree()
    for number, entry in enumerate(entries):
        base = {"id": f"e{number}", "parentId": tree.leaf_id, "timestamp": f"2026-02-01T10:00:{number % 60:02}.000Z"}
        raw = json.dumps({**base, **entry}).encode()
        head = read_entry(raw)
        assert head is not None
        tree.add(raw, head)
    return tree


def stored_page(path: Path, tree: Tree, leaf_id: str | None) -> str:
    """The address of the page of `tree` at `path`."""
    header = EntryHead("session", "s-1", timestamp="2026-02-01T10:00:00.000Z", cwd="/srv/app", version=3)
    page = render_page(tree, header, leaf_id=leaf_id, name="A session", system_prompt="You are.", tools=None)
    write_export(str(path), page, "/")
    return path.as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return stored_page(tmp_path_factory.mktemp("page") / "session.html", conversation(), "e7")


@pytest.fixture
def page(needs: Callable[..., None], browser: Callable[[], Browser], address: str) -> Browser:
    needs("chromium", "bash")
    opened = browser()
    opened.ask("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
    opened.open(address)
    opened.run("localStorage.clear()")
    return opened


ROWS = "[...document.querySelectorAll('#rows button')].map((row) => row.textContent)"
SHOWN = (
    "[...document.querySelectorAll('article')].filter((card) => card.checkVisibility()).map((card) => card.dataset.n)"
)


def choose(page: Browser, css: str, value: str, event: str) -> None:
    page.run(f"var it = document.querySelector('{css}'); it.value = '{value}'; it.dispatchEvent(new Event('{event}'))")


def test_it_opens_the_path_of_the_leaf_and_asks_for_nothing(page: Browser, address: str) -> None:
    assert page.run("document.title") == "A session"
    assert page.run(SHOWN) == ["0", "1", "2", "3", "6", "7"]
    assert [url for url in page.requests() if not url.startswith("data:")] == [address]
    assert page.complaints() == []
    assert page.run("document.querySelector('.zoom img').naturalWidth") == 1


def test_nothing_of_the_session_has_run(page: Browser) -> None:
    assert page.run("window.hacked") is None
    assert page.run("document.querySelectorAll('article script, article [onerror]').length") == 0


def test_the_policy_would_refuse_what_slipped_through(page: Browser) -> None:
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked=1\">')")
    page.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    assert page.run("window.hacked") is None
    assert [complaint for complaint in page.complaints() if "Content Security Policy" in complaint]


def test_the_tree_shows_branches_and_labels_without_replies_that_only_call_tools(page: Browser) -> None:
    assert page.run(ROWS) == [
        "user first question",
        "tool bash: seq 30",
        "assistant " + page.run("JSON.parse(document.getElementById('outline').textContent).nodes[3][5]"),
        "├─ user second question, new way",
        "│  assistant new answer",
        "└─ user keep second question, old way",
        "   assistant old answer",
    ]
    assert page.run("document.querySelector('#rows .here').textContent") == "│  assistant new answer"
    assert page.run("document.getElementById('count').textContent") == "7 of 9 entries"


@pytest.mark.parametrize(("chosen", "count"), [("no-tools", 6), ("user", 4), ("labelled", 2), ("all", 9)])
def test_filters_narrow_the_tree_and_the_leaf_stays(page: Browser, chosen: str, count: int) -> None:
    choose(page, "#filter", chosen, "change")
    rows = page.run(ROWS)
    assert len(rows) == count
    assert [row for row in rows if "new answer" in row]


def test_search_wants_every_word_in_any_case_and_escape_ends_it(page: Browser) -> None:
    choose(page, "#search", "OLD question", "input")
    assert page.run(ROWS) == ["user keep second question, old way"]
    page.press("Escape")
    assert len(page.run(ROWS)) == 7
    assert page.run("document.getElementById('search').value") == ""


def test_search_looks_into_output(page: Browser) -> None:
    choose(page, "#search", "line-29", "input")
    assert page.run(ROWS) == ["tool bash: seq 30"]


def test_a_click_opens_the_branch_and_escape_returns(page: Browser) -> None:
    page.run(
        "[...document.querySelectorAll('#rows button')].find((row) => row.textContent.includes('old way')).click()"
    )
    assert page.run(SHOWN) == ["0", "1", "2", "3", "4", "5"]
    assert page.run("document.querySelector('.target').dataset.n") == "4"
    page.press("Escape")
    assert page.run(SHOWN) == ["0", "1", "2", "3", "6", "7"]


def test_a_deep_link_opens_its_entry(page: Browser, address: str) -> None:
    page.open(f"{address}?leafId=e5&targetId=e4")
    assert page.run(SHOWN) == ["0", "1", "2", "3", "4", "5"]
    assert page.run("document.querySelector('.target').dataset.n") == "4"


def test_a_deep_link_into_a_long_session_ends_at_its_entry(page: Browser, tmp_path: Path) -> None:
    tree = tree_of([message("user", f"line\n\n{number} " * (number % 40)) for number in range(400)])
    page.open(stored_page(tmp_path / "long.html", tree, "e399") + "?targetId=e200")
    there = "Math.abs(document.querySelector('.target').getBoundingClientRect().top) < 2"
    page.run(f"new Promise((done) => {{ const look = () => {there} ? done() : requestAnimationFrame(look); look(); }})")
    assert page.run("document.querySelector('.target').dataset.n") == "200"


def test_keys_fold_thinking_and_output(page: Browser) -> None:
    opened = "[document.querySelector('.thinking').open, document.querySelector('details.output').open]"
    assert page.run(opened) == [True, False]
    page.press("t")
    page.press("o")
    assert page.run(opened) == [False, True]


def test_keys_in_the_search_field_are_text(page: Browser) -> None:
    page.run("document.getElementById('search').focus()")
    page.press("t")
    assert page.run("document.querySelector('.thinking').open") is True


def test_colours_follow_the_system_until_one_is_chosen(page: Browser) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    for scheme, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(21, 24, 29)")):
        page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        assert page.run(background) == colour
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    page.run("document.getElementById('theme').click()")
    assert page.run(background) == "rgb(21, 24, 29)"
    page.run("document.getElementById('theme').click()")
    assert page.run(background) == "rgb(255, 255, 255)"


def test_an_image_is_enlarged_and_put_back(page: Browser) -> None:
    page.run("document.querySelector('.zoom').click()")
    assert page.run("document.getElementById('viewer').open") is True
    page.run("document.getElementById('viewer').click()")
    assert page.run("document.getElementById('viewer').open") is False


def test_the_download_is_the_file_of_the_session(page: Browser, tmp_path: Path) -> None:
    page.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.run("document.getElementById('download').click()")
    while page.wait_for("Page.downloadProgress")["state"] == "inProgress":
        page.events = [event for event in page.events if event.get("method") != "Page.downloadProgress"]
    lines = (tmp_path / "s-1.jsonl").read_bytes().split(b"\n")
    assert json.loads(lines[0])["id"] == "s-1"
    assert lines[1:] == [*conversation().raws, b""]


def test_on_a_narrow_screen_the_tree_comes_on_demand(page: Browser) -> None:
    page.ask("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    visible = "document.getElementById('sidebar').checkVisibility()"
    assert page.run(visible) is False
    page.run("document.getElementById('menu').click()")
    assert page.run(visible) is True
    assert page.run("document.documentElement.scrollWidth") <= 400


def test_a_picture_of_the_page_has_a_tree_left_and_coloured_code_right(page: Browser) -> None:
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    left, right = (colours(page, x, y) for x, y in ((40, 50), (420, 180)))
    assert (246, 247, 249) in left  # the panel
    assert (238, 244, 255) in right  # the user's card
    assert min(len(left), len(right)) > 20  # text, smoothed


def colours(page: Browser, x: int, y: int) -> set[tuple[int, ...]]:
    clip = {"x": x, "y": y, "width": 160, "height": 60, "scale": 1}
    taken = page.ask("Page.captureScreenshot", format="png", clip=clip)
    return {pixel for row in picture(base64.b64decode(taken["data"])) for pixel in row}


def picture(png: bytes) -> list[list[tuple[int, ...]]]:
    """The rows of pixels of a PNG with 8 bits a channel, not interlaced."""
    width, height, _, kind = struct.unpack(">IIBB", png[16:26])
    size = {2: 3, 6: 4}[kind]
    data, at = b"", 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    data = zlib.decompress(data)
    rows: list[list[tuple[int, ...]]] = []
    above = bytearray(width * size)
    for row in range(height):
        begin = row * (width * size + 1)
        line = bytearray(data[begin + 1 : begin + 1 + width * size])
        _unfilter(data[begin], line, above, size)
        rows.append([tuple(line[column * size : column * size + 3]) for column in range(width)])
        above = line
    return rows


def _unfilter(kind: int, line: bytearray, above: bytearray, size: int) -> None:
    for at in range(len(line)):
        left = line[at - size] if at >= size else 0
        up, corner = above[at], above[at - size] if at >= size else 0
        nearest = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
        line[at] = (line[at] + (0, left, up, (left + up) // 2, nearest)[kind]) & 255
