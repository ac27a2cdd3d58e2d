"""The `read` tool on real files, pipes, sockets and devices."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import socket
import struct
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from actors.tool.read import window
from actors.tool.table import ToolOptions
from protocol.messages import ImageContent

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def gif(width: int, height: int) -> bytes:
    size = struct.pack("<HH", width, height)
    return b"GIF89a" + size + bytes(3) + b"\x2c" + bytes(4) + size + b"\0" + b"\x02\x02\x4c\x01\0" + b";"


IMAGES = {
    "image/png": PNG,
    "image/jpeg": bytes.fromhex("ffd8 ffc0000b080001000101011100 ffda0008010100003f00 d2 ffd9"),
    "image/gif": gif(1, 1),
    "image/webp": base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="),
}


def test_a_small_file_is_given_as_it_stands(bench: Any) -> None:
    bench.write("a.txt", "one\r\ntwo\n")
    assert bench.text("read", path="a.txt") == "one\r\ntwo\n"


def test_a_byte_order_mark_is_left_out(bench: Any) -> None:
    bench.write("a.txt", b"\xef\xbb\xbfone")
    assert bench.text("read", path="a.txt") == "one"


def test_offset_and_limit_choose_lines(bench: Any) -> None:
    bench.write("a.txt", "".join(f"line {n}\n" for n in range(1, 11)))
    assert bench.text("read", path="a.txt", offset=4, limit="2") == (
        "line 4\nline 5\n\n[5 more lines in file. Continue with offset=6.]"
    )
    assert bench.text("read", path="a.txt", offset=9, limit=2) == "line 9\nline 10\n"


def test_more_than_3000_lines_are_cut_with_a_way_on(bench: Any) -> None:
    bench.write("a.txt", "".join(f"{n}\n" for n in range(1, 3502)))
    output = bench.run("read", path="a.txt")
    assert output.content[0].text.endswith("\n3000\n\n[Showing lines 1-3000 of 3501. Continue with offset=3001.]")
    cut = output.details["truncation"]
    assert (cut["truncatedBy"], cut["totalLines"], cut["outputLines"]) == ("lines", 3501, 3000)


def test_more_than_50_kb_are_cut_at_a_whole_line(bench: Any) -> None:
    bench.write("a.txt", ("x" * 1023 + "\n") * 60)
    text = bench.text("read", path="a.txt", offset=3)
    assert text.endswith("x\n\n[Showing lines 3-52 of 60 (50.0KB limit). Continue with offset=53.]")
    assert text.count("x") == 50 * 1023


def test_one_huge_line_is_pointed_out_and_not_shown(bench: Any) -> None:
    path = bench.write("a b.txt", "short\n" + "y" * 60_000 + "\nend")
    assert bench.text("read", path="a b.txt", offset=2) == (
        f"[Line 2 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '2p' '{path}' | head -c 51200]"
    )
    assert bench.text("read", path="a b.txt", offset=3) == "end"


def test_beyond_the_end_is_a_success_that_says_so(bench: Any) -> None:
    bench.write("a.txt", "one\ntwo\n")
    assert bench.text("read", path="a.txt", offset=3) == (
        "Requested line 3 is beyond end of file (2 lines total). Use offset=2 to read the final line."
    )
    bench.write("empty.txt")
    assert bench.text("read", path="empty.txt") == "(empty file)"


def test_a_missing_file_is_the_systems_error(bench: Any) -> None:
    assert bench.fault("read", path="no") == f"ENOENT: no such file or directory, open '{bench.root}/no'"


@pytest.mark.timeout(10)
def test_pipes_sockets_and_devices_are_refused_without_waiting(bench: Any) -> None:
    os.mkfifo(bench.root / "pipe")
    assert bench.fault("read", path="pipe").endswith("/pipe: it is a FIFO, not a regular file")
    assert bench.fault("edit", path="pipe", oldText="a", newText="b").endswith("it is a FIFO, not a regular file")
    assert bench.fault("write", path="pipe", content="").endswith("it is a FIFO, not a regular file")
    assert "character device" in bench.fault("read", path="/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(bench.root):  # the name of a socket is short
        listener.bind("socket")
        assert "it is a socket" in bench.fault("read", path="socket")


def test_a_binary_file_is_refused(bench: Any) -> None:
    bench.write("a.bin", b"MZ\0\0")
    assert bench.fault("read", path="a.bin").endswith("a.bin: it is a binary file, not text")


@pytest.mark.parametrize("mime", IMAGES)
def test_an_image_is_known_by_its_content(bench: Any, mime: str) -> None:
    bench.write("picture.txt", IMAGES[mime])
    note, image = bench.run("read", path="picture.txt").content
    assert note.text == f"Read image file [{mime}]"
    assert isinstance(image, ImageContent)
    assert (base64.b64decode(image.data), image.mime_type) == (IMAGES[mime], mime)


@pytest.mark.parametrize("mime", IMAGES)
def test_what_only_begins_like_an_image_is_refused(bench: Any, mime: str) -> None:
    bench.write("cut", IMAGES[mime][:20])
    assert bench.fault("read", path="cut") == f"Cannot read {bench.root}/cut: the image is cut off or damaged"


def test_an_image_that_no_model_takes_is_refused_with_its_size(bench: Any) -> None:
    bench.write("wide.gif", gif(8001, 1))
    bench.context.options = ToolOptions(resize_images=False)
    assert "the image is 8001 x 1 pixels, and models take 1 to 8000" in bench.fault("read", path="wide.gif")


def test_a_large_image_is_made_smaller_and_the_model_is_told(bench: Any) -> None:
    data = BytesIO()
    Image.new("L", (4000, 2)).save(data, "PNG")
    bench.write("wide.png", data.getvalue())
    note, image = bench.run("read", path="wide.png").content
    assert note.text == ("Read image file [image/png]\nShown at 2000 x 1 pixels; the original has 4000 x 2.")
    assert Image.open(BytesIO(base64.b64decode(image.data))).size == (2000, 1)
    bench.context.options = ToolOptions(resize_images=False)
    _, image = bench.run("read", path="wide.png").content
    assert base64.b64decode(image.data) == data.getvalue()


@pytest.mark.parametrize(("resize", "told"), [(True, "64.0MB are made smaller"), (False, "models take at most 3.8MB")])
def test_an_image_with_too_many_bytes_is_not_even_read(bench: Any, resize: bool, told: str) -> None:
    bench.context.options = ToolOptions(resize_images=resize)
    with bench.write("vast.png", PNG).open("r+b") as file:
        file.truncate((64 << 20) + 1)
    assert bench.fault("read", path="vast.png").endswith(told)


def test_a_text_about_images_is_a_text(bench: Any) -> None:
    for text in ("GIF89a is a format\n", "RIFF----WEBP is another\n"):
        bench.write("notes.txt", text)
        assert bench.text("read", path="notes.txt") == text


def test_a_model_without_images_is_told(bench: Any) -> None:
    bench.write("a.png", PNG)
    bench.context.supports_images = False
    assert bench.text("read", path="a.png") == (
        "Read image file [image/png]\n"
        "[Current model does not support images. The image will be omitted from this request.]"
    )


def test_a_directory_is_a_tree_of_two_levels_newest_first(bench: Any) -> None:
    bench.write("d/old", "")
    bench.write("d/sub/deep/hidden", "")
    bench.write("d/.git/config", "")
    os.utime(bench.root / "d/old", (1, 1))
    output = bench.run("read", path="d")
    assert output.content[0].text == f"{bench.root}/d/\n  sub/\n    deep/\n  old"
    assert output.details["isDirectory"] is True
    for n in range(20):
        bench.write(f"many/{n}", "")
    assert bench.text("read", path="many").endswith("\n  ... 8 more")


def test_a_large_file_is_not_held_in_memory(bench: Any) -> None:
    import tracemalloc

    path = bench.write("big", "")
    with open(path, "wb") as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.write(b"\nlast\n")
    tracemalloc.start()
    try:
        assert bench.text("read", path="big", offset=2) == "last\n"
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"long" * 20_000]), max_size=30), st.integers(1, 12))
def test_a_window_agrees_with_splitting_all_lines(parts: list[bytes], first: int) -> None:
    data = b"".join(parts)
    lines = data.splitlines(keepends=True) if b"\r" not in data else _split(data)
    found = window(io.BytesIO(data), first, 3, lambda: None)
    assert found.total == len(lines)
    assert found.lines == lines[first - 1 :][: len(found.lines)]
    following = lines[first - 1 + len(found.lines) :][:1]
    room = 51_200 - sum(map(len, found.lines))
    assert len(found.lines) == 3 or not following or len(following[0].removesuffix(b"\n")) > room


def _split(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return [line for line in lines if line]


def test_a_symlink_that_cannot_be_followed_is_the_systems_error_and_a_leaf_of_the_tree(bench: Any) -> None:
    bench.write("d/x", "")
    (bench.root / "d/circle").symlink_to("circle")
    assert "  circle" in bench.text("read", path="d").split("\n")
    assert bench.fault("read", path="d/circle").startswith("ELOOP:")
